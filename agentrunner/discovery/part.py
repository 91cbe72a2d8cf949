"""The part of a repository that somebody stands in, such as a package of a monorepo."""

from __future__ import annotations

import os
import re
from pathlib import Path

from agentrunner.discovery.candidates import candidates_of
from agentrunner.discovery.found import FoundCommand

_TEST_FILE = re.compile(r"(?:conftest|(?:run[-_]?)?(?:all[-_]?)?tests?)[^/]*")
"""A file that makes its own folder one of tests, not a project that has tests."""


def part_of(repo: Path, folder: Path) -> str:
    """The nearest folder at or above `folder` that says how it is tested, relative to `repo`.

    "." for the root: there the search ends, whatever the root says.
    """
    if not folder.is_relative_to(repo):
        return "."
    for place in (folder, *folder.parents):
        if place == repo:
            break
        if any(_tells(found) for found in candidates_of(place)):
            return os.path.relpath(place, repo)
    return "."


def _tells(found: FoundCommand) -> bool:
    """Whether more than a test file that lies right there says that tests are run here."""
    return not _TEST_FILE.fullmatch(found.where.partition(",")[0])
