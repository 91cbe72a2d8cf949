"""The event log: what `--json` prints, `logs` shows and the live view follows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from agentrunner.storage.locks import run_lock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import append_line, objects, read_lines, redact_strings
from agentrunner.text.times import stamp

Event = dict[str, Any]
Listener = Callable[[Event], None]


class EventLog:
    """Writes flat JSON objects, one a line, numbered over the whole life of the run.

    `clock` returns the time with a time zone; `redact` is applied to every string before it is
    written or passed to a listener.
    """

    def __init__(
        self,
        path: Path,
        run_id: str,
        clock: Callable[[], datetime],
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self.path = path
        self.run_id = run_id
        self.redact = redact
        self.listeners: list[Listener] = []
        self._clock = clock
        self._lock = threading.Lock()
        self._seq = max((int(event.get("seq", 0)) for event in read_lines(path)), default=0)

    def emit(self, event: str, **fields: Any) -> Event:
        """Write an event, pass it to the listeners and return it; raise OSError on a full disk."""
        redacted = fields if self.redact is None else redact_strings(fields, self.redact)
        with self._lock:
            self._seq += 1
            line: Event = {
                "ts": stamp(self._clock()),
                "seq": self._seq,
                "run_id": self.run_id,
                "event": event,
                **redacted,
            }
            append_line(self.path, line, sync=False)
        for listener in self.listeners:
            listener(line)
        return line

    def read(self) -> list[Event]:
        """Return all events so far."""
        return read_events(self.path)


def read_events(path: Path) -> list[Event]:
    """Return all events of a file; a torn last line is left out."""
    return list(read_lines(path))


def read_from(path: Path, offset: int) -> tuple[list[Event], int]:
    """Return the whole lines of a file after a byte offset, and the offset after them.

    A damaged line is left out. Nothing where there is no file yet. Blocks.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            text = file.read()
    except FileNotFoundError:
        return [], offset
    whole = text[: text.rfind(b"\n") + 1]
    return list(objects(whole)), offset + len(whole)


class EventReader:
    """Reads the events of a run from its folder, each of them once."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self.offset = 0
        """Bytes of the file that have been read."""

    def read_new(self) -> tuple[bool, list[Event]]:
        """Return whether a process drives the run, and the events since the last call. Blocks.

        Where no process did, every event that the last one wrote has been read.
        """
        driven = run_lock(self._folder).taken()  # before reading: it may end in between
        events, self.offset = read_from(self._folder.events_file, self.offset)
        return driven, events
