"""What counts as red, whose doing it is, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentrunner.errors import EnvironmentNotReady
from agentrunner.plans.execution.merging.merge_verdict import (
    MAX_LISTED,
    CheckOutput,
    CommitFindings,
    MergeCandidate,
    MergeVerdict,
    SetUpFailed,
    judge,
    newly_red,
    text_of_doubts,
)
from agentrunner.state.run_state import TestOutcome
from tests.kit.merges import needs

ALONE = MergeCandidate("c", "b", "c", "T-2")
MERGED = MergeCandidate("c", "b", "m", "T-2")
JOINED = MergeCandidate("c", "b", "m")
RED, GREEN = CheckOutput(True, "no such file"), CheckOutput(False)


def look(seen: CheckOutput | None = None, test: TestOutcome | None = None) -> CommitFindings:
    return CommitFindings(test, {needs("a").key: seen} if seen else {})


def outcome(exit_code: int, failed: int | None = None, *failing: str, ran: int = 9) -> TestOutcome:
    passed = None if failed is None else ran - failed
    return TestOutcome(
        command="t", exit_code=exit_code, passed=passed, failed=failed, failing=list(failing),
        tail="the tail",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("was", "now", "red"),
    [
        (outcome(0, 0), outcome(0, 0), False),
        (outcome(0, 0), outcome(1, 1, "t_new"), True),
        (None, outcome(1), True),
        (outcome(1, 1, "t_old"), outcome(1, 1, "t_old"), False),
        (outcome(1, 1, "t_old"), outcome(1, 1, "t_new"), True),
        (outcome(1, 1), outcome(1, 2), True),
        (outcome(1, 2, "t_old", "t_x"), outcome(1, 1, "t_old"), False),
        (outcome(1, 1, "t_old"), outcome(1, 1, "t_old", ran=5), True),
        (outcome(1, 1, "t_old"), outcome(2), True),
        (outcome(2), outcome(2), False),
        (outcome(0, 0), outcome(0, 0).model_copy(update={"finding": "no test ran"}), True),
        (outcome(0, 0), outcome(0, 0, ran=8), True),
        (outcome(0, 0), outcome(0), True),
        (outcome(0, 0), None, False),
    ],
)
def test_only_what_is_newly_red_counts(
    was: TestOutcome | None, now: TestOutcome | None, red: bool
) -> None:
    found = newly_red(CommitFindings(was), CommitFindings(now))
    assert (found is not None) is red


@pytest.mark.parametrize("exit_code", [0, 1])
def test_tests_that_were_taken_away_with_good_reason_are_not_missed(exit_code: int) -> None:
    failing = ("t_old",) * exit_code
    was = outcome(exit_code, exit_code, *failing)
    now = outcome(exit_code, exit_code, *failing, ran=7)
    for removed, red in ((2, False), (1, True)):
        candidate = replace(ALONE, removed=removed)
        found = newly_red(CommitFindings(was), CommitFindings(now), candidate)
        assert (found is not None) is red


@pytest.mark.parametrize(
    ("candidate", "alone", "where"),
    [
        (ALONE, 1, "a fresh checkout of this task's commit alone"),
        (MERGED, 1, "a fresh checkout of this task's commit alone"),
        (MERGED, 0, "this task's work and that of others"),
        (JOINED, 0, "the plan's result and that branch"),
    ],
)
def test_red_tests_are_told_with_whose_doing_it_is(
    candidate: MergeCandidate, alone: int, where: str
) -> None:
    red = look(test=outcome(1, 1, "t_new"))
    before = look(test=outcome(0, 0))
    told = judge(candidate, [], red, before, look(test=outcome(alone, alone))).evidence
    assert told.startswith(f"The tests fail on {where}")
    assert "`t` exits 1" in told and "- t_new\n" in told and "the tail" in told
    assert ("folders that git ignores" in told) is (alone == 1)


@pytest.mark.parametrize(
    ("now", "before", "broken"),
    [(GREEN, None, False), (RED, None, True), (RED, GREEN, True), (RED, RED, False)],
)
def test_of_landed_checks_only_what_was_green_and_is_red_is_broken(
    now: CheckOutput, before: CheckOutput | None, broken: bool
) -> None:
    found = judge(
        MERGED, [needs("a"), needs("a", "T-3")], look(now), look(before), CommitFindings()
    )
    assert found.broken == ((needs("a"),) if broken else ()) and not found.doubts
    assert bool(found.evidence) is broken
    if broken:
        for part in ("T-1 (AC-1)", "that of others", "`test -f a`", "no such file"):
            assert part in found.evidence
        assert "folders that git ignores" not in found.evidence


def test_own_checks_that_are_red_on_their_own_commit_are_doubted_and_others_broken() -> None:
    own = needs("a", "T-2")
    for candidate, alone in ((ALONE, RED), (MERGED, RED)):
        asked = MergeCandidate(candidate.commit, "b", candidate.mine, "T-2", proofs=(own,))
        found = judge(asked, [], look(RED), CommitFindings(), look(alone))
        assert found == MergeVerdict(doubts=(own,))
    asked = MergeCandidate("c", "b", "m", "T-2", proofs=(own,))
    assert judge(asked, [], look(RED), CommitFindings(), look(GREEN)).broken == (own,)
    # Broken for the task that landed: being of its own as well is no excuse.
    assert judge(asked, [needs("a")], look(RED), look(GREEN), look(RED)).broken == (needs("a"),)


def test_a_set_up_that_fails_is_told_with_its_output() -> None:
    error = EnvironmentNotReady("cannot", details=(("ran", "make deps      exit 2, no rule"),))
    failed = CommitFindings(failed=SetUpFailed(error, "no rule to make it"))
    for candidate, alone, where in (
        (ALONE, failed, "commit alone"),
        (MERGED, failed, "commit alone"),
        (MERGED, CommitFindings(), "that of others"),
    ):
        verdict = judge(candidate, [needs("a")], failed, CommitFindings(), alone)
        told = verdict.evidence
        assert verdict.stuck
        head = told.partition("\n")[0]
        assert head.startswith("The set-up command fails on") and where in head
        assert "make deps      exit 2" in told and "no rule to make it" in told


@pytest.mark.parametrize("started", [False, True])
def test_where_tests_or_checks_do_not_start_no_run_can_begin(started: bool) -> None:
    """A run that is to mend it has its baseline first, where what does not start is an error."""
    red, green = look(test=outcome(127)), look(test=outcome(0))
    found = judge(MERGED, [], replace(red, started=started), green, CommitFindings())
    assert found.evidence and found.stuck is not started
    assert not judge(
        MERGED, [], replace(red, started=started), CommitFindings(), CommitFindings()
    ).stuck
    found = judge(
        MERGED, [needs("a")], look(CheckOutput(True, "", started)), look(), CommitFindings()
    )
    assert found.evidence and found.stuck is not started


def test_evidence_has_tests_and_checks_and_is_bounded() -> None:
    many = [needs(str(number), number=number) for number in range(1, 9)]
    now = CommitFindings(outcome(1), {one.key: RED for one in many})
    found = judge(MERGED, many, now, look(test=outcome(0)), CommitFindings())
    assert found.broken == tuple(many) and found.evidence.startswith("The tests fail")
    assert "and 3 more" in found.evidence
    assert found.evidence.count("no such file") == MAX_LISTED


@pytest.mark.parametrize(
    ("numbers", "told"), [((), ""), ((1,), "AC-1 was green"), ((1, 2), "AC-1, AC-2 were green")]
)
def test_doubts_are_one_sentence(numbers: tuple[int, ...], told: str) -> None:
    words = text_of_doubts([needs("a", number=number) for number in numbers])
    assert words.startswith(told) and bool(words) is bool(told)
    assert "\n" not in words and len(words) < 200
