"""From the task's settings to the meta-agent that is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from agentrunner.meta.base import MetaClient
from agentrunner.registry import METAS, load
from agentrunner.task.spec import TaskSpec


def make_meta(spec: TaskSpec, environ: Mapping[str, str]) -> MetaClient:
    """The meta-agent of `runner.meta.kind`; opens no connection and spends nothing.

    Raises UsageError for an unknown kind or a setting that cannot work, Surroundings where a key
    is missing. `environ` is the environment of the process, never of a file in the repository.
    """
    client: MetaClient = load(METAS, spec.runner.meta.kind, "the meta-agent")(spec, environ)
    return client


def reply_format(spec: TaskSpec) -> Literal["json", "yaml"]:
    """What replies are asked for in: JSON where nobody says otherwise.

    A cut YAML text is often valid YAML, a cut JSON text never is; and an API that takes a schema
    answers in JSON.
    """
    wanted = spec.runner.meta.format
    return "json" if wanted == "auto" else wanted
