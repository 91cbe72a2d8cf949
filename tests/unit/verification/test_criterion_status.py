"""What each criterion says about what it rests on."""

from __future__ import annotations

from typing import Literal

import pytest

from agentrunner.config.spec import TestSpec
from agentrunner.state.run_state import Assessment, CheckOutcome, Criterion, Evidence, Proof
from agentrunner.verification.criterion_status import settle

ADD = "tests/test_calc.py::test_add"
TURNED = f"{ADD} failed before and passes now"


def settled(*names: str) -> list[Criterion]:
    """Criteria that a planner mapped to a test each, where `ADD` alone is a proof."""
    criteria = [
        Criterion(id=f"AC-{n}", description="It adds.", tests=[name], tests_origin="model")
        for n, name in enumerate(names, 1)
    ]
    proof = Proof(target="test", author="person", grade="proven", text=TURNED, tests=[ADD])
    evidence = Evidence(tree="t", proofs=[proof], examined=True)
    ids = [one.id for one in criteria]
    yes = Assessment(tree="t", satisfied=True, summary="Yes.", passed=ids)
    return settle(criteria, evidence, yes, TestSpec(command="pytest"))


def test_a_mapped_test_stands_for_one_criterion_and_the_others_say_so() -> None:
    first, second = settled(ADD, ADD)
    assert (first.grade, first.proof) == ("proven", TURNED)
    assert (second.grade, second.author) == ("judged", "planner")
    assert second.proof == f"its test stands for AC-1, and only for one criterion: {ADD}"


@pytest.mark.parametrize("name", ["tests/test_calc.py::test_none", "test_none"])
def test_one_that_turned_nothing_is_called_so(name: str) -> None:
    assert settled(ADD, name)[1].proof == f"no test {name} was red before and passes now"


def test_a_short_name_is_the_test_that_it_ends() -> None:
    assert "stands for AC-1" in settled(ADD, "test_add")[1].proof


@pytest.mark.parametrize(
    ("outcome", "before", "status", "grade"),
    [("failed", "red", "failed", "none"), ("passed", "green", "passed", "kept"),
     ("passed", "red", "passed", "judged"), ("passed", "unknown", "passed", "kept")],
)  # fmt: skip
def test_a_test_that_a_person_named_is_never_the_planner_s_word_where_it_is_missing(
    outcome: Literal["passed", "failed"],
    before: Literal["red", "green", "unknown"],
    status: str,
    grade: str,
) -> None:
    criterion = Criterion(id="AC-1", description="It adds.", tests=["test_add"])
    check = CheckOutcome(criterion_id="AC-1", what="test test_add", outcome=outcome, before=before)
    evidence = Evidence(tree="t", checks=[check], examined=True)
    yes = Assessment(tree="t", satisfied=True, summary="Yes.", passed=["AC-1"])
    (found,) = settle([criterion], evidence, yes, TestSpec(command="python3 run.py"))
    assert (found.status, found.grade) == (status, grade)
