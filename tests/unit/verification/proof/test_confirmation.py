"""What passed once has to pass again, in a run of its own or along with canaries."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentrunner.verification.canaries.claimed_tests import FailingEnds
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.model import Results, TestResult
from tests.kit.examinations import Scripted

TARGET = Target("test", "pytest", timeout_sec=60)
NAMES = ("a.py::test_new", "a.py::test_case[1]", "a.py::test_case[2]", "b.py::test_other")


def measured(red: Sequence[str], names: Sequence[str] = NAMES) -> Measured:
    tests = tuple(
        TestResult(one, "failed" if one in red else "passed", file=one[:4]) for one in names
    )
    ran = cast("Any", SimpleNamespace(exit_code=1 if red else 0, timed_out=False))
    return Measured(TARGET, ran, Results("pytest", tests))


def examination(alone: Sequence[str], whole: Sequence[str]) -> Examination:
    """One whose runs on the new tree are red as lists say, one after the other."""
    runs = {True: list(alone), False: list(whole)}

    def answer(tree: str, only: Sequence[str]) -> Measured:
        if tree == "old":
            return measured([], only)
        red = runs[bool(only)].pop(0)
        return measured([red] if red else [], only or NAMES)

    verifier = SimpleNamespace(test=SimpleNamespace(confirm="full"))
    differential = SimpleNamespace(permitted=lambda allowed: frozenset())
    return Scripted.of(answer, verifier=verifier, differential=differential)


def case() -> Case:
    return Case(TARGET, None, was_red=True, now=measured([]).results)


NEW, OTHER = NAMES[0], NAMES[3]


@pytest.mark.parametrize(
    ("alone", "whole", "steady"),
    [
        ([""], [], True),
        ([NEW] * 6, [""], True),
        ([NEW, ""], [""], False),
        ([NEW, NEW, NEW, ""], [""], False),
        ([NEW] * 6, [NEW], False),
    ],
    ids=["green", "green only after others", "by chance", "by chance, later", "red with others"],
)
async def test_a_claimed_test(alone: list[str], whole: list[str], steady: bool) -> None:
    exam = examination([*alone, *[""] * 5], whole)
    assert await exam.confirmed_green(case(), [NEW]) is steady
    assert bool(exam.report.findings) is not steady


async def seen_along(red: Sequence[str], alone: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether other tests are confirmed where `red` failed along with the failing ends."""
    tree = cast("Any", SimpleNamespace(names=(NEW, NAMES[1])))
    ends = FailingEnds([(tree, measured([NEW, NAMES[1], *red]))])
    exam = examination(alone, whole)
    return await exam.others_green_again(case(), ends)


async def test_what_a_run_with_failing_ends_saw_green_is_confirmed() -> None:
    assert await seen_along([], [], [])


async def test_another_case_of_a_failing_test_is_asked_by_itself() -> None:
    assert await seen_along([NAMES[2]], [""], [])
    assert not await seen_along([NAMES[2]], [NAMES[2], *[""] * 5], [])


async def test_what_a_failing_test_leaves_behind_is_no_chance() -> None:
    assert await seen_along([OTHER], [""] * 5, [])


async def test_chance_is_told_from_it() -> None:
    assert not await seen_along([OTHER], ["", OTHER, "", "", ""], [])


async def test_one_that_is_green_only_after_others_is_asked_in_a_whole_run() -> None:
    assert await seen_along([OTHER], [OTHER] * 5, [""])


async def test_what_was_not_reached_is_asked_in_a_whole_run() -> None:
    tree = cast("Any", SimpleNamespace(names=(NEW,)))
    ends = FailingEnds([(tree, measured([NEW], NAMES[:1]))])
    assert await examination([], [""]).others_green_again(case(), ends)
    assert not await examination([], [OTHER]).others_green_again(case(), ends)
