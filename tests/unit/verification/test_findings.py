"""Findings as they are made: what a person reads, and what is saved of it."""

from __future__ import annotations

import pytest

from agentrunner.state.run_state import Finding
from agentrunner.verification import findings
from agentrunner.verification.target import Target

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
