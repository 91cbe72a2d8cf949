"""The Python API as the commands see it, imported when one of them needs it.

LangGraph costs about a second; `--help` and a task file that is refused must not pay it.
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
        by: str = "",
    ) -> Result:
        """Go on where a run was, or start its next attempt."""

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
        """Give a waiting run what it waits for, and go on."""

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
        """Record a person's yes; the run ends COMPLETE if code agrees."""

    async def cancel(self, run_id: str, how: Options) -> Result:
        """End a run FAILED."""


def load() -> RunVerbs:
    """The API, with the libraries below it told to be quiet before they are imported."""
    quiet_libraries()
    from agentrunner import api

    return api
