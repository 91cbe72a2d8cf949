"""The Python API as the commands use it, imported only when needed.

LangGraph takes about a second to import; `--help` and a refused task file must not pay for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from agentrunner.environment import quiet_libraries

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec
    from agentrunner.engine.attempt_run import Options
    from agentrunner.results import Result


class RunVerbs(Protocol):
    """The part of `agentrunner.api` that drives runs."""

    async def run(self, task: TaskSpec, how: Options) -> Result:
        """Run a task to its end or to a pause."""

    async def resume(
        self,
        run_id: str,
        how: Options,
        *,
        max_loops: int | None = None,
        message: str | None = None,
        on_change: Literal["replan", "continue"] | None = None,
        budget: Sequence[str] = (),
        planner: str | None = None,
        planner_model: str | None = None,
        model: str | None = None,
        by: str = "",
    ) -> Result:
        """Resume a run, or start its next attempt."""

    async def respond(
        self,
        run_id: str,
        decision: Literal["answer", "approve", "reject"],
        text: str = "",
        *,
        question: str = "",
        edit: str = "",
        by: str = "",
        how: Options,
    ) -> Result:
        """Give a waiting run its answer, and continue."""

    async def accept(
        self,
        run_id: str,
        reason: str,
        *,
        criteria: Sequence[str] = (),
        known_red: Sequence[str] = (),
        unchanged: bool = False,
        by: str = "",
        how: Options,
    ) -> Result:
        """Record a person's acceptance; the run ends COMPLETE if code agrees."""

    async def cancel(self, run_id: str, how: Options) -> Result:
        """End a run FAILED."""


def load() -> RunVerbs:
    """Return the API; libraries are silenced before they are imported."""
    quiet_libraries()
    from agentrunner import api

    return api
