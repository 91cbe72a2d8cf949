"""The only code that writes to the terminal during a run.

Progress and logs go to stderr, the last screen to stdout; with --json stdout has only events.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from agentrunner import environment
from agentrunner.screens.errors import error_screen
from agentrunner.screens.layout import (
    MAX_WIDTH,
    WIDTH,
    Paint,
    flat,
    sentence_lines,
    wants_colour,
    wrap,
)
from agentrunner.text.times import stamp_now

if TYPE_CHECKING:
    from agentrunner.commands.notify import Notifier
    from agentrunner.errors import AgentRunnerError
    from agentrunner.results import Result
    from agentrunner.screens.live import LiveView
    from agentrunner.screens.plain import PlainView

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Output:
    """How a command communicates, from its options."""

    json: bool = False
    events: Path | None = None
    no_input: bool = False
    quiet: bool = False
    log_format: str = "text"
    log_level: str = "warning"
    state_dir: str | None = None
    log_on_stdout: bool = False
    """`agent-runner` writes its log for people to stdout."""
    notify: str | None = None
    """The person's notification command; None uses their settings."""
    detach: bool = False
    """Whether it continues without the terminal once it has begun."""

    @property
    def state(self) -> Path:
        """Return the folder where runs are kept."""
        return environment.state_dir(self.state_dir)


def width_of(stream: TextIO) -> int:
    """Return the width to write in: the terminal's, at most 100; 80 without a terminal."""
    if not stream.isatty():
        return WIDTH
    return min(shutil.get_terminal_size((WIDTH, 24)).columns, MAX_WIDTH)


def columns_of(stream: TextIO) -> int:
    """Return the terminal's columns, for commands; 0 where it is no terminal."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if stream.isatty() else 0


def height_of(stream: TextIO) -> int:
    """Return the terminal's lines; 0 where it is no terminal."""
    return shutil.get_terminal_size((WIDTH, 24)).lines if stream.isatty() else 0


def paint_for(stream: TextIO) -> Paint:
    """Return colours if the stream is a terminal that wants them."""
    return Paint(wants_colour(os.environ, stream.isatty()))


def form_of(stream: TextIO) -> tuple[int, Paint, int]:
    """Return width, colours and the terminal's columns, as screens with commands take them."""
    return width_of(stream), paint_for(stream), columns_of(stream)


@contextlib.contextmanager
def to_whoever_reads() -> Iterator[None]:
    """Write to a reader that may be gone: a pipe's end, or a terminal that was closed."""
    try:
        yield
    except BrokenPipeError:
        pass
    except OSError as error:
        if error.errno != errno.EIO:  # what a terminal gives that is not there any more
            raise


def show(text: str, stream: TextIO | None = None) -> None:
    """Write a screen. A reader that went away is no error, as with any filter."""
    target = stream or sys.stdout
    with to_whoever_reads():
        target.write(f"{text}\n")
        target.flush()


def show_error(error: AgentRunnerError) -> None:
    """Write an error to stderr in the common form."""
    show(error_screen(error, *form_of(sys.stderr)), sys.stderr)


def show_json(value: object, *, ensure_ascii: bool = True) -> int:
    """Write a value as one line of JSON; return the exit code of success."""
    show(json.dumps(value, ensure_ascii=ensure_ascii))
    return 0


def tell(text: str, stream: TextIO | None = None) -> None:
    """Write sentences and commands to copy, set apart by two blanks, as the terminal has room."""
    show("\n".join(sentence_lines(text, columns_of(stream or sys.stdout))), stream)


def interactive(output: Output) -> bool:
    """Whether a person can be asked: a terminal on both sides, and no option against it."""
    in_ci = os.environ.get("CI") == "true"
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return terminal and not (in_ci or output.no_input or output.json)


NOTIFIED_CHARS = 160


def ring(stream: TextIO, text: str, environ: Mapping[str, str]) -> None:
    """Send a bell and a terminal notification (OSC 9); nothing without a terminal.

    AGENTRUNNER_BELL=off switches both off.
    """
    off = environ.get("AGENTRUNNER_BELL", "").lower() in ("off", "0", "no", "false")
    if off or not stream.isatty() or environ.get("TERM") == "dumb":
        return
    with to_whoever_reads():
        stream.write(f"\a\x1b]9;{flat(text)[:NOTIFIED_CHARS]}\a")
        stream.flush()


class EventLines:
    """Writes events for programs as JSON lines: to stdout, and to a file, as the options say."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._file: TextIO | None = None

    def write(self, event: Event, *, keep: bool = True) -> None:
        """Write one event; `keep` is whether the file gets it, too."""
        line = json.dumps(event)
        if self._output.json:
            show(line)
        if self._output.events and keep:
            self._file = self._file or self._output.events.open("a", encoding="utf-8")
            self._file.write(line + "\n")
            self._file.flush()

    def close(self) -> None:
        if self._file:
            self._file.close()


class Console:
    """Shows events as they come: JSON lines, a file of them, and progress for people."""

    def __init__(
        self,
        output: Output,
        *,
        notifier: Notifier | None = None,
        notifier_of_run: Callable[[str], Notifier | None] | None = None,
        begun: Callable[[str], None] | None = None,
        watched: bool = False,
    ) -> None:
        """`begun` is called with the run's id when the run begins or resumes.

        `notifier_of_run` is called with that id once it is known, and says whose `notifier` to use.

        `watched` is for a run that another process drives.
        """
        self.output = output
        self._notifier = notifier
        self._notifier_of_run = notifier_of_run
        self._begun = begun
        self._about: dict[str, object] = {}
        """Facts about the run that every notification includes."""
        self.run_id: str | None = None
        self.begun_here = False
        """Whether the run began with this command."""
        self.left = ""
        """The question that was shown in this terminal and left waiting."""
        self.may_have_spent = False
        """Whether this command has begun to ask a planner or a worker."""
        self.state: str | None = None
        self._seq = 0
        self._asks = False
        """Whether the latest event was a question, or why its answer was not taken."""
        self._result: Event | None = None
        self._status = ""
        self._progress = sys.stdout if output.log_on_stdout else sys.stderr
        self._view = None if output.quiet else self._make_view(watched)
        self._lines = EventLines(output)

    def _make_view(self, watched: bool) -> LiveView | PlainView:
        # Only the display of a run needs these; they import the models of a task.
        from agentrunner.screens.live import LiveView
        from agentrunner.screens.plain import PlainView

        if not self._progress.isatty() or self.output.log_on_stdout or self.output.detach:
            return PlainView()
        home = os.environ.get("HOME", "")
        width, paint = width_of(self._progress), paint_for(self._progress)
        return LiveView(width=width, paint=paint, home=home, words=True, watched=watched)

    def on_event(self, event: Event, *, silently: bool = False) -> None:
        """Handle an event of the engine. The result is held back, to be printed once and last."""
        if self._result is not None:  # the result of a pause after which the run continued
            self._record(self._result)
            self._result = None
        self._seq = int(event.get("seq") or self._seq)
        self._know(event.get("run_id"))
        self.begun_here |= event.get("event") == "run_started"
        self.may_have_spent |= _may_spend(event)
        if event.get("event") == "state_changed":
            self.state = event.get("to")
        if event.get("event") == "result":
            self._result = event
            return
        if event.get("event") in ("run_started", "run_resumed"):
            self._on_begin(event)
        self._record(event)
        if self._view:
            self.write(self._view.feed(event, time.monotonic()))
        elif self._asks and event.get("event") == "warning":
            tell(flat(str(event.get("message"))), sys.stderr)  # why what was typed was not taken
        self._asks = event.get("event") == "question" or (
            self._asks and event.get("event") == "warning"
        )
        if event.get("event") == "question" and not silently:
            self._ring(f"needs you: {event.get('text')}")
            self._send("needs_you", event.get("text"), question=event.get("id"))

    def catch_up(self, events: Sequence[Event], most: int, *, goes_on: bool) -> None:
        """Show what happened before: header and the last events, in at most `most` lines where the
        last one is no longer; nothing rings.
        """
        view, self._view = self._view, None
        now, wall = time.monotonic(), datetime.now(UTC)
        by_event: list[list[str]] = []
        for event in events:
            self.on_event(event, silently=True)
            if view is not None:
                by_event.append(view.replay(event, now, wall))
        self._view = view
        if view is None:
            return
        shown = last_whole(by_event, most) if self._progress.isatty() else by_event
        left_out = sum(map(len, by_event)) - sum(map(len, shown))
        lines = [f"… {left_out} lines before: agentrunner logs {self.run_id}"] if left_out else []
        lines += [line for one in shown for line in one]
        self.write([*view.head(), *lines], last=not goes_on)

    def _know(self, run_id: str | None) -> None:
        if run_id and self.run_id is None and self._notifier_of_run is not None:
            self._notifier = self._notifier_of_run(run_id)
        self.run_id = run_id or self.run_id

    def _on_begin(self, event: Event) -> None:
        header = event.get("header") or {}
        known = {"task_id": event.get("task_id"), "title": event.get("title")}
        self._about = {**known, "repo": header.get("repo"), "run_id": self.run_id}
        if self._begun is not None:
            self._begun(str(self.run_id))

    def finish(self, result: Result) -> None:
        """Show what was held back, then the single `result` of --json."""
        self.write(self._view.flush(time.monotonic()) if self._view else [], last=True)
        head = {"ts": stamp_now(), "seq": self._seq + 1, "run_id": result.run_id}
        whole = {**head, **(self._result or {}), "event": "result", **result.as_dict()}
        self._record(whole)
        self._lines.close()
        if not result.waiting:  # else the question has rung
            self._ring(_end_word(result))
            self._send("ended", _end_text(result), **_identifying_facts(result))

    def _ring(self, text: str) -> None:
        """Ring, and notify through the terminal, as the person may be looking elsewhere."""
        if self.run_id and not (self.output.log_on_stdout or self.output.json):
            ring(self._progress, f"AgentRunner {self.run_id}: {text}", os.environ)

    def _send(self, kind: Literal["needs_you", "ended"], text: object, **facts: Any) -> None:
        if self._notifier is None or not self.run_id:
            return
        command = f"agentrunner {'answer' if kind == 'needs_you' else 'show'} {self.run_id}"
        self._notifier.send(kind, {**self._about, **facts, "text": text, "next": command})

    def poll(self) -> None:
        if self._notifier is not None and (problem := self._notifier.poll()):
            self._say_problem(problem)

    def close(self) -> None:
        """Wait for that command, at most until its time limit."""
        if self._notifier is not None and (problem := self._notifier.close()):
            self._say_problem(problem)

    def _say_problem(self, problem: str) -> None:
        text = f"warning: {problem}. The run does not depend on it."
        self.write(wrap(text, width_of(self._progress)) if self._progress.isatty() else [text])

    def tick(self) -> None:
        """Rewrite the status line, or write the log's sign of life."""
        self.poll()
        if self._view:
            self.write(self._view.tick(time.monotonic(), datetime.now().astimezone()))

    def write(self, lines: list[str], *, last: bool = False) -> None:
        """Write permanent lines above the status line."""
        if self._view:
            self._view.fit(width_of(self._progress))
        status = self._view.status(time.monotonic()) if self._view and not last else ""
        if not lines and status == self._status:
            return
        blank = f"\r{' ' * self._cells}\r" if self._status else ""
        self._status = status
        with to_whoever_reads():
            self._progress.write(blank + "".join(f"{line}\n" for line in lines) + status)
            self._progress.flush()

    @property
    def _cells(self) -> int:
        return width_of(self._progress) - 1

    def _record(self, event: Event) -> None:
        self._lines.write(event, keep=bool(self.run_id))  # without a run there is nothing to keep

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        """Hide the status line while a person is asked something."""
        view, self._view = self._view, None
        self.write([""], last=True)
        try:
            yield
        finally:
            self._view = view


def _may_spend(event: Event) -> bool:
    """Whether with this event a planner or a worker is about to be asked."""
    name = event.get("event")
    return name == "worker_started" or (name == "awaiting" and event.get("who") == "planner")


def last_whole(by_event: Sequence[list[str]], most: int) -> Sequence[list[str]]:
    """Return the last events in at most `most` lines: none is cut, and the last is always there."""
    number, room = 0, most
    for lines in reversed(by_event):
        room -= len(lines)
        if room < 0 and number and any(by_event[len(by_event) - number :]):
            break
        number += 1
    return by_event[len(by_event) - number :]


def _end_text(result: Result) -> str:
    """Return how a run has ended, in a sentence."""
    why = result.error.message if result.error else ""
    why = why or result.text or next(iter(result.missing), "")
    return f"{_end_word(result)}: {why}" if why else _end_word(result)


def _end_word(result: Result) -> str:
    """Return how a run has ended in its state's word; one that was left in the middle stopped."""
    from agentrunner.state.lifecycle import end_of

    if result.state and end_of(result.state) is None:
        return "STOPPED"
    return str(result.state or "ended").replace("_", " ")


def _identifying_facts(result: Result) -> dict[str, object]:
    """Return which run a result belongs to and how it ended."""
    names = ("task_id", "title", "repo", "state", "exit_code", "reason", "note")
    values = result.as_dict()
    return {name: values[name] for name in names if values[name] is not None}
