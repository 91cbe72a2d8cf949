"""The one place that writes to the terminal while a run goes on.

Progress and logs go to stderr, the last screen to stdout; with --json stdout is events only.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from agentrunner.screens.layout import MAX_WIDTH, WIDTH, Paint, flat, wants_colour

if TYPE_CHECKING:
    from agentrunner.screens.live import LiveView
    from agentrunner.screens.plain import PlainView

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Output:
    """How a command talks, from its options."""

    json: bool = False
    events: Path | None = None
    no_input: bool = False
    quiet: bool = False
    log_format: str = "text"
    log_level: str = "warning"
    state_dir: str | None = None
    log_on_stdout: bool = False
    """`agent-runner` keeps its human log on stdout."""


def width_of(stream: TextIO) -> int:
    """Cells to write in: the terminal's, at most 88; 80 where there is none."""
    if not stream.isatty():
        return WIDTH
    return min(shutil.get_terminal_size((WIDTH, 24)).columns, MAX_WIDTH)


def paint_for(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Paint:
    """Colours where the stream is a terminal that wants them."""
    return Paint(wants_colour(environ, stream.isatty()))


def show(text: str, stream: TextIO | None = None) -> None:
    """Write a screen. A reader that went away is no error, as with any filter."""
    target = stream or sys.stdout
    with contextlib.suppress(BrokenPipeError):
        target.write(f"{text}\n")
        target.flush()


def interactive(output: Output, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a person can be asked: a terminal on both sides, and nobody said otherwise."""
    in_ci = environ.get("CI") == "true"
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return terminal and not (in_ci or output.no_input or output.json)


NOTIFIED_CHARS = 160


def ring(stream: TextIO, text: str, environ: Mapping[str, str]) -> None:
    """A bell and the notification of terminals (OSC 9); nothing without a terminal.

    AGENTRUNNER_BELL=off switches both off.
    """
    off = environ.get("AGENTRUNNER_BELL", "").lower() in ("off", "0", "no", "false")
    if off or not stream.isatty() or environ.get("TERM") == "dumb":
        return
    with contextlib.suppress(BrokenPipeError):
        stream.write(f"\a\x1b]9;{flat(text)[:NOTIFIED_CHARS]}\a")
        stream.flush()


class EventLines:
    """Events for programs, a line of JSON each: on stdout, and in a file, as the options say."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._file: TextIO | None = None

    def write(self, event: Event, *, keep: bool = True) -> None:
        """One event; `keep` is whether the file has it, too."""
        line = json.dumps(event)
        if self._output.json:
            show(line)
        if self._output.events and keep:
            self._file = self._file or self._output.events.open("a", encoding="utf-8")
            self._file.write(line + "\n")
            self._file.flush()

    def close(self) -> None:
        """No more of them come."""
        if self._file:
            self._file.close()


class Console:
    """Shows events as they come: JSON lines, a file of them, and progress for people."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.run_id: str | None = None
        self.state: str | None = None
        self._seq = 0
        self._result: Event | None = None
        self._status = ""
        self._progress = sys.stdout if output.log_on_stdout else sys.stderr
        self._view = None if output.quiet else self._make_view()
        self._lines = EventLines(output)

    def _make_view(self) -> LiveView | PlainView:
        # Only what shows a run needs them: they lead to the models of a task.
        from agentrunner.screens.live import LiveView
        from agentrunner.screens.plain import PlainView

        if not self._progress.isatty() or self.output.log_on_stdout:
            return PlainView()
        home = os.environ.get("HOME", "")
        width, paint = width_of(self._progress), paint_for(self._progress)
        return LiveView(width=width, paint=paint, home=home, words=True)

    @property
    def warnings(self) -> list[str]:
        """Those met on the way, for the last screen."""
        return self._view.story.warnings if self._view else []

    def on_event(self, event: Event) -> None:
        """An event of the engine. The result is kept back: it is printed once, and last."""
        self._seq = int(event.get("seq") or self._seq)
        self.run_id = event.get("run_id") or self.run_id
        if event.get("event") == "state_changed":
            self.state = event.get("to")
        if event.get("event") == "result":
            self._result = event
            return
        self._record(event)
        if self._view:
            self.write(self._view.feed(event, time.monotonic()))
        if event.get("event") == "question":
            self._notify(f"needs you: {event.get('text')}")

    def finish(self, result: Mapping[str, Any]) -> None:
        """The end: what was held back, then the one `result` of --json."""
        self.write(self._view.flush(time.monotonic()) if self._view else [], last=True)
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = {"ts": stamp, "seq": self._seq + 1, "run_id": result.get("run_id")}
        self._record({**head, **(self._result or {}), "event": "result", **result})
        self._lines.close()
        if not result.get("waiting"):  # else the question has rung
            self._notify(str(result.get("state") or "ended").replace("_", " "))

    def _notify(self, text: str) -> None:
        """Ring, and have the terminal say so, where a person may be looking elsewhere."""
        if not (self.output.log_on_stdout or self.output.json):
            ring(self._progress, f"AgentRunner {self.run_id or ''}: {text}", os.environ)

    def tick(self) -> None:
        """Time has passed: rewrite the status line, or give the log its heartbeat."""
        if self._view:
            self.write(self._view.tick(time.monotonic(), datetime.now().astimezone()))

    def write(self, lines: list[str], *, last: bool = False) -> None:
        """Lines that stay, above the status line."""
        status = self._view.status(time.monotonic()) if self._view and not last else ""
        if not lines and status == self._status:
            return
        blank = f"\r{' ' * self._cells}\r" if self._status else ""
        self._status = status
        with contextlib.suppress(BrokenPipeError):
            self._progress.write(blank + "".join(f"{line}\n" for line in lines) + status)
            self._progress.flush()

    @property
    def _cells(self) -> int:
        return width_of(self._progress) - 1

    def _record(self, event: Event) -> None:
        self._lines.write(event, keep=bool(self.run_id))  # without a run there is nothing to keep

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        """The status line is gone while someone is asked something."""
        view, self._view = self._view, None
        self.write([""], last=True)
        try:
            yield
        finally:
            self._view = view


class _JsonLines(logging.Formatter):
    """One JSON object per record: whatever a value holds, a line stays a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON text, everything but ASCII escaped."""
        stamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {
            "ts": stamp,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0]:
            entry["error"] = record.exc_info[0].__name__
        return json.dumps(entry)


class _TextLines(logging.Formatter):
    """For people: level and message on one sanitised line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        return flat(f"{record.levelname.lower()}: {record.name}: {record.getMessage()}")


class _ConsoleHandler(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.write([self.format(record)])


@contextlib.contextmanager
def logging_to(console: Console) -> Iterator[None]:
    """Send the logs of everything to the console while a run goes on."""
    handler = _ConsoleHandler(console)
    handler.setFormatter(_JsonLines() if console.output.log_format == "json" else _TextLines())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(console.output.log_level.upper())
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def who() -> str:
    """The user's name, as it is kept with what they decide."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # a uid without a name, as in many containers
