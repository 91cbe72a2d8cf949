"""From the task's settings to the meta-agent that is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from agentrunner.meta.base import MetaClient
from agentrunner.registry import METAS, load
from agentrunner.task.spec import TaskSpec


def make_meta(
    spec: TaskSpec,
    environ: Mapping[str, str],
    *,
    record: Path | None = None,
    replay: Path | None = None,
) -> MetaClient:
    """The meta-agent of `runner.meta.kind`; opens no connection and spends nothing.

    Where it asks a server, `record` keeps every exchange in a cassette and `replay` answers from
    one. Raises UsageError for an unknown kind, a setting that cannot work or a cassette that
    cannot be used, Surroundings where a key is missing. `environ` is the environment of the
    process, never of a file in the repository.
    """
    kind = load(METAS, spec.runner.meta.kind, "the meta-agent")
    tape = {"record": record, "replay": replay} if getattr(kind, "recordable", False) else {}
    client: MetaClient = kind(spec, environ, **tape)
    return client


def reply_format(spec: TaskSpec) -> Literal["json", "yaml"]:
    """What replies are asked for in: JSON where nobody says otherwise.

    A cut YAML text is often valid YAML, a cut JSON text never is; and an API that takes a schema
    answers in JSON.
    """
    wanted = spec.runner.meta.format
    return "json" if wanted == "auto" else wanted
