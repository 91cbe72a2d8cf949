"""Make the planner that the task's settings name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from agentrunner.config.spec import TaskSpec
from agentrunner.launching.route import NO_CASSETTE, Cassette
from agentrunner.planners.base import PlannerClient
from agentrunner.registry import PLANNERS, load, make


def make_planner(
    spec: TaskSpec, environ: Mapping[str, str], cassette: Cassette = NO_CASSETTE
) -> PlannerClient:
    """Return the planner of `runner.meta.kind`; opens no connection and spends nothing.

    The cassette is for one that asks a server. Raises UsageError for an unknown kind, a setting
    that cannot work or a cassette that cannot be used, InfraError where a key is missing. `environ`
    is the environment of the process, never of a file in the repository.
    """
    kind, what = spec.runner.meta.kind, "the planner"
    recorded = [cassette] if getattr(load(PLANNERS, kind, what), "recordable", False) else []
    client: PlannerClient = make(PLANNERS, kind, what, spec, environ, *recorded)
    return client


def reply_format(spec: TaskSpec) -> Literal["json", "yaml"]:
    """Return the format requested for replies; JSON unless the task says otherwise.

    Truncated YAML is often valid YAML, truncated JSON never is; and an API that takes a schema
    answers in JSON.
    """
    wanted = spec.runner.meta.format
    return "json" if wanted == "auto" else wanted
