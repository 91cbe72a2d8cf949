"""Reads reports and manifests: no pipe or device is followed, and the amount is limited."""

from __future__ import annotations

import configparser
import fnmatch
import json
import os
import posixpath
import stat
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentrunner.folders import walk

MOST_BYTES = 64 * 1024 * 1024
"""Bytes that are read of all files of one pattern together."""
MOST_FILES = 20_000
MOST_READ = 100_000
"""Bytes of a script or manifest that are read for the commands in it."""
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ReportFile(Struct, frozen=True):
    """One file of a report."""

    path: str
    """Relative to the report's folder."""
    content: bytes
    cut: bool = False
    """Whether the file is longer than what is read of it."""


def reports(place: Path, pattern: str) -> Iterator[ReportFile]:
    """The regular files directly in `place` whose names match, sorted by name."""
    return reports_below(place, "", pattern, deep=False)


def reports_below(
    place: Path, folder: str, pattern: str = "*", *, deep: bool = True
) -> Iterator[ReportFile]:
    """All regular files below `place/folder` whose names match, sorted by path.

    Their paths are relative to that folder. Without `deep` none of its folders is entered.
    """
    budget = MOST_BYTES
    for path in _listed(place / folder, pattern, deep=deep):
        content = read_plain(place, posixpath.normpath(posixpath.join(folder, path)), budget + 1)
        if content is None:
            continue
        yield ReportFile(path, content[:budget], len(content) > budget)
        budget -= min(budget, len(content))


def read_small(place: Path, name: str, most: int = 4096) -> str:
    """The start of one small file; "" where it cannot be read."""
    return (read_plain(place, name, most) or b"").decode("utf-8", "replace")


def text_of(file: Path, most: int) -> str:
    """The start of a regular file of a repository or a person, links followed; "" without one."""
    place, name = os.path.split(os.path.realpath(file))
    return read_small(Path(place), name, most)


def _listed(top: Path, pattern: str, *, deep: bool) -> list[str]:
    found: list[str] = []
    try:
        for folder, inner, names in walk(top):
            below = os.path.relpath(folder, top)
            found += [posixpath.normpath(posixpath.join(below, name)) for name in names]
            if not deep or len(found) > MOST_FILES:
                inner.clear()
    except OSError:
        pass
    matching = [path for path in found if fnmatch.fnmatchcase(path.rsplit("/", 1)[-1], pattern)]
    return sorted(matching)[:MOST_FILES]


def read_plain(place: Path, path: str, most: int) -> bytes | None:
    """At most `most` bytes of a regular file below `place`; None where it cannot be read.

    No part of the path below `place` may be a link.
    """
    descriptors: list[int] = []
    try:
        descriptors.append(os.open(place, PLAIN | os.O_DIRECTORY))
        *folders, name = path.split("/")
        for folder in folders:
            descriptors.append(os.open(folder, PLAIN | os.O_DIRECTORY, dir_fd=descriptors[-1]))
        descriptors.append(os.open(name, PLAIN, dir_fd=descriptors[-1]))
        if not stat.S_ISREG(os.fstat(descriptors[-1]).st_mode):
            return None
        return _up_to(descriptors[-1], most)
    except (OSError, ValueError):
        return None
    finally:
        for fd in descriptors:
            os.close(fd)


def _up_to(fd: int, most: int) -> bytes:
    pieces = []
    while most > 0 and (piece := os.read(fd, min(most, 1 << 20))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def toml_of(text: str) -> dict[str, Any]:
    """The table of a TOML text; an empty one where it cannot be read."""
    return _read(tomllib.loads, text)


def json_of(text: str) -> dict[str, Any]:
    """The object of a JSON text; an empty one where there is none or it cannot be read."""
    return _read(json.loads, text)


def ini_of(text: str) -> configparser.RawConfigParser:
    """The sections of an ini file; none where it cannot be read."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return configparser.RawConfigParser()
    return parser


def table(value: object, *names: str) -> dict[str, Any]:
    """The table at the end of a chain of keys; empty if something else is there."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def texts(value: object) -> list[str]:
    """A string as a list, or the strings in a list."""
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _read(parse: Callable[[str], object], text: str) -> dict[str, Any]:
    try:
        return table(parse(text))
    except (ValueError, RecursionError):
        return {}
