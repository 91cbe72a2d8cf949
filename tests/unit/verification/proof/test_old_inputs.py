"""What a command says with its inputs as they were is believed when it says so twice."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.old_inputs import seen_twice
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.target import Measured, Target
from agentrunner.verification.world import SnapshotTrees

WORLD = SnapshotTrees("old", "new", "kept", "mixed", (), frozenset(), ())
TARGET = Target("test", "pytest", timeout_sec=60)
WORK, TIMED = NAMES = ("a.py::test_work", "b.py::test_in_time")


def measured(red: Sequence[str]) -> Measured:
    tests = [TestResult(one, "failed" if one in red else "passed", file=one[:4]) for one in NAMES]
    ran = cast("Any", SimpleNamespace(exit_code=1 if red else 0, timed_out=False))
    return Measured(TARGET, ran, Results("pytest", tuple(tests)))


class Scripted(Examination):
    """An examination whose further runs are red as lists say; the old tree's by `before`."""

    def script(self, again: Sequence[str], before: Sequence[Sequence[str]]) -> None:
        object.__setattr__(self, "again", again)
        object.__setattr__(self, "before", list(before))

    async def run(self, target: Target, tree: str, only: Sequence[str] = ()) -> Measured:
        before: list[Sequence[str]] = getattr(self, "before")  # noqa: B009 - set by the test
        if tree == "old":
            return measured(before.pop(0) if before else [])
        return measured(getattr(self, "again"))  # noqa: B009

    def claims(self, case: Case) -> Any:
        return SimpleNamespace(claimed=frozenset())


@pytest.mark.parametrize(
    ("first", "again", "before", "problem", "findings"),
    [
        ([WORK], [WORK], [], "a.py::test_work fails", []),
        ([TIMED], [], [], None, [True]),
        ([TIMED], [], [[TIMED]], "", [False]),
        ([WORK, TIMED], [WORK], [[TIMED]], "a.py::test_work fails", [False]),
        ([WORK], [TIMED], [], None, [True]),
    ],
    ids=["twice", "by chance", "by chance as before", "one of both by chance", "another by chance"],
)
async def test_a_test_that_is_red_by_chance_says_nothing_of_the_inputs(
    first: Sequence[str],
    again: Sequence[str],
    before: Sequence[Sequence[str]],
    problem: str | None,
    findings: Sequence[bool],
) -> None:
    differential = SimpleNamespace(followed_files=list, may_go=lambda *_, **__: False)
    unused = cast("Any", None)
    exam = Scripted(unused, cast("Any", differential), unused, unused, WORLD, (), unused)
    exam.script(again, before)
    case = Case(TARGET, measured([]).results, was_red=False, now=measured([]).results)
    seen = await seen_twice(exam, case, "kept", measured(first))
    assert (seen and seen[0]) == problem
    assert [(one.code, one.blocks) for one in exam.report.findings] == [
        ("flaky", blocks) for blocks in findings
    ]
