"""List every command that may test a repository, the most likely first, for trials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.language_tests import language_tests
from agentrunner.discovery.node_tests import node_tests
from agentrunner.discovery.python_tests import python_tests
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
