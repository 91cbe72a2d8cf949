"""Watches that what a command leaves in its folders does not fill the disk.

A look asks the file system how much is free. Only when that has fallen by more than the folders
may grow are they walked, to tell whether it was this command; so a usual run costs nothing.

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
"""The least that a file or folder counts for, so that millions of empty ones are seen too."""
LOOK_SEC = (0.05, 1.0)
"""Shortest and longest time between looks."""
WALK_SEC = 0.05
"""How long one call of `over` walks."""
CLOCK_NS = 20_000_000
"""By how much the clock of a file system may be behind ours."""


class DiskWatch:
    """Whether the files below some folders have grown by more than `cap` bytes.

    Growth is what is gone of the file system's free space since the start, but not more than
    what lies in files that changed since then, deleted ones that are still open included. What
    other programs free or use meanwhile can let it come out too small, but never too large
    unless files of more than `cap` bytes were changed.
    """

    def __init__(self, folders: Iterable[Path], cap: int) -> None:
        """Raises OSError for a folder that is not there."""
        self._cap = cap
        self._since_ns = time.time_ns() - CLOCK_NS
        self._roots = list(folders)
        self._places = {root.stat().st_dev: root for root in self._roots}
        self._free = {device: _free(place) for device, place in self._places.items()}
        self._fall = 0
        self._looked = time.monotonic()
        self._next_walk = cap
        """The fall at which it is worth a walk."""
        self._walk: Iterator[int] | None = None
        self._changed = 0
        self.wait_sec = LOOK_SEC[0]
        """When to call `over` again; shorter while space goes fast, 0 in the middle of a walk."""

    def over(self, processes: Callable[[], Iterable[int]] = tuple) -> bool:
        """Look, and walk for 50 ms at most; True as soon as the cap is known to be exceeded.

        `processes` are those of the command, whose deleted files are looked for.
        """
        if self._walk is None:
            self._look()
            if self._fall <= self._next_walk:
                return False
            self._changed = 0
            self._walk = self._changes(processes)
        if not self._go_on(self._walk):
            self.wait_sec = 0.0
            return False
        self._walk = None
        growth = min(self._fall, self._changed)
        # It cannot exceed the cap before this much more is gone.
        self._next_walk = self._fall + max(self._cap - growth, self._cap // 16)
        self.wait_sec = LOOK_SEC[0]
        return growth > self._cap

    def _look(self) -> None:
        now, before = time.monotonic(), self._fall
        self._fall = 0
        for device, place in self._places.items():
            size, files = _free(place)
            gone = self._free[device][0] - size + FILE_BYTES * (self._free[device][1] - files)
            self._fall += max(0, gone)
        speed = (self._fall - before) / max(now - self._looked, 0.001)
        self._looked = now
        shortest, longest = LOOK_SEC
        if speed > 0:
            left = (self._next_walk - self._fall) / speed
            self.wait_sec = min(max(left / 2, shortest), longest)
        else:
            self.wait_sec = min(self.wait_sec * 2 or shortest, longest)

    def _go_on(self, walk: Iterator[int]) -> bool:
        """Walk on for a moment; whether it has come to an end, or far enough to be sure."""
        deadline = time.monotonic() + WALK_SEC
        for size in walk:
            self._changed += size
            if self._changed > self._cap:
                return True
            if time.monotonic() > deadline:
                return False
        return True

    def _changes(self, processes: Callable[[], Iterable[int]]) -> Iterator[int]:
        """Sizes of what changed since the start, on the disk and not by length."""
        seen: set[tuple[int, int]] = set()
        for facts in self._deleted(processes()):
            if _new(facts, seen):
                yield facts.st_blocks * 512
        folders = list(self._roots)
        while folders:
            yield from self._changes_in(folders.pop(), folders, seen)

    def _changes_in(
        self, folder: Path, below: list[Path], seen: set[tuple[int, int]]
    ) -> Iterator[int]:
        """Those of one folder; puts the folders in it into `below`."""
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        yield self._size(entry, below, seen)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:
            if _closed_since(folder, self._since_ns):
                # So deep, or so closed, that it cannot be measured: then the fall alone counts.
                yield self._cap + 1

    def _size(self, entry: os.DirEntry[str], below: list[Path], seen: set[tuple[int, int]]) -> int:
        facts = entry.stat(follow_symlinks=False)
        if facts.st_dev not in self._places:
            return 0
        if stat.S_ISDIR(facts.st_mode):
            below.append(Path(entry.path))
        changed = facts.st_ctime_ns >= self._since_ns
        return max(facts.st_blocks * 512, FILE_BYTES) if changed and _new(facts, seen) else 0

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
    """Free bytes and free files."""
    facts = os.statvfs(place)
    return facts.f_bfree * facts.f_frsize, facts.f_ffree


def _new(facts: os.stat_result, seen: set[tuple[int, int]]) -> bool:
    """Whether a file with several names, or open in several processes, is met first."""
    if facts.st_nlink == 1 or stat.S_ISDIR(facts.st_mode):
        return True
    key = (facts.st_dev, facts.st_ino)
    first = key not in seen
    seen.add(key)
    return first


def _closed_since(folder: Path, since_ns: int) -> bool:
    """Whether a folder that cannot be read may have been closed by the command."""
    try:
        return folder.lstat().st_ctime_ns >= since_ns
    except OSError:
        return True
