"""Who is believed: each row of the table of evidence, and each condition of COMPLETE."""

import pytest

from agentrunner.evidence.verdict import (
    Mode,
    approval_of,
    complete,
    end_at_limit,
    judge,
    settle,
    vouched_for,
)
from agentrunner.task.context import (
    Acceptance,
    Assessment,
    Baseline,
    CheckOutcome,
    Criterion,
    Evidence,
    Finding,
    TestOutcome,
)
from agentrunner.task.spec import Check, TestSpec

TEST = TestSpec(command="pytest -q")
GREEN = TestOutcome(command="pytest -q", exit_code=0, passed=5, failed=0)
RED = TestOutcome(command="pytest -q", exit_code=1, passed=4, failed=1, failing=["test_x"])
COMMAND = Check(kind="command", run="make check")
BY_TEST = Check(kind="test")
PROOF = ["`pytest -q` failed before and passes now"]
YES = Assessment(tree="t", satisfied=True, summary="all done", passed=["AC-1"])
NO = Assessment(tree="t", satisfied=False, summary="not yet", failed=["AC-1"])


def criterion(check: Check | None = None, **how: object) -> Criterion:
    return Criterion.model_validate({"id": "AC-1", "description": "works", "check": check, **how})


def outcome(result: str, before: str = "unknown") -> CheckOutcome:
    return CheckOutcome.model_validate(
        {"criterion_id": "AC-1", "what": "make check", "outcome": result, "before": before}
    )


def evidence(**how: object) -> Evidence:
    return Evidence.model_validate({"tree": "t", **how})


@pytest.mark.parametrize(
    ("of", "found", "claim", "status", "kind"),
    [
        (criterion(COMMAND), evidence(checks=[outcome("passed")]), None, "passed", "checked"),
        (criterion(COMMAND), evidence(checks=[outcome("failed")]), YES, "failed", "checked"),
        (criterion(COMMAND), evidence(checks=[outcome("passed")]), NO, "failed", "judged"),
        (criterion(COMMAND), evidence(checks=[outcome("not_run")]), YES, "passed", "judged"),
        (criterion(BY_TEST), evidence(test=GREEN, proof=PROOF), None, "passed", "tested"),
        (criterion(BY_TEST), evidence(test=GREEN), None, "unknown", "none"),
        (criterion(BY_TEST), evidence(test=RED), YES, "failed", "tested"),
        (
            criterion(BY_TEST),
            evidence(test=GREEN, restored_test=RED, proof=PROOF),
            None,
            "unknown",
            "none",
        ),
        (criterion(), evidence(), YES, "passed", "judged"),
        (criterion(), evidence(), NO, "failed", "judged"),
        (criterion(), evidence(), None, "unknown", "none"),
    ],
)
def test_each_criterion_gets_its_status_from_code(
    of: Criterion, found: Evidence, claim: Assessment | None, status: str, kind: str
) -> None:
    [settled] = settle([of], found, claim, TEST)
    assert (settled.status, settled.evidence) == (status, kind)


@pytest.mark.parametrize(
    ("before", "kind"), [("red", "checked"), ("green", "judged"), ("unknown", "judged")]
)
def test_a_check_of_the_model_counts_only_if_it_was_red_before(before: str, kind: str) -> None:
    of = criterion(COMMAND, check_origin="model")
    [settled] = settle([of], evidence(checks=[outcome("passed", before)]), YES, TEST)
    assert settled.evidence == kind


def test_an_assessment_of_another_tree_is_no_word_about_this_one() -> None:
    stale = YES.model_copy(update={"tree": "older"})
    [settled] = settle([criterion()], evidence(), stale, TEST)
    assert settled.status == "unknown"


def accepted(tree: str = "t", criteria: list[str] | None = None) -> Acceptance:
    return Acceptance(criteria=criteria or [], reason="I looked", by="hana", at="", tree=tree)


@pytest.mark.parametrize(
    ("yes", "kind"),
    [
        (accepted(), "accepted"),
        (accepted(criteria=["AC-1"]), "accepted"),
        (accepted(criteria=["AC-2"]), "judged"),
        (accepted(tree="other"), "judged"),
    ],
)
def test_a_persons_yes_holds_for_what_and_for_the_tree_it_was_said_of(
    yes: Acceptance, kind: str
) -> None:
    [settled] = settle([criterion()], evidence(), YES, TEST, [yes])
    assert settled.evidence == kind


def test_a_persons_yes_never_stands_in_for_a_red_check() -> None:
    found = evidence(checks=[outcome("failed")])
    [settled] = settle([criterion(COMMAND)], found, YES, TEST, [accepted()])
    assert settled.status == "failed"


def judged(of: Criterion, found: Evidence, mode: Mode = "evidence", **how: object) -> list[str]:
    settled = settle([of], found, YES, TEST)
    return judge(settled, found, mode, **how).missing  # type: ignore[arg-type]


def test_complete_needs_green_tests_proof_and_every_critical_criterion() -> None:
    assert judged(criterion(), evidence(test=GREEN, proof=PROOF)) == []


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (evidence(test=RED, proof=PROOF), "exits 1: test_x"),
        (evidence(test=GREEN.model_copy(update={"finding": "no count"}), proof=PROOF), "no count"),
        (evidence(test=GREEN), "no proof of work"),
        (
            evidence(
                test=GREEN, proof=PROOF, findings=[Finding(code="tests_changed", message="weak")]
            ),
            "weak",
        ),
    ],
)
def test_each_missing_condition_is_named(found: Evidence, word: str) -> None:
    assert word in " ".join(judged(criterion(), found))


def test_non_critical_criteria_never_block() -> None:
    settled = settle([criterion(critical=False)], evidence(proof=PROOF), NO, TEST)
    assert judge(settled, evidence(proof=PROOF), "evidence").complete


def test_strict_admits_no_word_of_the_model() -> None:
    assert "word alone" in judged(criterion(), evidence(proof=PROOF), "strict")[0]
    found = evidence(proof=PROOF, checks=[outcome("passed")])
    assert judged(criterion(COMMAND), found, "strict") == []


def test_judged_admits_it_without_proof_and_says_so() -> None:
    found = evidence()
    settled = settle([criterion()], found, YES, TEST)
    assert judge(settled, found, "judged").complete
    assert complete(settled, found, "judged").reason == "unproven"


def test_an_approved_finding_is_no_longer_open() -> None:
    finding = Finding(code="tests_changed", message="weak", paths=["t.py"])
    found = evidence(test=GREEN, proof=PROOF, findings=[finding])
    assert judged(criterion(), found, approved=[approval_of(finding, found.tree)]) == []
    other = finding.model_copy(update={"paths": ["u.py"]})
    assert judged(criterion(), found, approved=[approval_of(other, found.tree)]) == ["weak"]
    later = approval_of(finding, "e" * 40)
    assert judged(criterion(), found, approved=[later]) == ["weak"]


def test_tests_that_a_person_allowed_to_change_prove_what_they_prove() -> None:
    finding = Finding(code="tests_changed", message="weak", paths=["t.py"])
    found = evidence(test=GREEN, restored_test=RED, findings=[finding])
    before = Baseline(tree="b" * 40, test=RED)
    assert vouched_for(found, before, []) == found
    vouched = vouched_for(found, before, [approval_of(finding, found.tree)])
    assert vouched.restored_test is None
    assert len(vouched.proof) == 1
    assert vouched_for(found, None, [approval_of(finding, found.tree)]).proof == []


def end(found: Evidence, claim: Assessment | None = YES) -> str:
    settled = settle([criterion()], found, claim, TEST)
    return end_at_limit(settled, found, judge(settled, found, "evidence"), "loop_limit").state


@pytest.mark.parametrize(
    ("found", "claim", "state"),
    [
        (evidence(test=RED), YES, "FAILED"),
        (evidence(test=GREEN.model_copy(update={"finding": "fewer"})), YES, "FAILED"),
        (evidence(test=GREEN), NO, "FAILED"),
        (evidence(test=GREEN), YES, "NEEDS_REVIEW"),
        (evidence(), None, "NEEDS_REVIEW"),
    ],
)
def test_at_the_limit_red_fails_and_the_rest_is_for_a_person(
    found: Evidence, claim: Assessment | None, state: str
) -> None:
    assert end(found, claim) == state
