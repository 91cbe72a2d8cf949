"""A check that would fetch its tool at run time never started, and a sentence says why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrunner.verification.results.counts import Counts
from agentrunner.verification.rooms.start_up import why_not_started

NPX = """npm error code ENOTCACHED
npm error request to https://npm.example.org/playwright failed: cache mode is 'only-if-cached' \
but no cached response is available.
npm error A complete log of this run can be found in: /home/.npm/_logs/debug-0.log
"""
UVX = """error: No solution found when resolving tool dependencies
  cause: Because ruffx was not found in the cache and you require ruffx, we can conclude that \
your requirements are unsatisfiable.
"""
PIPX = """Fatal error from pip prevented installation.
    ERROR: Could not find a version that satisfies the requirement cowsay (from versions: none)
    ERROR: No matching distribution found for cowsay
Error installing cowsay.
"""


@dataclass
class Ran:
    tail: str
    exit_code: int = 1
    counts: Counts | None = None


@pytest.mark.parametrize(
    ("shell", "said", "tool"),
    [
        ("npx playwright test", NPX, "playwright"),
        ("npm exec @scope/tool", NPX.replace("/playwright", "/@scope%2ftool"), "@scope/tool"),
        ("uvx ruffx check", UVX, "ruffx"),
        ("pipx run cowsay hi", PIPX, "cowsay"),
    ],
)
@pytest.mark.parametrize("is_test", [True, False])
def test_a_tool_that_is_not_there_is_named(
    shell: str, said: str, tool: str, is_test: bool, tmp_path: Path
) -> None:
    why = why_not_started(shell, Ran(said), tmp_path, is_test=is_test)
    assert why.startswith(f"{tool} is not installed") and "task.setup.command" in why


def test_tests_that_ran_and_only_speak_of_it_have_started(tmp_path: Path) -> None:
    ran = Ran(NPX + "1 failed, 2 passed in 0.1s\n", counts=Counts(passed=2, failed=1, skipped=0))
    assert why_not_started("pytest", ran, tmp_path, is_test=True) == ""
