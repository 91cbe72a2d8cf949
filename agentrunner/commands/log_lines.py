"""Show log records of all libraries among the lines of a run."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Protocol

from agentrunner.commands.console import Output
from agentrunner.screens.layout import flat


class _JsonLines(logging.Formatter):
    """One JSON object per record, always on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as ASCII-only JSON."""
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
        return flat(f"{record.levelname.lower()}: {record.name}: {record.getMessage()}")


class LineOutput(Protocol):
    """A target for lines that also draws a status that is rewritten."""

    output: Output

    def write(self, lines: list[str]) -> None:
        """Write permanent lines."""


class _ConsoleHandler(logging.Handler):
    def __init__(self, console: LineOutput) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.write([self.format(record)])


@contextlib.contextmanager
def logging_to(console: LineOutput) -> Iterator[None]:
    """Send all log records to the console during a run."""
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
