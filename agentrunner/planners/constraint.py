"""The schema that an answer must follow: which is requested first, and which if it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agentrunner.planners.base import PlannerRequest

Constraint = Literal["run", "task", "general", "none"]
"""Schema for all messages of the run, for this message and task, for all tasks, or no schema."""
_SIMPLER: Mapping[Constraint, Constraint] = {"run": "task", "task": "general", "general": "none"}
RUN_NAME = "reply"
"""Name of the run's schema; fixed, since it comes before the prompt in what a provider caches."""
_REFUSALS = ("response_format", "text.format", "schema", "grammar", "structured output")
"""Words in a 400 about constrained output, as far as seen."""


class AskedSchema:
    """The schema that one client asks for: the first of those that its server has not refused.

    A server of the person's own compiles the schema to a grammar apart from its cache: it gets the
    narrowest one. A provider reads the schema before all else, so it should stay the same.
    """

    def __init__(self, *, near: bool, form: str = "json") -> None:
        """`form` is that of replies; only JSON has a schema."""
        self.constraint: Constraint = "none" if form != "json" else "task" if near else "run"

    def of(self, request: PlannerRequest) -> Constraint:
        """Return the constraint for a request, the next simpler one if it has no such schema."""
        how = self.constraint
        if how == "run" and request.alike is None:
            how = "task"
        return "general" if how == "task" and request.simpler is None else how

    def is_refused(self, constraint: Constraint, body: str) -> bool:
        """Whether a server's 400 is about the schema; then a simpler one is asked for from now on.

        The prompt states the form of a reply anyway. Several requests may be refused at once.
        """
        if constraint == "none" or not any(word in body.lower() for word in _REFUSALS):
            return False
        self.constraint = _SIMPLER[constraint]
        return True


def schema_of(request: PlannerRequest, how: Constraint) -> tuple[str, Mapping[str, Any]] | None:
    """Return name and schema for this request; None where no schema is requested."""
    match how:
        case "none":
            return None
        case "run" if request.alike is not None:
            return RUN_NAME, request.alike
        case "general" if request.simpler is not None:
            return request.type, request.simpler
        case _:
            return request.type, request.schema
