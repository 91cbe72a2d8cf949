"""A progress line on the terminal while a planner answers in a conversation.

The line is overwritten after a carriage return and removed at the end, so that nothing remains of a
partial answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TextIO

from agentrunner.commands.console import width_of
from agentrunner.screens.status_line import awaited_words
from agentrunner.text.terminal import cell_width, shorten

if TYPE_CHECKING:
    from agentrunner.api import PanelPlanner
    from agentrunner.planners.base import Written

TICK_SEC = 0.5


@asynccontextmanager
async def answer_line(
    planner: PanelPlanner | None, redact: Callable[[str], str], stream: TextIO | None = None
) -> AsyncIterator[None]:
    """Show the progress of the answer while waiting for it; nothing without a terminal."""
    target = stream or sys.stderr
    if planner is None or not target.isatty():
        yield
        return
    line = _Line(target, redact)
    planner.progress = line.written
    ticking = asyncio.create_task(line.tick())
    try:
        yield
    finally:
        planner.progress = None
        ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticking
        line.show("")


class _Line:
    def __init__(self, target: TextIO, redact: Callable[[str], str]) -> None:
        self._target = target
        self._redact = redact
        self._begun = time.monotonic()
        self._partial_answer: Written | None = None
        self._cells = 0

    def written(self, so_far: Written) -> None:
        """Take the partial answer; it is shown with the next tick."""
        if so_far.reading or so_far.text or so_far.thoughts:  # else only a sign of life
            self._partial_answer = so_far

    async def tick(self) -> None:
        """Rewrite the line twice a second."""
        from agentrunner.execution.written import facts_of

        while True:
            facts = facts_of(self._partial_answer, self._redact) if self._partial_answer else None
            awaited: dict[str, Any] = {"who": "planner", **(facts or {})}
            self.show(awaited_words(awaited, time.monotonic() - self._begun))
            await asyncio.sleep(TICK_SEC)

    def show(self, text: str) -> None:
        """Show `text` as the line; "" removes it."""
        shown = shorten(f"-- {text}", width_of(self._target) - 1) if text else ""
        cells = cell_width(shown)
        with contextlib.suppress(OSError):
            blank = " " * max(0, self._cells - cells)
            self._target.write(f"\r{shown}{blank}" + ("" if shown else "\r"))
            self._target.flush()
        self._cells = cells
