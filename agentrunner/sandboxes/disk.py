"""Watches that a command does not fill the disk with what it leaves in its folders.

Each look asks the file system how much is free. Only if that has fallen by more than the folders
may grow are they walked, to find out whether it was this command; so a normal run costs nothing.

Standard library only, for the supervisor.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

FILE_BYTES = 4096
"""The minimum that a file or folder counts, so that millions of empty ones are noticed too."""
LOOK_SEC = (0.05, 1.0)
"""Shortest and longest time between looks."""
WALK_SEC = 0.05
"""How long one call of `over` walks."""
CLOCK_NS = 20_000_000
"""By how much the clock of a file system may be behind ours."""


class DiskWatch:
    """Whether the files below some folders have grown by more than `cap` bytes.

    Growth is how much the file system's free space has shrunk since the start, but at most the size
    of the files that changed since then, including deleted ones that are still open. What other
    programs free or use in the meantime can make it too small, but never too large unless files of
    more than `cap` bytes were changed.
    """

    def __init__(self, folders: Iterable[Path], cap: int) -> None:
        """Raises OSError for a folder that does not exist."""
        self._cap = cap
        self._since_ns = time.time_ns() - CLOCK_NS
        self._roots = list(folders)
        self._places = {root.stat().st_dev: root for root in self._roots}
        self._free = {device: _free(place) for device, place in self._places.items()}
        self._shrunk = 0
        self._looked = time.monotonic()
        self._next_walk = cap
        """How far the free space must fall before a walk is worthwhile."""
        self._walk: Iterator[int] | None = None
        self._changed = 0
        self.wait_sec = LOOK_SEC[0]
        """When to call `over` again; sooner while space shrinks fast, 0 in the middle of a walk."""

    def over(self, processes: Callable[[], Iterable[int]] = tuple) -> bool:
        """Look, and walk for at most 50 ms; True as soon as the cap is known to be exceeded.

        `processes` returns the command's processes, whose deleted open files are counted.
        """
        if self._walk is None:
            self._look()
            if self._shrunk <= self._next_walk:
                return False
            self._changed = 0
            self._walk = self._changes(processes)
        if not self._continue_walk(self._walk):
            self.wait_sec = 0.0
            return False
        self._walk = None
        growth = min(self._shrunk, self._changed)
        # It cannot exceed the cap before this much more space is gone.
        self._next_walk = self._shrunk + max(self._cap - growth, self._cap // 16)
        self.wait_sec = LOOK_SEC[0]
        return growth > self._cap

    def _look(self) -> None:
        now, before = time.monotonic(), self._shrunk
        self._shrunk = 0
        for device, place in self._places.items():
            size, files = _free(place)
            gone = self._free[device][0] - size + FILE_BYTES * (self._free[device][1] - files)
            self._shrunk += max(0, gone)
        speed = (self._shrunk - before) / max(now - self._looked, 0.001)
        self._looked = now
        shortest, longest = LOOK_SEC
        if speed > 0:
            left = (self._next_walk - self._shrunk) / speed
            self.wait_sec = min(max(left / 2, shortest), longest)
        else:
            self.wait_sec = min(self.wait_sec * 2 or shortest, longest)

    def _continue_walk(self, walk: Iterator[int]) -> bool:
        """Continue the walk for a moment; return whether it is complete, or has reached the cap."""
        deadline = time.monotonic() + WALK_SEC
        for size in walk:
            self._changed += size
            if self._changed > self._cap:
                return True
            if time.monotonic() > deadline:
                return False
        return True

    def _changes(self, processes: Callable[[], Iterable[int]]) -> Iterator[int]:
        """Yield the sizes of files changed since the start, by blocks on disk, not by length."""
        seen: set[tuple[int, int]] = set()
        for facts in self._deleted(processes()):
            if _is_new(facts, seen):
                yield facts.st_blocks * 512
        folders = list(self._roots)
        while folders:
            yield from self._changes_in(folders.pop(), folders, seen)

    def _changes_in(
        self, folder: Path, below: list[Path], seen: set[tuple[int, int]]
    ) -> Iterator[int]:
        """Yield the sizes of one folder's changed files; append its folders to `below`."""
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        yield self._size(entry, below, seen)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:
            if _closed_since(folder, self._since_ns):
                # So deep, or so closed, that it cannot be measured: only the free space counts.
                yield self._cap + 1

    def _size(self, entry: os.DirEntry[str], below: list[Path], seen: set[tuple[int, int]]) -> int:
        facts = entry.stat(follow_symlinks=False)
        if facts.st_dev not in self._places:
            return 0
        if stat.S_ISDIR(facts.st_mode):
            below.append(Path(entry.path))
        changed = facts.st_ctime_ns >= self._since_ns
        return max(facts.st_blocks * 512, FILE_BYTES) if changed and _is_new(facts, seen) else 0

    def _deleted(self, pids: Iterable[int]) -> Iterator[os.stat_result]:
        for pid in pids:
            for name in _names(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    facts = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                    regular = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0
                    if regular and facts.st_dev in self._places:
                        yield facts


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _free(place: Path) -> tuple[int, int]:
    """Return the free bytes and the free files."""
    facts = os.statvfs(place)
    return facts.f_bfree * facts.f_frsize, facts.f_ffree


def _is_new(facts: os.stat_result, seen: set[tuple[int, int]]) -> bool:
    """Whether this is the first sight of a file with several names or several open descriptors."""
    if facts.st_nlink == 1 or stat.S_ISDIR(facts.st_mode):
        return True
    key = (facts.st_dev, facts.st_ino)
    first = key not in seen
    seen.add(key)
    return first


def _closed_since(folder: Path, since_ns: int) -> bool:
    """Whether the command may have closed a folder that cannot be read."""
    try:
        return folder.lstat().st_ctime_ns >= since_ns
    except OSError:
        return True
