"""Find how a repository is tested, from its files."""

from __future__ import annotations

from pathlib import Path

from agentrunner.discovery.candidates import candidates_of
from agentrunner.discovery.found import FoundCommand


def detect_tests(repo: Path) -> FoundCommand | None:
    """Return how the repository is tested: by CI, else by its build files, else None.

    Nothing is tried: a command that was seen to run is better (`commands/trying.py`).
    """
    return next(iter(candidates_of(repo)), None)


def detect_test(repo: Path) -> str | None:
    """Return the command alone, for `test: auto`."""
    found = detect_tests(repo)
    return found.command if found else None
