"""A command that never ends on a changed copy does not take its whole limit."""

from __future__ import annotations

import pytest

from agentrunner.verification.evidence.target import Target
from agentrunner.verification.proof.examination import Examination
from tests.kit.examinations import UNUSED, trees


@pytest.mark.parametrize(
    ("took", "limit", "tree", "given"),
    [
        (0.5, 600, "changed", 30),
        (12, 600, "changed", 120),
        (90, 600, "changed", 600),
        (0.5, 10, "changed", 10),
        (0.5, 600, "new", 600),
        (0.5, 600, "old", 600),
        (None, 600, "changed", 600),
    ],
)
def test_the_time_of_a_command_by_tree(
    took: float | None, limit: float, tree: str, given: float
) -> None:
    known = {"test": took} if took is not None else {}
    exam = Examination(UNUSED, UNUSED, trees(), (), UNUSED, took=known)
    assert exam._cut_short(Target("test", "make", timeout_sec=limit), tree).timeout_sec == given
