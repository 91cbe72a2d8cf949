"""Reading the events of a run while a process drives it."""

from __future__ import annotations

from agentrunner.storage.events import Event, read_from
from agentrunner.storage.locks import run_lock
from agentrunner.storage.run_folder import RunFolder


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
