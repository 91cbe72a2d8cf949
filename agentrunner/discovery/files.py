"""List the files of a checkout without running git: from its index, else from the disk."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

from agentrunner.config.repo import is_repository
from agentrunner.discovery.git import git_dir

MOST_FILES = 200_000
MOST_INDEX = 64_000_000
"""Largest index that is read, in bytes."""
MOST_BYTES = 400_000
"""Most bytes read of one file."""
_FOLDER_MODE = 0o040000


def files_of(repo: Path, most: int = MOST_FILES) -> list[str] | None:
    """Return the paths of the files in a checkout; None if there are more than `most`.

    These are the files of git's index; without an index, all files on disk. Names that are not
    UTF-8 and missing files are left out. Blocks.
    """
    index = _index_of(repo)
    found = _tracked(index, _hash_size(repo)) if index is not None else None
    if found is None:
        return _on_disk(repo, most)
    return found if len(found) <= most else None


def reader_of(repo: Path) -> Callable[[str], bytes | None]:
    """Return a reader of a checkout's files (first 400,000 bytes); links must stay inside it."""
    root = Path(os.path.realpath(repo))

    def read(path: str) -> bytes | None:
        try:
            place = Path(os.path.realpath(root / path))
            if not place.is_relative_to(root) or not place.is_file():
                return None
            with place.open("rb") as file:
                return file.read(MOST_BYTES)
        except (OSError, ValueError):
            return None

    return read


def _index_of(repo: Path) -> bytes | None:
    place = git_dir(repo) / "index"
    try:
        if not place.is_file() or place.stat().st_size > MOST_INDEX:
            return None
        return place.read_bytes()
    except OSError:
        return None


def _hash_size(repo: Path) -> int:
    for place in (git_dir(repo), git_dir(repo).parent.parent):
        try:
            text = (place / "config").read_text(encoding="utf-8", errors="replace")[:100_000]
        except OSError:
            continue
        return 32 if re.search(r"^\s*objectformat\s*=\s*sha256", text, re.M | re.I) else 20
    return 20


def _tracked(index: bytes, hash_size: int) -> list[str] | None:
    """Return the paths of an index of version 2 to 4; None if it cannot be read."""
    try:
        magic, version, count = struct.unpack_from(">4sII", index)
        if magic != b"DIRC" or version not in (2, 3, 4) or b"link" in index[-200:-hash_size]:
            return None
        return _entries(index, version, count, hash_size)
    except (struct.error, IndexError, ValueError):
        return None


def _entries(index: bytes, version: int, count: int, hash_size: int) -> list[str]:
    found: dict[str, None] = {}
    offset, previous = 12, b""
    for _ in range(count):
        start = offset
        mode = struct.unpack_from(">I", index, offset + 24)[0]
        flags = struct.unpack_from(">H", index, offset + 40 + hash_size)[0]
        offset += 42 + hash_size + 2 * bool(flags & 0x4000)
        if version == 4:
            strip, offset = _varint(index, offset)
            end = index.index(b"\0", offset)
            name = previous[: len(previous) - strip] + index[offset:end]
            offset, previous = end + 1, name
        else:
            end = index.index(b"\0", offset)
            name = index[offset:end]
            offset = start + ((end - start) // 8 + 1) * 8
        if mode & 0o170000 not in (_FOLDER_MODE, 0o160000):
            try:
                found[name.decode("utf-8")] = None
            except UnicodeDecodeError:
                continue
    return list(found)


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Decode git's offset encoding: how many bytes of the previous name are dropped."""
    value = data[offset] & 0x7F
    while data[offset] & 0x80:
        offset += 1
        value = ((value + 1) << 7) | (data[offset] & 0x7F)
    return value, offset + 1


def _on_disk(repo: Path, most: int) -> list[str] | None:
    found: list[str] = []
    for folder, names, files in os.walk(repo):
        inner = (name for name in names if name != ".git")
        names[:] = [name for name in inner if not is_repository(Path(folder, name))]
        place = os.path.relpath(folder, repo)
        for name in files:
            path = name if place == "." else f"{place}/{name}"
            if path.isprintable():
                found.append(path)
        if len(found) > most:
            return None
    return sorted(found)
