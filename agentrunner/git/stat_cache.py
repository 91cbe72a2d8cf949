"""What the last snapshot saw of each file, so that the next one reads only changed candidates.

Standard library only, like everything that `take` needs.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agentrunner.git.process import replaced

FileKey = bytes
"""Size, mtime, ctime, inode, mode: a file with the same key has the same content.

Packed by `KEY`, since of 100,000 files tuples of numbers are 20 MB more.
"""
KEY = struct.Struct("<QqqQI")

Seen = bytes
"""A file's key, the 20 bytes that name its blob, and a byte of the flags below."""

SETTLED = 1
"""The file had not changed for a while: its key is reliable."""
BORROWED = 2
"""Its blob is among the user's objects, not ours."""
STAND_IN = 4
"""Its blob is a line about a large file, not its content."""

MAGIC = b"agentrunner seen 1\n"
HEAD = struct.Struct("<QQ")
RECORD = KEY.size + 21
NAME = 20
CHECKSUM = 32
AT_ONCE = 10_000
"""Files that are written in one piece."""


def key_of(facts: os.stat_result) -> FileKey:
    """Return the facts by which a changed file differs from an unchanged one."""
    return KEY.pack(
        facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_mode
    )


def seen_file(key: FileKey, blob: bytes, flags: int) -> Seen:
    """Return what is kept about a file."""
    return key + blob + bytes((flags,))


def facts_of(key: FileKey) -> str:
    """Return size, mtime, ctime and inode in words, to be kept in JSON."""
    return " ".join(map(str, KEY.unpack(key)[:4]))


def size_of(key: FileKey) -> int:
    """Return the size of a file in bytes."""
    return int.from_bytes(key[:8], "little")


def mode_of(key: FileKey | Seen) -> int:
    """Return the mode of a file."""
    return int.from_bytes(key[KEY.size - 4 : KEY.size], "little")


def blob_of(seen: Seen) -> bytes:
    """Return the name of a file's blob."""
    return seen[KEY.size : KEY.size + NAME]


def flags_of(seen: Seen) -> int:
    """Return what else was recorded of a file."""
    return seen[-1]


class StatCache(NamedTuple):
    """The files and trees of the last snapshot."""

    files: dict[bytes, Seen]
    trees: list[bytes]

    @classmethod
    def load(cls, path: Path) -> StatCache:
        """Return what was saved; an empty cache if nothing was, or if it is damaged."""
        try:
            data = path.read_bytes()
        except OSError:
            return cls({}, [])
        body = data[:-CHECKSUM]
        if not body.startswith(MAGIC) or hashlib.sha256(body).digest() != data[-CHECKSUM:]:
            return cls({}, [])
        files, trees = HEAD.unpack_from(body, len(MAGIC))
        at = len(MAGIC) + HEAD.size
        middle = at + trees * NAME
        end = middle + files * RECORD
        names = body[end:].split(b"\0") if files else []
        records = (body[place : place + RECORD] for place in range(middle, end, RECORD))
        return cls(
            dict(zip(names, records, strict=True)),
            [body[place : place + NAME] for place in range(at, middle, NAME)],
        )

    def save(self, path: Path) -> None:
        """Write it in one step, for its owner only."""
        digest = hashlib.sha256()
        with replaced(path) as file:
            for part in self._parts():
                digest.update(part)
                file.write(part)
            file.write(digest.digest())

    def _parts(self) -> Iterator[bytes]:
        """The file's content in pieces: as a whole it is held twice while it is put together."""
        yield MAGIC + HEAD.pack(len(self.files), len(self.trees))
        yield b"".join(self.trees)
        records = iter(self.files.values())
        while some := b"".join(islice(records, AT_ONCE)):
            yield some
        names, before = iter(self.files), b""
        while some := b"\0".join(islice(names, AT_ONCE)):
            yield before + some
            before = b"\0"

    def own_objects(self) -> set[str]:
        """Return the names of the objects that our own store surely has."""
        own = {blob_of(seen).hex() for seen in self.files.values() if not flags_of(seen) & BORROWED}
        own.update(name.hex() for name in self.trees)
        return own
