"""A plan at work in a terminal: its tree, redrawn in place, and its questions below it.

It serves the process that executes the plan (`plan run`) and one that watches (`watch --plan`):
everything is read from the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct, field

from agentrunner import api
from agentrunner.commands.console import paint_for, to_whoever_reads, width_of
from agentrunner.commands.meanwhile import meanwhile
from agentrunner.errors import AgentRunnerError
from agentrunner.screens.layout import MAX_WIDTH, apart_from_command, pasteable, wrap
from agentrunner.screens.story import Story
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import cell_width
from agentrunner.text.times import moment

if TYPE_CHECKING:
    from agentrunner.api import PlanStatus
    from agentrunner.plans.store import OpenQuestion

_COLOUR = lazy_regex(r"\x1b\[[0-9;]*m")


class Block:
    """The lines to redraw, on one terminal.

    Besides colours, the only escape sequences move the cursor and erase below it. If the process is
    killed, nothing needs to be restored, since the cursor is never hidden.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: list[str] = []

    @property
    def width(self) -> int:
        """Cells per line; the terminal's last one stays free, since some wrap too early."""
        return min(shutil.get_terminal_size((80, 24)).columns - 1, MAX_WIDTH)

    @property
    def height(self) -> int:
        """Lines that fit, besides the cursor's own line."""
        return max(shutil.get_terminal_size((80, 24)).lines - 1, 1)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines in place of the previous ones, cut if they are too many."""
        shown = list(lines[: self.height])
        if len(lines) > self.height:
            shown[-1] = "…"
        if shown != self._lines:
            self._write(self._erase() + "".join(f"{line}\n" for line in shown))
            self._lines = shown

    def above(self, lines: Sequence[str]) -> None:
        """Write permanent lines above the block."""
        kept = self._lines
        text = "".join(f"{line}\n" for line in [*lines, *kept])
        self._write(self._erase() + text)
        self._lines = kept

    def clear(self) -> None:
        """Remove the block; the cursor is then where the block began."""
        self._write(self._erase())
        self._lines = []

    def _erase(self) -> str:
        """Return to the start of the block, whose lines a narrower terminal may have wrapped."""
        if not self._lines:
            return ""
        columns = max(shutil.get_terminal_size((80, 24)).columns, 1)
        rows = sum(max(-(-cell_width(_COLOUR.sub("", line)) // columns), 1) for line in self._lines)
        return f"\r\x1b[{rows}A\x1b[J"

    def _write(self, text: str) -> None:
        if text:
            with to_whoever_reads():
                self._stream.write(text)
                self._stream.flush()


DRAW_SEC = 1.0
GONE = "Answered in another terminal, or not asked any more."
PROMPT = "your answer (empty leaves it waiting) > "


class _Followed(Struct):
    """A run, as far as its events have been read."""

    story: Story = field(default_factory=Story)
    offset: int = 0
    last: datetime | None = None
    awaited: datetime | None = None


class RunStories:
    """Who works on a plan's tasks and what they do, from the events of their runs."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._runs: dict[str, _Followed] = {}

    def doing(self, status: PlanStatus, now: datetime) -> dict[str, str]:
        """Return a few words for each task at work. Blocks."""
        from agentrunner.screens.status_line import doing_words

        words = {}
        for task_id, task in status.tasks.items():
            if not (task.at_work and task.run_id and status.driven):
                continue
            run = self._read(task.run_id)
            if run.last is None:
                continue
            story = run.story
            if story.waits_until is not None:
                until = story.waits_until.astimezone()
                words[task_id] = f"continues at {until:%H:%M:%S}: {story.waits_for}"
                continue
            silent = (now - run.last).total_seconds()
            awaited = (now - (run.awaited or run.last)).total_seconds()
            words[task_id] = doing_words(story, max(silent, 0), max(awaited, 0))
        return words

    def _read(self, run_id: str) -> _Followed:
        from agentrunner.storage.events import read_from
        from agentrunner.storage.run_folder import RunFolder, runs_root

        run = self._runs.setdefault(run_id, _Followed())
        folder = RunFolder(runs_root(self._state_dir) / run_id)
        events, run.offset = read_from(folder.events_file, run.offset)
        for event in events:
            run.story.feed(event)
            run.last = moment(event.get("ts"))
            if event.get("event") == "awaiting":
                run.awaited = run.last
        return run


class PlanView:
    """A plan's tree at the bottom of a terminal, with events above it, and a prompt in its place.

    While somebody is asked, the tree is not drawn and events are held back, so that typed text
    stays intact; the work continues.
    """

    def __init__(self, state_dir: Path, repo: Path) -> None:
        self._state_dir, self._repo = state_dir, repo
        self._block = Block(sys.stderr)
        self._stories = RunStories(state_dir)
        self._held: list[str] = []
        self._latest: tuple[PlanStatus, dict[str, str]] | None = None
        self.asking = False
        self.asked: set[int] = set()
        """Questions that were shown here whole."""

    def say(self, lines: Sequence[str]) -> None:
        if self.asking:
            self._held += lines
        else:
            self._block.above(lines)

    async def look(self) -> PlanStatus:
        """Return the plan's present status; draw it unless somebody is asked.

        If it cannot be read, the previous status is used: a view must not end the work.
        """
        try:
            self._latest = await asyncio.to_thread(self._look)
        except (AgentRunnerError, OSError, sqlite3.Error):
            if self._latest is None:
                raise
        status, doing = self._latest
        if not self.asking:
            self.draw(status, doing)
        return status

    def _look(self) -> tuple[PlanStatus, dict[str, str]]:
        status = api.plan_status_sync(self._repo, state_dir=self._state_dir)
        return status, self._stories.doing(status, datetime.now(UTC))

    def draw(self, status: PlanStatus, doing: Mapping[str, str]) -> None:
        from agentrunner.screens.plan_status import status_screen

        screen = status_screen(
            status,
            width=self._block.width,
            height=self._block.height - 1,
            paint=paint_for(sys.stderr),
            doing=doing,
        )
        self._block.draw(["", *screen.split("\n")])

    @contextlib.contextmanager
    def prompting(self) -> Iterator[None]:
        """Hide the tree while a question is asked."""
        self._block.clear()
        self.asking = True
        try:
            yield
        finally:
            self.asking = False
            held, self._held = self._held, []
            self._block.above(held)

    def close(self) -> None:
        """Remove the tree from the terminal."""
        self._block.clear()


class Typed:
    """Reads lines that a person types, without blocking other work."""

    async def read(self, prompt: str, given_up: Callable[[], bool]) -> str | None:
        """Return the next line without its end; None at the end of input or once it is `given_up`.

        Input from before the prompt is discarded: it is no answer to it.
        """
        import termios

        loop, line = asyncio.get_running_loop(), asyncio.Event()
        number = sys.stdin.fileno()
        with contextlib.suppress(termios.error):
            termios.tcflush(number, termios.TCIFLUSH)
        sys.stderr.write(prompt)
        sys.stderr.flush()
        loop.add_reader(number, line.set)
        try:
            while not line.is_set():
                if given_up():
                    return None
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(line.wait(), DRAW_SEC / 4)
        finally:
            loop.remove_reader(number)
        text = os.read(number, 65536).decode("utf-8", "replace")
        return text.rstrip("\n") if text else None


class PlanQuestions:
    """Asks the open questions of a plan's tasks, one after the other, while the work continues."""

    def __init__(
        self,
        view: PlanView,
        answer: Callable[[OpenQuestion, str], str],
        stop: asyncio.Event,
        *,
        ask: bool = True,
        waits: Callable[[OpenQuestion], bool] = lambda question: True,
    ) -> None:
        """`answer` keeps an answer and returns a message; it raises for one that does not fit.

        Without `ask` the tree is drawn and nobody is asked; else what `waits` for an answer.
        """
        self._waits = waits
        self._asks_person = ask
        self._view, self._answer, self._stop = view, answer, stop
        self._typed = Typed()
        self.left: set[int] = set()
        """Questions that the person has left waiting."""
        self.answered: set[int] = set()
        """Questions that were answered here."""
        self._open: set[int] = set()

    async def attend(self, ended: Callable[[PlanStatus], bool]) -> PlanStatus:
        """Draw the tree and ask, until it has `ended` and there is nothing left to ask."""
        while True:
            status = await self._view.look()
            self._open = {question.id for question in status.questions}
            asked = [q for q in status.questions if q.task_id and q.id not in self.left]
            asked = [q for q in asked if self._waits(q)] if self._asks_person else []
            if self._stop.is_set() or (ended(status) and not asked):
                return status
            if asked:
                await self._ask(asked[0])
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), DRAW_SEC)

    async def _ask(self, question: OpenQuestion) -> None:
        who = "The plan" if question.task_id == "budget" else question.task_id
        with self._view.prompting():
            width = width_of(sys.stderr)
            lines = [f"{who} asks (question {question.id}):"]
            text, below = apart_from_command(question.text, width - 4)
            lines += wrap(text, width, "    ")
            lines += pasteable(below, width, "    ") if below else []
            _write("\n" + "\n".join(lines) + "\n")
            self._view.asked.add(question.id)
            async with meanwhile(self._watch(question.id)):
                await self._typed_answer(question)

    async def _typed_answer(self, question: OpenQuestion) -> None:
        def given_up() -> bool:
            return self._stop.is_set() or question.id not in self._open

        while True:
            line = await self._typed.read(PROMPT, given_up)
            if given_up():
                _write("\n" if self._stop.is_set() else f"\n{GONE}\n")
                return
            if not (line or "").strip():
                self.left.add(question.id)
                _write(
                    "\n" * (line is None)
                    + f"It still waits:  agentrunner plan answer {question.id} TEXT\n"
                )
                return
            try:
                _write(self._answer(question, str(line).strip()).partition("\n")[0] + "\n")
            except AgentRunnerError as error:
                _write(" ".join(filter(None, (error.message, error.remedy))) + "\n")
            else:
                self.answered.add(question.id)
                return

    async def _watch(self, number: int) -> None:
        """Watch whether somebody else answers the question."""
        while number in self._open:
            await asyncio.sleep(DRAW_SEC)
            status = await self._view.look()
            self._open = {question.id for question in status.questions}


def _write(text: str) -> None:
    with to_whoever_reads():
        sys.stderr.write(text)
        sys.stderr.flush()


def answering(repo: str | None, state_dir: str | None) -> Callable[[OpenQuestion, str], str]:
    """Return a function that keeps answers in the plan's store, as `plan answer` does."""

    def answer(question: OpenQuestion, text: str) -> str:
        from agentrunner.commands.plan_commands import answered

        return answered(str(question.id), text, repo, state_dir)

    return answer


def timed(text: str) -> list[str]:
    """Return an event's line with its time, wrapped between words in a terminal."""
    at = f"{datetime.now():%H:%M:%S}  "
    if not sys.stderr.isatty():
        return [at + text]
    lines = wrap(text, width_of(sys.stderr), " " * len(at))
    return [at + lines[0][len(at) :], *lines[1:]]
