"""List every command that may test a repository, the most likely first, for trials."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.language_tests import language_tests
from agentrunner.discovery.node_tests import node_tests
from agentrunner.discovery.python_tests import python_tests
from agentrunner.discovery.targets import by_script, by_target, recipes
from agentrunner.discovery.workflows import ci_tests, runs_each_environment

MOST = 12
"""Most candidates per repository."""


def candidates_of(repo: Path) -> list[FoundCommand]:
    """Return the commands of CI, then the repository's own test scripts, then those of build files.

    Commands that must install something come after all others, and so do tools that run the tests
    once in each of their environments.
    """
    by_command: dict[str, FoundCommand] = {}
    for found in _find_all(repo):
        by_command.setdefault(found.command, found)
    ranked = sorted(by_command.values(), key=partial(_is_later, repo))
    return ranked[:MOST]


def _is_later(repo: Path, found: FoundCommand) -> bool:
    lines = [line for text in recipes(repo, found.command) for line in text.splitlines()]
    return bool(found.needs) or any(map(runs_each_environment, lines))


def _find_all(repo: Path) -> Iterator[FoundCommand]:
    yield from ci_tests(repo)
    yield from by_script(repo)
    yield from by_target(repo)
    yield from node_tests(repo)
    yield from python_tests(repo)
    yield from language_tests(repo)
