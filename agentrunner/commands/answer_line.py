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
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from agentrunner.commands.console import width_of
from agentrunner.commands.meanwhile import meanwhile
from agentrunner.screens.layout import duration, wrap
from agentrunner.screens.status_line import awaited_words
from agentrunner.text.terminal import cell_width, shorten
from agentrunner.text.times import moment

if TYPE_CHECKING:
    from agentrunner.api import PanelPlanner
    from agentrunner.planners.base import PartialAnswer
    from agentrunner.state.worker_runs import Wait

TICK_SEC = 0.5


@asynccontextmanager
async def answer_line(
    planner: PanelPlanner | None,
    redact: Callable[[str], str],
    stream: TextIO | None = None,
    *,
    live: bool = True,
) -> AsyncIterator[None]:
    """Show the progress of the answer while waiting for it, and that the planner is away.

    Without a terminal, or without `live`, only each wait for a planner is told, in a line of its
    own.
    """
    target = stream or sys.stderr
    if planner is None:
        yield
        return
    line = _Line(target, redact)
    planner.waits.on_wait = line.waits
    if not (live and target.isatty()):
        try:
            yield
        finally:
            planner.waits.on_wait = None
        return
    planner.progress = line.written
    try:
        async with meanwhile(line.tick()):
            yield
    finally:
        planner.progress = planner.waits.on_wait = None
        line.show("")


class _Line:
    def __init__(self, target: TextIO, redact: Callable[[str], str]) -> None:
        self._target = target
        self._redact = redact
        self._begun = time.monotonic()
        self._partial_answer: PartialAnswer | None = None
        self._until: datetime | None = None
        """When a planner that is away is asked again."""
        self._cells = 0

    def written(self, so_far: PartialAnswer) -> None:
        """Take the partial answer; it is shown with the next tick."""
        if so_far.reading or so_far.text or so_far.thoughts:  # else only a sign of life
            self._partial_answer = so_far

    def waits(self, wait: Wait) -> None:
        """Say that the planner is away and when it is asked again; count down from here on."""
        until = moment(wait.until)
        again = f"{until.astimezone():%H:%M:%S}" if until else "once more"
        self._begun, self._partial_answer, self._until = time.monotonic(), None, until
        self.show("")
        why = f"{wait.reason[:1].upper()}{wait.reason[1:]}."
        text = f"{why} It is asked again at {again}; Ctrl-C ends the wait, the plan stays as it is."
        with contextlib.suppress(OSError):
            self._target.write("\n".join(wrap(text, width_of(self._target))) + "\n")
            self._target.flush()

    async def tick(self) -> None:
        """Rewrite the line twice a second."""
        from agentrunner.execution.partial_answer import facts_of

        while True:
            facts = facts_of(self._partial_answer, self._redact) if self._partial_answer else None
            awaited: dict[str, Any] = {"who": "planner", **(facts or {})}
            words = self._away() or awaited_words(awaited, time.monotonic() - self._begun)
            self.show(words)
            await asyncio.sleep(TICK_SEC)

    def _away(self) -> str:
        """Return what is left of a wait; "" where there is none."""
        left = (self._until - datetime.now(UTC)).total_seconds() if self._until else 0.0
        if left > 0:
            return f"the planner is away, asked again in {duration(left)}"
        if self._until is not None:
            self._begun, self._until = time.monotonic(), None
        return ""

    def show(self, text: str) -> None:
        """Show `text` as the line; "" removes it."""
        shown = shorten(f"-- {text}", width_of(self._target) - 1) if text else ""
        cells = cell_width(shown)
        with contextlib.suppress(OSError):
            blank = " " * max(0, self._cells - cells)
            self._target.write(f"\r{shown}{blank}" + ("" if shown else "\r"))
            self._target.flush()
        self._cells = cells
