"""The schema that an answer is held to: the first that is asked for, and what may follow it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agentrunner.planners.base import PlannerRequest

Constraint = Literal["run", "task", "general", "none"]
"""One for all messages of the run, one made for message and task, one for all tasks, or none."""
SIMPLER: Mapping[Constraint, Constraint] = {"run": "task", "task": "general", "general": "none"}
"""What is asked for where a server refuses the other."""
RUN_NAME = "reply"
"""The name of the run's schema, which is read before the prompt as it is."""
_REFUSALS = ("response_format", "text.format", "schema", "grammar", "structured output")
"""What a 400 about constrained output speaks of, as far as seen."""


def first_constraint(*, near: bool) -> Constraint:
    """What is asked for first.

    A server of the person's own makes a grammar of the schema, beside what it caches: it gets the
    narrowest. A provider reads the schema before all else, so it is to stay the same.
    """
    return "task" if near else "run"


def effective(request: PlannerRequest, how: Constraint) -> Constraint:
    """What `how` comes to for this request: what it does not have is the next simpler one."""
    if how == "run" and request.alike is None:
        how = "task"
    return "general" if how == "task" and request.simpler is None else how


def schema_of(request: PlannerRequest, how: Constraint) -> tuple[str, Mapping[str, Any]] | None:
    """Name and schema for this request; None where none is asked for."""
    match effective(request, how):
        case "none":
            return None
        case "run" if request.alike is not None:
            return RUN_NAME, request.alike
        case "general" if request.simpler is not None:
            return request.type, request.simpler
        case _:
            return request.type, request.schema


def refuses_schema(body: str) -> bool:
    """Whether a server's 400 is about the schema."""
    return any(word in body.lower() for word in _REFUSALS)
