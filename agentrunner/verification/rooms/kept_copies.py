"""Copies of ignored folders that go from one room to the next.

Every room has its own copy of what git ignores, since tests may write there. Installed packages are
tens of thousands of files, and most tests change a few of them at most. So a copy is kept when its
room ends, and brought back to what was copied before the next room gets it: a file whose change
time or inode is not the one that was noted is copied again, a folder of which that is true is made
anew around what it holds, and all times are set as they were copied. No command can set a change
time, so nothing that one room leaves is there in the next: no content, name, attribute or time.
Everything here blocks.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from agentrunner.verification.rooms.sealed import copy_folder

MOST_ENTRIES = 60_000
"""Files and folders of a copy that is kept: what was noted of them is held in memory."""
MOST_REPAIRED = 2_000
"""Where more has changed, a new copy is as fast."""


class Stamp(NamedTuple):
    """What is noted of an entry; times in nanoseconds."""

    mode: int
    changed: int
    inode: int
    accessed: int
    modified: int

    @property
    def is_folder(self) -> bool:
        """A folder itself, no link to one."""
        return stat.S_ISDIR(self.mode)

    def same(self, other: Stamp) -> bool:
        """Whether nothing but a read can lie between the two."""
        return self[:3] == other[:3]


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
                    _hand_on(kept, target)
                    return kept
            shutil.rmtree(kept.at, ignore_errors=True)
            shutil.rmtree(target, ignore_errors=True)
        copy_folder(source, target)
        made = Copy(source, version, target, _inode(target))
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
            if _inode(place) != copy.inode:
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
            stamp = Stamp(
                facts.st_mode, facts.st_ctime_ns, facts.st_ino, facts.st_atime_ns, facts.st_mtime_ns
            )
            yield path, stamp
            if stamp.is_folder:
                waiting.append(path)


def _repair(copy: Copy) -> bool:
    """Bring the entries back to what was copied; False where a new copy is as fast.

    Raises OSError.
    """
    now: dict[str, Stamp] = {}
    for path, stamp in _entries(copy.at):
        now[path] = stamp
        if len(now) > len(copy.stamps) + MOST_REPAIRED:
            return False
    wrong, folders = [], []
    for path, stamp in now.items():
        noted = copy.stamps.get(path)
        if noted is not None and stamp.is_folder and noted.is_folder:
            folders += [] if stamp.same(noted) else [path]
        elif noted is None or not stamp.same(noted):
            wrong.append(path)
    lacking = copy.stamps.keys() - now.keys()
    if len(wrong) + len(folders) + len(lacking) > MOST_REPAIRED:
        return False
    for path in folders:
        (copy.at / path).chmod(0o700)
    for path in wrong:
        _remove(copy.at / path)
    # From the top on: a new folder inherits what the one above it hands down.
    for path in sorted(folders, key=_depth):
        _make_anew(copy.at / path, copy.source / path)
    # A folder that was removed or exchanged took along what it held.
    again = [path for path in copy.stamps if not os.path.lexists(copy.at / path)]
    for path in sorted(again, key=_depth):
        if not os.path.lexists(copy.at / path):
            copy_folder(copy.source / path, copy.at / path)
    return True


def _hand_on(copy: Copy, target: Path) -> None:
    """Move what a copy holds into a new folder, and set and note its times. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.mkdir(mode=0o700)
    for entry in list(copy.at.iterdir()):
        entry.rename(target / entry.name)
    copy.at.rmdir()
    for path, noted in copy.stamps.items():
        os.utime(target / path, ns=(noted.accessed, noted.modified), follow_symlinks=False)
    shutil.copystat(copy.source, target, follow_symlinks=False)
    copy.at, copy.inode = target, _inode(target)
    for path, stamp in list(_entries(target)):
        noted = copy.stamps[path]
        copy.stamps[path] = stamp._replace(accessed=noted.accessed, modified=noted.modified)


def _make_anew(place: Path, like: Path) -> None:
    """A new folder in the place of one, with the same entries and nothing else of it."""
    fresh = place.with_name(f".{secrets.token_hex(8)}")
    fresh.mkdir(mode=0o700)
    for entry in list(place.iterdir()):
        entry.rename(fresh / entry.name)
    place.rmdir()
    fresh.rename(place)
    shutil.copystat(like, place, follow_symlinks=False)


def _inode(place: Path) -> tuple[int, int]:
    facts = place.lstat()
    return facts.st_dev, facts.st_ino


def _depth(path: str) -> int:
    return path.count("/")


def _remove(place: Path) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(place.lstat().st_mode):
            shutil.rmtree(place)
        else:
            place.unlink()
