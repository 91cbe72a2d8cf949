"""The part of a repository around a folder, such as a package of a monorepo."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from agentrunner.discovery.candidates import candidates_of
from agentrunner.text.lazy_regex import lazy_regex

_TEST_FILE = lazy_regex(r"(?:conftest|(?:run[-_]?)?(?:all[-_]?)?tests?)[^/]*")
"""A test file shows that its folder holds tests, not that it is a project with tests."""


MOST_FOLDERS = 200
"""Folders in which parts are looked for; listing further ones would take longer than it helps."""


def first_part(repo: Path) -> str:
    """Return a folder, at most two below the root, that says how it is tested; "" for none."""
    folders = (one for depth in ("*", "*/*") for one in sorted(repo.glob(depth)) if one.is_dir())
    for folder in islice(folders, MOST_FOLDERS):
        shown = not any(name[0] == "." for name in folder.relative_to(repo).parts)
        if shown and folder.name != "node_modules" and part_of(repo, folder) != ".":
            return str(folder.relative_to(repo))
    return ""


def part_of(repo: Path, folder: Path) -> str:
    """Return the nearest folder at or above `folder` with a test command, relative to `repo`.

    "." for the root: the search ends there in any case.
    """
    if not folder.is_relative_to(repo):
        return "."
    for place in (folder, *folder.parents):
        if place == repo:
            break
        places = (found.where.partition(",")[0] for found in candidates_of(place))
        if not all(map(_TEST_FILE.fullmatch, places)):
            return os.path.relpath(place, repo)
    return "."
