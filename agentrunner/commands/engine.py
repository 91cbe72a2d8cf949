"""The engine as the commands see it, imported when one of them needs it.

LangGraph costs about a second; `--help` and a task file that is refused must not pay it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from agentrunner.environment import quiet_libraries

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec
    from agentrunner.engine.attempt_run import Options
    from agentrunner.state.run_state import Answer


class Engine(Protocol):
    """What `agentrunner.engine.runs` offers. Results are the `result` object of --json."""

    async def start(self, spec: TaskSpec, options: Options) -> dict[str, Any]:
        """Run a task to its end or to a pause."""

    async def resume(
        self,
        run_id: str,
        options: Options,
        *,
        max_loops: int | None = None,
        message: str | None = None,
        on_change: str | None = None,
        budget: Sequence[str] = (),
        by: str = "",
        planner: str | None = None,
        planner_model: str | None = None,
    ) -> dict[str, Any]:
        """Go on where a run was, or start its next attempt."""

    async def respond(self, run_id: str, answer: Answer, options: Options) -> dict[str, Any]:
        """Give a waiting run what it waits for, and go on."""

    async def accept(
        self,
        run_id: str,
        criteria: list[str],
        reason: str,
        by: str,
        options: Options,
        *,
        unchanged: bool = False,
        known_red: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Record a person's yes; the run ends COMPLETE if code agrees."""

    async def cancel(self, run_id: str, options: Options) -> dict[str, Any]:
        """End a run FAILED."""


def load() -> Engine:
    """The engine, with the libraries below it told to be quiet before they are imported."""
    quiet_libraries()
    from agentrunner.engine import runs

    return runs
