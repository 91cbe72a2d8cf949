"""Copies of ignored folders that go from one room to the next.

Every room has its own copy of what git ignores, since tests may write there. Installed packages are
tens of thousands of files, and most tests change a few of them at most. So a copy is kept when its
room ends, and brought back to what was copied before the next room gets it: a file whose change
time or inode is not the one that was noted is copied again. No command can set a change time.
Everything here blocks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from agentrunner.verification.sealed import copy_folder

MOST_ENTRIES = 60_000
"""Files and folders of a copy that is kept: their times are held in memory."""
MOST_REPAIRED = 2_000
"""Where more has changed, a new copy is as fast."""

Stamp = tuple[int, int]
"""Of a file its change time in nanoseconds and its inode; of a folder its mode and 0."""


@dataclass
class Copy:
    """A copy of one folder, with what its entries were when nobody had used it."""

    source: Path
    version: object
    at: Path
    inode: tuple[int, int] = (0, 0)
    stamps: dict[str, Stamp] = field(default_factory=dict, repr=False)


class KeptCopies:
    """The copies that no room uses now. `place` is beside the rooms, on their file system."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._free: list[Copy] = []
        self._lock = threading.Lock()
        self._number = 0

    def bring(self, source: Path, target: Path, version: object) -> Copy | None:
        """Put what `source` holds at `target`; what is returned can be taken back.

        `version` tells one content of `source` from another. None where the copy can't be kept: it
        is too large, or was laid over a folder that was there. Raises OSError where nothing could
        be copied.
        """
        if target.exists():
            copy_folder(source, target)
            return None
        if (kept := self._taken(source, version)) is not None:
            with contextlib.suppress(OSError):
                if _repair(kept):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    kept.at.rename(target)
                    kept.at = target
                    return kept
            shutil.rmtree(kept.at, ignore_errors=True)
            shutil.rmtree(target, ignore_errors=True)
        copy_folder(source, target)
        facts = target.lstat()
        made = Copy(source, version, target, (facts.st_dev, facts.st_ino))
        for path, stamp in _entries(target):
            made.stamps[path] = stamp
            if len(made.stamps) > MOST_ENTRIES:
                return None
        return made

    def take_back(self, copy: Copy, room: Path) -> None:
        """Keep a copy whose room ends, if it is still where it was put. Nothing may write any more.

        What a command put in its place, or in the place of a folder above it, is left alone.
        """
        with contextlib.suppress(OSError):
            place = room
            for part in copy.at.relative_to(room).parts:
                place = place / part
                if not stat.S_ISDIR(place.lstat().st_mode):
                    return
            facts = place.lstat()
            if (facts.st_dev, facts.st_ino) != copy.inode:
                return
            self._place.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._lock:
                self._number += 1
                aside = self._place / str(self._number)
            place.chmod(0o700)
            place.rename(aside)
            copy.at = aside
            with self._lock:
                self._free.append(copy)

    def _taken(self, source: Path, version: object) -> Copy | None:
        with self._lock:
            stale = [one for one in self._free if one.source == source and one.version != version]
            found = [one for one in self._free if one.source == source and one.version == version]
            self._free = [one for one in self._free if one not in stale and one not in found[:1]]
        for one in stale:
            shutil.rmtree(one.at, ignore_errors=True)
        return found[0] if found else None


def _entries(root: Path) -> Iterator[tuple[str, Stamp]]:
    """All below a folder, each before what it holds. Raises OSError where one can't be entered."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(root / below) as found:
            entries = list(found)
        for entry in entries:
            path = f"{below}/{entry.name}" if below else entry.name
            facts = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(facts.st_mode):
                yield path, (facts.st_mode, 0)
                waiting.append(path)
            else:
                yield path, (facts.st_ctime_ns, facts.st_ino)


def _repair(copy: Copy) -> bool:
    """Bring a copy back to what was copied; False where a new one is as fast. Raises OSError."""
    now: dict[str, Stamp] = {}
    for path, stamp in _entries(copy.at):
        now[path] = stamp
        if len(now) > len(copy.stamps) + MOST_REPAIRED:
            return False
    wrong = [path for path, stamp in now.items() if copy.stamps.get(path) != stamp]
    lacking = [path for path in copy.stamps if path not in now]
    if len(wrong) + len(lacking) > MOST_REPAIRED:
        return False
    for path in sorted(wrong, reverse=True):
        _remove(copy.at / path)
    # A folder that was exchanged took along what it held.
    again = [path for path in copy.stamps if not os.path.lexists(copy.at / path)]
    for path in sorted(again, key=lambda path: len(PurePosixPath(path).parts)):
        if not os.path.lexists(copy.at / path):
            copy_folder(copy.source / path, copy.at / path)
    if again:
        copy.stamps = dict(_entries(copy.at))
    shutil.copystat(copy.source, copy.at, follow_symlinks=False)
    return True


def _remove(place: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(place.lstat().st_mode):
            shutil.rmtree(place)
        else:
            place.unlink()
