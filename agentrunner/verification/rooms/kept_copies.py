"""Reuses copies of ignored folders from one room to the next.

Every room has its own copy of what git ignores, since tests may write there. Installed packages are
tens of thousands of files, and most tests change a few of them at most. So a copy is kept when its
room ends, and restored to what was copied before the next room gets it: a file whose change time or
inode is not the recorded one is copied again, such a folder is created again around its content,
and all times are set as they were copied. No command can set a change time, so nothing that one
room leaves is there in the next: no content, name, attribute or time. Everything here blocks.
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

from agentrunner.folders import remove_tree
from agentrunner.verification.rooms.sealed import copy_folder

MOST_ENTRIES = 60_000
"""Files and folders of a copy that is kept: what is recorded of them is held in memory."""
MOST_REPAIRED = 2_000
"""Where more entries have changed, a new copy is as fast."""


class Stamp(NamedTuple):
    """What is recorded of an entry; times are in nanoseconds."""

    mode: int
    changed: int
    inode: int
    accessed: int
    modified: int

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder itself, not a link to one."""
        return stat.S_ISDIR(self.mode)

    def same(self, other: Stamp) -> bool:
        """Whether nothing but reads can have happened between the two."""
        return self[:3] == other[:3]


@dataclass
class Copy:
    """A copy of one folder, with what its entries were when nobody had used it."""

    source: Path
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

    def bring(self, source: Path, target: Path) -> Copy | None:
        """Put the content of `source` at `target`; return a copy that can be taken back.

        Another content is at another `source`. None where the copy can't be kept: it is too large,
        or was laid over an existing folder. Raises OSError where nothing could be copied.
        """
        if target.exists():
            copy_folder(source, target)
            return None
        if (kept := self._take_matching(source)) is not None:
            with contextlib.suppress(OSError):
                if _repair(kept):
                    _move_into_room(kept, target)
                    return kept
            remove_tree(str(kept.at))
            remove_tree(str(target))
        copy_folder(source, target)
        made = Copy(source, target, _inode(target))
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
                kept_at = self._place / str(self._number)
            place.chmod(0o700)
            place.rename(kept_at)
            copy.at = kept_at
            with self._lock:
                self._free.append(copy)

    def _take_matching(self, source: Path) -> Copy | None:
        with self._lock:
            stale = [copy for copy in self._free if not copy.source.exists()]
            found = [copy for copy in self._free if copy.source == source]
            self._free = [
                copy for copy in self._free if copy not in stale and copy not in found[:1]
            ]
        for copy in stale:
            remove_tree(str(copy.at))
        return found[0] if found else None


def _entries(root: Path) -> Iterator[tuple[str, Stamp]]:
    """All entries below a folder, each before its content. Raises OSError for an unreadable one."""
    pending = [""]
    while pending:
        below = pending.pop()
        with os.scandir(root / below) as found:
            entries = list(found)
        for entry in entries:
            path = f"{below}/{entry.name}" if below else entry.name
            status = entry.stat(follow_symlinks=False)
            stamp = Stamp(
                status.st_mode,
                status.st_ctime_ns,
                status.st_ino,
                status.st_atime_ns,
                status.st_mtime_ns,
            )
            yield path, stamp
            if stamp.is_folder:
                pending.append(path)


def _repair(copy: Copy) -> bool:
    """Restore the entries to what was copied; False where a new copy is as fast.

    Raises OSError.
    """
    now: dict[str, Stamp] = {}
    for path, stamp in _entries(copy.at):
        now[path] = stamp
        if len(now) > len(copy.stamps) + MOST_REPAIRED:
            return False
    changed, folders = [], []
    for path, stamp in now.items():
        noted = copy.stamps.get(path)
        if noted is not None and stamp.is_folder and noted.is_folder:
            folders += [] if stamp.same(noted) else [path]
        elif noted is None or not stamp.same(noted):
            changed.append(path)
    missing = copy.stamps.keys() - now.keys()
    if len(changed) + len(folders) + len(missing) > MOST_REPAIRED:
        return False
    for path in folders:
        (copy.at / path).chmod(0o700)
    for path in changed:
        _remove(copy.at / path)
    # From the top down: a new folder inherits what the one above it passes on.
    for path in sorted(folders, key=_depth):
        _recreate_folder(copy.at / path, copy.source / path)
    # A folder that was removed or replaced took its content with it.
    removed = [path for path in copy.stamps if not os.path.lexists(copy.at / path)]
    for path in sorted(removed, key=_depth):
        if not os.path.lexists(copy.at / path):
            copy_folder(copy.source / path, copy.at / path)
    return True


def _move_into_room(copy: Copy, target: Path) -> None:
    """Move a copy's content into a new folder, set its times and record them. Raises OSError."""
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


def _recreate_folder(place: Path, like: Path) -> None:
    """Replace a folder by a new one with the same entries and nothing else of the old one."""
    fresh = place.with_name(f".{secrets.token_hex(8)}")
    fresh.mkdir(mode=0o700)
    for entry in list(place.iterdir()):
        entry.rename(fresh / entry.name)
    place.rmdir()
    fresh.rename(place)
    shutil.copystat(like, place, follow_symlinks=False)


def _inode(place: Path) -> tuple[int, int]:
    status = place.lstat()
    return status.st_dev, status.st_ino


def _depth(path: str) -> int:
    return path.count("/")


def _remove(place: Path) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(place.lstat().st_mode):
            shutil.rmtree(place)
        else:
            place.unlink()
