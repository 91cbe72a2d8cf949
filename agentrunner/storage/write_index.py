"""Writes a git index with the present file facts (stat) of a checkout.

No git is started: the contents are known to be what the entries say, so no file has to be read.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from os import stat_result

LENGTH = 0x0FFF
SECOND = 1_000_000_000
LOW = 0xFFFF_FFFF
_FIXED = struct.Struct(">10I20sH")

IndexEntry = tuple[bytes, int, bytes, stat_result | None]
"""Path, git's mode, the blob's SHA-1 as bytes, and the file's stat; with None git reads the
file."""


def index_of(entries: Iterable[IndexEntry]) -> bytes:
    """Return an index of version 2 with these entries, each path once."""
    parts = []
    for path, mode, blob, facts in sorted(entries, key=lambda entry: entry[0]):
        stats = (0,) * 6 if facts is None else _times_and_inode(facts)
        owner = (0, 0, 0) if facts is None else (facts.st_uid, facts.st_gid, facts.st_size & LOW)
        head = _FIXED.pack(*stats, mode, *owner, blob, min(len(path), LENGTH))
        size = len(head) + len(path)
        parts.append(head + path + bytes(8 - size % 8))
    data = struct.pack(">4sII", b"DIRC", 2, len(parts)) + b"".join(parts)
    return data + hashlib.sha1(data).digest()


def _times_and_inode(facts: stat_result) -> tuple[int, int, int, int, int, int]:
    return (
        facts.st_ctime_ns // SECOND & LOW,
        facts.st_ctime_ns % SECOND,
        facts.st_mtime_ns // SECOND & LOW,
        facts.st_mtime_ns % SECOND,
        facts.st_dev & LOW,
        facts.st_ino & LOW,
    )
