"""Finds small files that hold credentials, so that no sandbox shows them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from agentrunner.folders import walk
from agentrunner.text.lazy_regex import lazy_regex

MOST_BYTES = 64 << 10
"""A larger file is not searched: it is a download, not something that a tool wrote down."""
MOST_FILES = 200_000
"""With more files than this, nothing is searched and the folder is not shown."""

_VALUE = rb"[\"']?\s*[=:]\s*[\"']?(?!\s*[\"'\[{$<(]|\$|null\b|none\b|true\b|false\b)\S{4}"
_CREDENTIAL = lazy_regex(
    rb"://[^\s/:@\"'<>]{1,200}:[^\s/@\"'<>]{1,200}@"  # https://user:pass@host
    rb"|_auth(?:token)?[\"']?\s*[=:]\s*[\"']?[^\s\"'$]"
    rb"|(?i:\b[\w.-]{0,40}(?:token|passw(?:or)?d|secret|api[_-]?key)" + _VALUE + rb")"
    rb"|(?i:authorization[\"']?\s*[=:]\s*[\"']?(?:basic|bearer|token)\s)"
    rb"|(?i:<(?:password|token|passphrase|privatekey)>\s*[^\s<$])"
    rb"|(?m:^\s*machine\s+\S+\s+login\s+\S+)"
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)


class TooMany(Exception):
    """There are more than MOST_FILES files to search."""


def holds_secret(text: bytes) -> bool:
    """Whether this looks like a credential: in a URL, a setting, a header or a key."""
    return _CREDENTIAL.search(text) is not None


def secrets_in(root: Path, skipped: Sequence[str]) -> Iterator[str]:
    """Yield the paths below `root` of small files that hold credentials; links are not followed.

    Files that match a pattern of `skipped` (`*` for any text, also below it) are not searched. A
    file that cannot be read is skipped: the sandbox's user cannot read it either. Raises TooMany.
    """
    remaining = MOST_FILES
    for here, folders, files in walk(root):
        below = os.path.relpath(here, root)
        prefix = "" if below == "." else f"{below}/"
        folders[:] = [name for name in folders if not _matches(f"{prefix}{name}", skipped)]
        remaining -= len(files)
        if remaining < 0:
            raise TooMany
        for name in files:
            path = f"{prefix}{name}"
            if not _matches(path, skipped) and _file_holds_secret(os.path.join(here, name)):  # noqa: PTH118
                yield path


def _file_holds_secret(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        text = os.read(fd, MOST_BYTES + 1)
    except OSError:
        return False
    finally:
        os.close(fd)
    return len(text) <= MOST_BYTES and holds_secret(text)


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)
