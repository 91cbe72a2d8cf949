"""Findings as they are made: what a person reads, and what is saved of it."""

from __future__ import annotations

import pytest

from agentrunner.state.run_state import Finding
from agentrunner.verification.evidence import findings
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.world import InputChange

MANY = [f"src/{number}.c" for number in range(60)]
TEST = Target("test", "make test")


@pytest.mark.parametrize(
    "finding",
    [
        findings.not_kept(MANY),
        findings.left_in_submodule("src", MANY),
        findings.links_out([(path, "../x") for path in MANY]),
        findings.looks_at_nothing(TEST, MANY),
        findings.inputs_written(MANY),
        findings.packages_changed(TEST, MANY, []),
        findings.not_built_again(TEST, ["app"], MANY),
    ],
    ids=lambda finding: str(finding.code),
)
def test_of_many_paths_so_many_are_kept(finding: Finding) -> None:
    assert finding.paths == MANY[: findings.MOST_PATHS]


def test_a_command_that_ended_late_is_given_more_time_first() -> None:
    change = InputChange("tests/test_a.py", "pytest collects it", "modified")
    problems = (f"{findings.TIMED_OUT} 60 s", "exit 1: test_a")
    late, red = (
        findings.tests_changed(Target("test", "pytest"), [change], problem, cut=False, lines="")
        for problem in problems
    )
    assert late.remedy == findings.MORE_TIME + red.remedy
