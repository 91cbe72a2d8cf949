"""Make the planner that the task's settings name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from agentrunner.config.spec import TaskSpec
from agentrunner.planners.base import PlannerClient
from agentrunner.registry import PLANNERS, load


def make_planner(
    spec: TaskSpec,
    environ: Mapping[str, str],
    *,
    record: Path | None = None,
    replay: Path | None = None,
    channel: str = "",
) -> PlannerClient:
    """Return the planner of `runner.meta.kind`; opens no connection and spends nothing.

    Where it asks a server, `record` keeps every exchange in a cassette and `replay` answers from
    one; `channel` separates this planner's part of it from another's. Raises UsageError for an
    unknown kind, a setting that cannot work or a cassette that cannot be used, InfraError where a
    key is missing. `environ` is the environment of the process, never of a file in the repository.
    """
    kind = load(PLANNERS, spec.runner.meta.kind, "the planner")
    tape: dict[str, object] = {}
    if getattr(kind, "recordable", False):
        tape = {"record": record, "replay": replay, "channel": channel}
    client: PlannerClient = kind(spec, environ, **tape)
    return client


def reply_format(spec: TaskSpec) -> Literal["json", "yaml"]:
    """Return the format requested for replies; JSON unless the task says otherwise.

    Truncated YAML is often valid YAML, truncated JSON never is; and an API that takes a schema
    answers in JSON.
    """
    wanted = spec.runner.meta.format
    return "json" if wanted == "auto" else wanted
