"""What a run of the test command or of a check says, and what is not believed of it."""

from dataclasses import replace

import pytest

from agentrunner.state.evidence_words import Author
from agentrunner.state.run_state import Criterion, TestOutcome
from agentrunner.state.state_model import FileRef
from agentrunner.verification.evidence.claims import Claims
from agentrunner.verification.evidence.outcomes import (
    check_outcome,
    counts_of,
    named_outcome,
    outcome_of,
    red_tests,
)
from agentrunner.verification.evidence.target import TEST, Measured, Target
from agentrunner.verification.results.counts import Counts
from agentrunner.verification.results.model import Results, TestOutcomeKind, TestResult
from agentrunner.verification.rooms.decision_sandbox import TIMED_OUT, CommandOutcome


def results(
    *rows: tuple[str, TestOutcomeKind], complete: bool = True, weak: bool = False
) -> Results:
    tests = tuple(TestResult(name, kind, message=f"{name} said no") for name, kind in rows)
    return Results("pytest", tests, complete=complete, weak=weak)


def measured(
    exit_code: int = 0,
    by_name: Results | None = None,
    *,
    counts: Counts | None = None,
    tail: str = "",
    expect: int = 0,
    timed_out: bool = False,
    author: Author = "person",
    target: str = TEST,
) -> Measured:
    ran = CommandOutcome(exit_code, FileRef(path="out"), tail, counts, 1.5, timed_out=timed_out)
    return Measured(
        Target(target, "pytest -q", timeout_sec=9, expect_exit=expect, author=author), ran, by_name
    )


GREEN = results(("a", "passed"), ("b", "skipped"))
RED = results(("a", "passed"), ("b", "failed"), ("c", "error"))


def test_a_report_by_name_is_believed_over_totals() -> None:
    found = outcome_of(measured(1, RED, counts=Counts(9, 0, 0)))
    assert (found.passed, found.failed, found.errors, found.skipped) == (1, 2, 1, 0)
    assert (found.failing, found.reader, found.green) == (["b", "c"], "pytest", False)
    assert [(red.name, red.message) for red in found.red] == [
        ("b", "b said no"),
        ("c", "c said no"),
    ]


def test_totals_are_taken_where_there_are_no_names() -> None:
    found = outcome_of(measured(counts=Counts(5, 0, 1)))
    assert (found.passed, found.skipped, found.reader, found.green) == (5, 1, "", True)


@pytest.mark.parametrize(
    ("by_name", "finding"),
    [
        (RED, "exit 0, but b, c failed"),
        (results(*((f"t{n}", "failed") for n in range(5))), "t0, t1, t2 and 2 more failed"),
        (results(("a", "skipped")), "no test ran"),
        (results(), "no test ran"),
        (results(("a", "passed"), complete=False), "ends too early"),
    ],
)
def test_exit_0_is_not_believed_against_the_report(by_name: Results, finding: str) -> None:
    found = outcome_of(measured(0, by_name))
    assert finding in found.finding and not found.green


def test_expected_failures_are_tests_that_ran() -> None:
    assert outcome_of(measured(0, results(("a", "xfailed")))).green


def test_exit_0_without_names_is_not_believed_where_fewer_tests_ran() -> None:
    before = TestOutcome(command="pytest -q", exit_code=0, passed=9, failed=0, skipped=0)
    now = measured(counts=Counts(2, 0, 0))
    assert outcome_of(now, before).finding
    assert not outcome_of(now, before, fewer_is_wanted=True).finding


KNOWN = Claims(frozenset({"a"}), frozenset({"b", "c"}))


def test_known_reds_excuse_a_red_exit() -> None:
    found = outcome_of(measured(1, RED), claims=KNOWN, one_stage=True)
    assert found.green and found.known_red == ["b", "c"]


@pytest.mark.parametrize(
    ("by_name", "claims", "one_stage"),
    [
        (RED, KNOWN, False),
        (replace(RED, weak=True), KNOWN, True),
        (replace(RED, complete=False), KNOWN, True),
        (RED, Claims(frozenset({"b"}), frozenset({"c"})), True),
        (results(("a", "passed")), KNOWN, True),
    ],
)
def test_known_reds_excuse_nothing_where_something_else_may_be_red(
    by_name: Results, claims: Claims, one_stage: bool
) -> None:
    assert not outcome_of(measured(1, by_name), claims=claims, one_stage=one_stage).green


def test_known_reds_are_no_objection_to_exit_0() -> None:
    found = outcome_of(measured(0, RED), claims=KNOWN)
    assert found.green and found.known_red == ["b", "c"]


def test_a_run_that_took_too_long_is_red_whatever_it_reported() -> None:
    found = outcome_of(measured(0, GREEN, timed_out=True))
    assert found.finding == "timed out after 9 s" and not found.green


def test_names_that_passed_before_and_are_gone_are_told() -> None:
    before = results(("a", "passed"), ("b", "passed"), ("z", "passed"))
    assert outcome_of(measured(0, GREEN), before_results=before).gone == ["b", "z"]


def test_names_with_temporary_paths_are_compared_by_what_stays() -> None:
    before = results(("a", "passed"), ("t[/tmp/x1/f]", "passed"), ("u[/tmp/x1]", "failed"))
    now = results(("a", "passed"), ("t[/tmp/y2/f]", "passed"), ("u[/tmp/y2]", "failed"))
    found = outcome_of(measured(1, now), before_results=before)
    assert (found.gone, found.newly_red) == ([], [])
    fewer = outcome_of(measured(0, results(("a", "passed"))), before_results=before)
    assert fewer.gone == ["t[*]"]


def test_tests_that_were_not_there_before_are_known_by_name_where_they_pass() -> None:
    """A planner was told only of the total, and ordered the tests once more."""
    before = results(("a", "passed"), ("at 0x7f00aa11", "passed"))
    now = results(
        ("a", "passed"), ("at 0x7f00bb22", "passed"), ("new", "passed"), ("bad", "failed")
    )
    found = outcome_of(measured(1, now), before_results=before)
    assert found.added == ["new"]
    assert outcome_of(measured(0, now)).added == []


def test_which_tests_turned_and_which_did_not_is_known_by_name() -> None:
    before = results(("a", "failed"), ("b", "failed"), ("c", "passed"), ("d", "failed"))
    now = results(("a", "passed"), ("b", "failed"), ("c", "failed"), ("d", "failed"))
    found = outcome_of(measured(1, now), None, before, Claims(frozenset("ab"), frozenset("d")))
    assert (found.turned, found.still_red, found.newly_red) == (["a"], ["b"], ["c"])


@pytest.mark.parametrize(
    ("run", "outcome", "detail"),
    [
        (measured(0, GREEN), "passed", ""),
        (measured(2, expect=2), "passed", ""),
        (measured(0, RED), "failed", "exit 0, but b, c failed"),
        (measured(0, results()), "failed", "no test ran"),
        (measured(3, tail="one\nlast words\n"), "failed", "exit 3: last words"),
        (measured(1, RED, tail="one\na warning\n"), "failed", "exit 1: b said no"),
        (measured(0, timed_out=True), "failed", "timed out after 9 s"),
    ],
)
def test_a_check_passes_by_its_exit_and_not_against_its_report(
    run: Measured, outcome: str, detail: str
) -> None:
    found = check_outcome(run, "`x`", "")
    assert found.outcome == outcome and detail in found.detail


def test_a_check_that_took_too_long_has_the_exit_of_one_that_was_ended() -> None:
    assert check_outcome(measured(0, timed_out=True), "`x`", "").exit_code == TIMED_OUT


def test_a_check_of_the_planner_that_never_started_says_nothing() -> None:
    why = "there is no such command"
    by_planner = measured(127, author="planner", target="AC-1")
    assert check_outcome(by_planner, "`x`", why).outcome == "not_run"
    mine = check_outcome(measured(127, target="AC-1"), "`x`", why, "red")
    assert (mine.outcome, mine.detail, mine.before) == ("failed", why, "red")


def test_the_first_red_tests_are_told_and_their_messages_are_cut() -> None:
    tests = tuple(TestResult(str(n), "failed", message="x" * 2000) for n in range(30))
    found = red_tests(Results("pytest", tests))
    assert len(found) == 10 and len(found[0].message) == 600
    assert red_tests(None) == []


def test_counts_are_unknown_where_nothing_told_them() -> None:
    assert counts_of(None) is None
    assert counts_of(outcome_of(measured())) is None
    counts = counts_of(outcome_of(measured(1, RED)))
    assert counts == Counts(1, 2, 0, errors=1)


def test_how_many_tests_a_list_has_is_told_where_it_is_cut() -> None:
    old = [f"old{number}" for number in range(199)]
    before = results(("a", "failed"), *((name, "failed") for name in old))
    now = results(("a", "passed"), *((name, "failed") for name in old))
    claims = Claims(frozenset("a"), frozenset(old))
    found = outcome_of(measured(1, now), None, before, claims, one_stage=True)
    assert found.green and found.known_red == old[:50]
    assert (found.how_many("known_red"), found.how_many("turned")) == (199, 1)
    red = outcome_of(measured(1, now), None, before)
    assert (len(red.still_red), red.how_many("still_red")) == (50, 199)
    assert red.how_many("known_red") == 0


@pytest.mark.parametrize(
    ("named", "before", "outcome", "was", "detail"),
    [
        ("test_add", None, "passed", "unknown", ""),
        ("test_add", ("t.py::test_add", "passed"), "passed", "green", ""),
        ("test_add", ("t.py::test_add", "failed"), "passed", "red", ""),
        ("test_add", ("t.py::test_other", "passed"), "passed", "red", ""),
        ("test_ad", None, "failed", "unknown", "no test is called test_ad"),
        ("test_red", None, "failed", "unknown", "t.py::test_red failed"),
        ("test_skipped", None, "failed", "unknown", "t.py::test_skipped did not run"),
    ],
)
def test_a_test_that_a_person_named_is_decided_by_the_suite_s_tests_of_that_name(
    named: str,
    before: tuple[str, TestOutcomeKind] | None,
    outcome: str,
    was: str,
    detail: str,
) -> None:
    now = results(
        ("t.py::test_add", "passed"),
        ("t.py::test_red", "failed"),
        ("t.py::test_skipped", "skipped"),
    )
    criterion = Criterion(id="AC-1", description="It adds.", tests=[named])
    found = named_outcome(criterion, now, results(before) if before else None)
    assert (found.outcome, found.before, found.detail) == (outcome, was, detail)
