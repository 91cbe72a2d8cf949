"""Read files of a repository that may be hostile."""

from __future__ import annotations

import os
from pathlib import Path

from agentrunner.config.text_files import read_text
from agentrunner.errors import UsageError

_FILES = 50
"""Most files per folder, in the order of their names."""


def read_inside(repo: Path, name: str) -> str:
    """Return a small UTF-8 text file of the repository; "" if it is missing, outside or other.

    Links are followed only within the repository.
    """
    try:
        return read_text(repo / name, name=name, within=(repo,))
    except (UsageError, ValueError):
        return ""


def exists(repo: Path, name: str) -> bool:
    """Whether the repository has this entry, of whatever kind."""
    return os.path.lexists(repo / name)


def names_inside(repo: Path, folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """Return the paths of a folder's files with these suffixes, relative to the repository."""
    place = Path(os.path.realpath(repo / folder))
    if not place.is_relative_to(os.path.realpath(repo)):
        return []
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(suffixes))
    except OSError:
        return []
    # A line break in a name could become a setting in the file that `init` writes.
    return [f"{folder}/{name}" for name in names[:_FILES] if name.isprintable()]
