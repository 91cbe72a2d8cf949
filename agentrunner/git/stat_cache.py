"""What the last snapshot saw of each file, so that the next one reads only changed candidates.

Standard library only, like everything that `take` needs.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from agentrunner.git.process import replace

FileKey = tuple[int, int, int, int, int]
"""Size, mtime, ctime, inode, mode: a file with the same key has the same content."""

Seen = tuple[int, int, int, int, int, bytes, int]
"""A file's key, the name of its blob, and the flags below."""

SETTLED = 1
"""The file had not changed for a while: its key is reliable."""
BORROWED = 2
"""Its blob is among the user's objects, not ours."""
STAND_IN = 4
"""Its blob is a line about a large file, not its content."""

MAGIC = b"agentrunner seen 1\n"
HEAD = struct.Struct("<QQ")
RECORD = struct.Struct("<QqqQI20sB")
NAME = 20
CHECKSUM = 32


@dataclass
class StatCache:
    """The files and trees of the last snapshot."""

    files: dict[bytes, Seen] = field(default_factory=dict)
    trees: list[bytes] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> StatCache:
        """Return what was saved; an empty cache if nothing was, or if it is damaged."""
        try:
            data = path.read_bytes()
        except OSError:
            return cls()
        body = data[:-CHECKSUM]
        if not body.startswith(MAGIC) or hashlib.sha256(body).digest() != data[-CHECKSUM:]:
            return cls()
        files, trees = HEAD.unpack_from(body, len(MAGIC))
        at = len(MAGIC) + HEAD.size
        middle = at + trees * NAME
        end = middle + files * RECORD.size
        names = body[end:].split(b"\0") if files else []
        records = RECORD.iter_unpack(memoryview(body)[middle:end])
        return cls(
            dict(zip(names, records, strict=True)),
            [body[place : place + NAME] for place in range(at, middle, NAME)],
        )

    def save(self, path: Path) -> None:
        """Write it in one step, for its owner only."""
        body = b"".join(
            chain(
                (MAGIC, HEAD.pack(len(self.files), len(self.trees))),
                self.trees,
                (RECORD.pack(*seen) for seen in self.files.values()),
                (b"\0".join(self.files),),
            )
        )
        replace(path, body + hashlib.sha256(body).digest())

    def own_objects(self) -> set[str]:
        """Return the names of the objects that our own store surely has."""
        own = {seen[5].hex() for seen in self.files.values() if not seen[6] & BORROWED}
        own.update(name.hex() for name in self.trees)
        return own
