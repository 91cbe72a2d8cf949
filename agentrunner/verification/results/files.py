"""Reports as files: no link, pipe or device is followed, and only so much is read."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 64 * 1024 * 1024
"""What is read of all files of one pattern together."""
MOST_FILES = 20_000
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Report:
    """One file of a report."""

    path: str
    """Below the report's folder."""
    content: bytes
    cut: bool = False
    """Whether more was there than is read."""


def reports(place: Path, pattern: str) -> Iterator[Report]:
    """The regular files directly in `place` whose names match, in the order of their names."""
    yield from _read_all(place, ".", pattern, deep=False)


def reports_below(place: Path, folder: str, pattern: str = "*") -> Iterator[Report]:
    """All regular files below `place/folder` whose names match, in the order of their paths.

    Their paths are those below that folder.
    """
    yield from _read_all(place, folder, pattern, deep=True)


def read_small(place: Path, name: str, most: int = 4096) -> str:
    """The start of one small file, "" where it cannot be read."""
    return (read_plain(place, name, most) or b"").decode("utf-8", "replace")


def _read_all(place: Path, folder: str, pattern: str, *, deep: bool) -> Iterator[Report]:
    budget = MOST_BYTES
    for path in _listed(place / folder, pattern, deep=deep):
        content = read_plain(place, posixpath.normpath(posixpath.join(folder, path)), budget + 1)
        if content is None:
            continue
        yield Report(path, content[:budget], len(content) > budget)
        budget -= min(budget, len(content))


def _listed(top: Path, pattern: str, *, deep: bool) -> list[str]:
    found: list[str] = []
    try:
        for folder, inner, names in os.walk(top, followlinks=False):
            below = os.path.relpath(folder, top)
            found += [posixpath.normpath(posixpath.join(below, name)) for name in names]
            if not deep or len(found) > MOST_FILES:
                inner.clear()
    except OSError:
        pass
    matching = [path for path in found if fnmatch.fnmatchcase(path.rsplit("/", 1)[-1], pattern)]
    return sorted(matching)[:MOST_FILES]


def read_plain(place: Path, path: str, most: int) -> bytes | None:
    """At most so many bytes of a regular file below `place`; None where it is none.

    No part of the path below `place` may be a link.
    """
    held: list[int] = []
    try:
        held.append(os.open(place, PLAIN | os.O_DIRECTORY))
        *folders, name = path.split("/")
        for folder in folders:
            held.append(os.open(folder, PLAIN | os.O_DIRECTORY, dir_fd=held[-1]))
        held.append(os.open(name, PLAIN, dir_fd=held[-1]))
        if not stat.S_ISREG(os.fstat(held[-1]).st_mode):
            return None
        return _up_to(held[-1], most)
    except (OSError, ValueError):
        return None
    finally:
        for fd in held:
            os.close(fd)


def _up_to(fd: int, most: int) -> bytes:
    pieces = []
    while most > 0 and (piece := os.read(fd, min(most, 1 << 20))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)
