"""The user's git index, read as data: which files are tracked, and what git last saw of them.

Standard library only, like everything that `take` needs.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Iterator
from typing import NamedTuple

from agentrunner.git.stat_cache import KEY

MOST_INDEX = 1 << 28
"""Bytes; the index of a million files has half of that."""

ASSUME_UNCHANGED, EXTENDED, STAGES, LENGTH = 0x8000, 0x4000, 0x3000, 0x0FFF
SECOND = 1_000_000_000


class IndexDamaged(ValueError):
    """An index that cannot be read, or needs another file to be read with it."""


class UserIndex(NamedTuple):
    """An index as it was at one moment."""

    entries: dict[bytes, bytes]
    """By path: the key as far as an index has it (32 bits of size and inode), then the blob.

    Only for entries without a flag or a conflict, and only if blobs are named by SHA-1.
    """
    tracked: dict[bytes, int]
    """The mode by path: all of them, also of conflicts, submodules and flagged entries."""
    written_ns: int = 0
    """The time of the last write, or of any other change if that was earlier."""


def read_index(path: bytes, *, sha256: bool = False) -> UserIndex | None:
    """Return the index in a file; None if there is none. Raises IndexDamaged."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_INDEX:
            return None
        data = file.read(facts.st_size)  # `read` holds room for as much as it is asked for
    written = min(facts.st_mtime_ns, facts.st_ctime_ns)
    return parse(data, 32 if sha256 else 20)._replace(written_ns=written)


def parse(data: bytes, name_bytes: int = 20) -> UserIndex:
    """Parse an index of version 2, 3 or 4; raises IndexDamaged."""
    try:
        end = _checked(data, name_bytes)
        return _parse(data, end, name_bytes)
    except IndexDamaged:
        raise
    except (struct.error, IndexError, ValueError) as error:
        raise IndexDamaged("the index ends too early") from error


def _checked(data: bytes, name_bytes: int) -> int:
    """Return where the checksum begins; it must be right unless it was left out."""
    if data[:4] != b"DIRC" or len(data) < 12 + name_bytes:
        raise IndexDamaged("this is no index")
    end = len(data) - name_bytes
    digest = hashlib.sha1 if name_bytes == 20 else hashlib.sha256
    if data[end:] not in (bytes(name_bytes), digest(data[:end]).digest()):
        raise IndexDamaged("the checksum is wrong")
    return end


def _parse(data: bytes, end: int, name_bytes: int) -> UserIndex:
    version, count = struct.unpack_from(">II", data, 4)
    if version not in (2, 3, 4):
        raise IndexDamaged(f"version {version} is unknown")
    found = UserIndex({}, {})
    fixed = struct.Struct(f">10I{name_bytes}sH")
    at, name = 12, b""
    for _ in range(count):
        start = at
        (ctime, ctime_ns, mtime, mtime_ns, _dev, inode, mode, _uid, _gid, size, blob, flags) = (
            fixed.unpack_from(data, at)
        )
        at += fixed.size
        plain = not flags & (ASSUME_UNCHANGED | STAGES)
        if flags & EXTENDED:
            if version < 3:
                raise IndexDamaged("an entry has flags that its version does not")
            # Skip-worktree, intent-to-add, or a flag of a later git.
            plain = plain and data[at : at + 2] == b"\0\0"
            at += 2
        if version == 4:
            strip, at = _number(data, at)
            stop = data.index(b"\0", at, end) if at < end else end
            name = name[: len(name) - strip] + data[at:stop]
            at = stop + 1
        else:
            length = flags & LENGTH
            stop = at + length if length < LENGTH else data.index(b"\0", at, end)
            name = data[at:stop]
            at = stop + 8 - (stop - start) % 8
        if at > end:
            raise IndexDamaged("the index ends too early")
        found.tracked[name] = mode
        if plain and name_bytes == 20:
            times = (mtime * SECOND + mtime_ns, ctime * SECOND + ctime_ns)
            found.entries[name] = KEY.pack(size, *times, inode, mode) + blob
    for kind in _extensions(data, at, end):
        if kind[:1].islower() and kind != b"sdir":
            # Half of a split index, or a mandatory extension that is unknown here.
            raise IndexDamaged(f"the index has an extension {kind!r}")
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number in git's encoding of offsets, and where it ends."""
    byte = data[at]
    value = byte & 127
    at += 1
    while byte & 128:
        byte = data[at]
        value = (value + 1) << 7 | byte & 127
        at += 1
    return value, at


def _extensions(data: bytes, at: int, end: int) -> Iterator[bytes]:
    while at < end:
        (size,) = struct.unpack_from(">I", data, at + 4)
        yield data[at : at + 4]
        at += 8 + size
