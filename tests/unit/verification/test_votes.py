"""Several judges of one tree."""

from __future__ import annotations

from typing import Any

from agentrunner.execution.assessing import MOST_RISKS, merged
from agentrunner.state.run_state import Assessment


def vote(satisfied: bool = True, **fields: Any) -> Assessment:
    values = {"tree": "t", "satisfied": satisfied, "summary": "It is so.", **fields}
    return Assessment(**values)


def test_one_vote_is_itself() -> None:
    alone = vote(
        satisfied=False, failed=["AC-2"], passed=["AC-1"], comments={"AC-2": "no"}, risks=["r"]
    )
    assert merged([alone]).model_copy(update={"summary": alone.summary}) == alone
    assert merged([alone]).summary == "It is so."


def test_one_no_is_enough() -> None:
    yes = vote(passed=["AC-1", "AC-2"], comments={"AC-1": "fine", "AC-2": "fine"})
    no = vote(
        satisfied=False,
        summary="AC-2 lacks.",
        failed=["AC-2"],
        passed=["AC-1"],
        comments={"AC-1": "too", "AC-2": "it lacks a test"},
    )
    for votes in ([yes, yes, no], [no, yes, yes], [yes, no, yes]):
        together = merged(votes)
        assert not together.satisfied
        assert (together.failed, together.passed) == (["AC-2"], ["AC-1"])
        assert together.comments["AC-2"] == "it lacks a test"
        assert together.summary == "2 of 3 judges are satisfied. AC-2 lacks."


def test_passed_is_what_all_call_passed() -> None:
    together = merged([vote(passed=["AC-1", "AC-2"]), vote(passed=["AC-1"])])
    assert (together.passed, together.failed, together.satisfied) == (["AC-1"], [], True)


def test_what_each_of_them_calls_failed_has_failed() -> None:
    votes = [vote(satisfied=False, failed=["AC-1"]), vote(satisfied=False, failed=["AC-3"])]
    assert merged(votes).failed == ["AC-1", "AC-3"]


def test_risks_are_told_once_and_not_without_end() -> None:
    votes = [vote(risks=["same", f"own {n}"]) for n in range(MOST_RISKS + 5)]
    risks = merged(votes).risks
    assert (risks[:3], len(risks)) == (["same", "own 0", "own 1"], MOST_RISKS)


def test_all_satisfied() -> None:
    together = merged([vote(summary="First."), vote(summary="Second.")])
    assert (together.satisfied, together.summary) == (True, "First.")
