"""What a command says with its inputs as they were is believed when it says so twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.old_inputs import OTHERWISE, in_words, seen_twice
from agentrunner.verification.proof.unexplained_files import Unexplained, hold_without
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.results.names import unloaded
from tests.kit.examinations import Scripted

TARGET = Target("test", "pytest", timeout_sec=60)
WORK, TIMED = NAMES = ("a.py::test_work", "b.py::test_in_time")


def measured(red: Sequence[str]) -> Measured:
    tests = [TestResult(one, "failed" if one in red else "passed", file=one[:4]) for one in NAMES]
    ran = cast("Any", SimpleNamespace(exit_code=1 if red else 0, timed_out=False))
    return Measured(TARGET, ran, Results("pytest", tuple(tests)))


ONCE = f"; {OTHERWISE}"


@pytest.mark.parametrize(
    ("first", "again", "before", "claimed", "problem", "noted"),
    [
        ([WORK], [WORK], [], [], f"{WORK} fails", False),
        ([TIMED], [], [], [], f"{TIMED} fails{ONCE}", False),
        ([TIMED], [], [[TIMED]], [], "", True),
        ([TIMED], [], [[TIMED]], [TIMED], f"{TIMED} fails{ONCE}", False),
        ([WORK, TIMED], [WORK], [[TIMED]], [], f"{WORK} fails", True),
        ([WORK], [TIMED], [], [], f"{WORK} fails{ONCE}", False),
    ],
    ids=["twice", "once", "by chance as before", "claimed", "one of two", "another one"],
)
async def test_a_test_that_was_red_by_chance_before_says_nothing_of_the_inputs(
    first: Sequence[str],
    again: Sequence[str],
    before: Sequence[Sequence[str]],
    claimed: Sequence[str],
    problem: str,
    noted: bool,
) -> None:
    left = list(before)

    def answer(tree: str, only: Sequence[str]) -> Measured:
        if tree == "old":
            return measured(left.pop(0) if left else [])
        return measured(again)

    claims = SimpleNamespace(claimed=frozenset(claimed))
    exam = Scripted.of(
        answer,
        verifier=SimpleNamespace(claims=lambda *_: claims),
        differential=SimpleNamespace(followed_files=list, may_go=lambda *_, **__: False),
    )
    case = Case(TARGET, measured([]).results, was_red=False, now=measured([]).results)
    assert (await seen_twice(exam, case, "kept", measured(first)))[0] == problem
    assert [(one.code, one.blocks) for one in exam.report.findings] == [("flaky", False)] * noted


async def test_a_command_without_names_is_judged_by_its_first_run() -> None:
    unexplained = Unexplained(["data.bin"], frozenset())
    ran = cast("Any", SimpleNamespace(exit_code=1, timed_out=False, tail=""))
    differential = SimpleNamespace(runs_old_files=lambda *_: False)
    red = Measured(TARGET, ran, None)
    exam = Scripted.of(lambda *_: red, verifier=None, differential=differential)
    case = Case(TARGET, None, was_red=True, now=None)
    assert await hold_without(exam, case, unexplained) is False
    assert [one.code for one in exam.report.findings] == ["tests_changed"]


def test_a_test_that_is_lost_with_its_package_names_what_kept_the_package_from_loading() -> None:
    broken = unloaded("x.io/shop", message="cart_test.go:3:9: undefined: Cart\n")
    ran = replace(measured([]), results=Results("go", (broken,)))
    text = in_words(["x.io/shop.TestCart/empty", "x.io/shop.TestTax"], ran)
    assert text == (
        "x.io/shop.TestCart/empty is not there, as x.io/shop cannot be loaded:"
        " cart_test.go:3:9: undefined: Cart (and 1 more)"
    )
    assert in_words(["x.io/other.TestA"], ran) == "x.io/other.TestA is not there"


def test_a_message_that_begins_with_its_place_alone_is_shown_with_what_it_says() -> None:
    test = TestResult(
        WORK, "failed", message="    a_test.go:7: \n        have: 1\n        want: 2\n"
    )
    ran = replace(measured([]), results=Results("go", (test,)))
    assert in_words([WORK], ran) == f"{WORK} fails: a_test.go:7: have: 1"
    test = TestResult(WORK, "failed", message="a_test.go:7:\n")
    ran = replace(measured([]), results=Results("go", (test,)))
    assert in_words([WORK], ran) == f"{WORK} fails: a_test.go:7:"
