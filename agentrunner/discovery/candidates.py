"""List the commands that may test a repository or a part of it, the most likely first."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.language_tests import language_tests, node_tests, python_tests
from agentrunner.discovery.targets import by_script, by_target
from agentrunner.discovery.workflows import ci_tests

MOST = 12
"""Most candidates per repository."""


def candidates_of(repo: Path) -> list[FoundCommand]:
    """Return the commands of CI, then the repository's own test scripts, then those of build files.

    Commands that must install something come after all others.
    """
    by_command: dict[str, FoundCommand] = {}
    for found in _find_all(repo):
        by_command.setdefault(found.command, found)
    ranked = sorted(by_command.values(), key=lambda found: bool(found.needs))
    return ranked[:MOST]


def _find_all(repo: Path) -> Iterator[FoundCommand]:
    yield from ci_tests(repo)
    yield from by_script(repo)
    yield from by_target(repo)
    yield from node_tests(repo)
    yield from python_tests(repo)
    yield from language_tests(repo)


def detect_tests(repo: Path) -> FoundCommand | None:
    """Return how the repository is tested: by CI, else by its build files, else None.

    Nothing is tried: a command that was seen to run is better (`commands/trying.py`).
    """
    return next(iter(candidates_of(repo)), None)


def detect_test(repo: Path) -> str | None:
    """Return the command alone, for `test: auto`."""
    found = detect_tests(repo)
    return found.command if found else None


_TEST_FILE = re.compile(r"(?:conftest|(?:run[-_]?)?(?:all[-_]?)?tests?)[^/]*")
"""A test file shows that its folder holds tests, not that it is a project with tests."""


def part_of(repo: Path, folder: Path) -> str:
    """Return the nearest folder at or above `folder` with a test command, relative to `repo`.

    "." for the root: the search ends there in any case.
    """
    if not folder.is_relative_to(repo):
        return "."
    for place in (folder, *folder.parents):
        if place == repo:
            break
        if any(_is_of_project(found) for found in candidates_of(place)):
            return os.path.relpath(place, repo)
    return "."


def _is_of_project(found: FoundCommand) -> bool:
    """Whether the command comes from more than a test file in that folder."""
    return not _TEST_FILE.fullmatch(found.where.partition(",")[0])
