"""Gives every criterion its status and what it rests on, from evidence and claims. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from agentrunner.config.spec import TestSpec
from agentrunner.state.evidence_words import Author, EvidenceKind, Grade, Status
from agentrunner.state.run_state import (
    Acceptance,
    Assessment,
    CheckOutcome,
    Criterion,
    Evidence,
    Proof,
)
from agentrunner.text.sentences import within
from agentrunner.verification.grades import TURNED, assigned, names_meant, of_number

WORD = "the planner's word"
LATE = "the planner wrote that down after the work had begun"
LAST_OUTCOMES = {
    "passed": "where it had passed",
    "failed": "where it had failed",
    "not_run": "where it had not run",
}
"""Of a check that was withdrawn: what its last outcome was."""


def settle(
    criteria: Sequence[Criterion],
    evidence: Evidence | None,
    assessment: Assessment | None,
    test: TestSpec | None,
    acceptances: Sequence[Acceptance] = (),
) -> list[Criterion]:
    """Each criterion with the status, evidence, grade and proof that code can vouch for."""
    if assessment is not None and evidence is not None and assessment.tree != evidence.tree:
        assessment = None
    outcomes = {check.criterion_id: check for check in evidence.checks} if evidence else {}
    proofs = assigned(criteria, evidence, test) if evidence else {}
    return [
        _settled(
            criterion,
            _executed(criterion, outcomes.get(criterion.id), evidence, proofs, test),
            evidence,
            assessment,
            acceptances,
        )
        for criterion in criteria
    ]


class _CriterionState(Struct, frozen=True):
    """Status, evidence, grade and proof of a criterion while they are worked out."""

    status: Status = "unknown"
    kind: EvidenceKind = "none"
    grade: Grade = "none"
    author: Author = ""
    proof: str = ""
    disbelieved: bool = False
    """Whether it failed only because of what a command printed that exits 0."""


def _settled(
    criterion: Criterion,
    state: _CriterionState,
    evidence: Evidence | None,
    assessment: Assessment | None,
    acceptances: Sequence[Acceptance],
) -> Criterion:
    says_failed = assessment is not None and criterion.id in assessment.failed
    says_passed = assessment is not None and not says_failed and criterion.id in assessment.passed
    if says_failed and not (state.status == "failed" and state.kind != "none"):
        state = _CriterionState(
            "failed", "judged", "judged", "planner", "the model calls it failed"
        )
    elif state.status == "unknown" and says_passed:
        proof = state.proof or WORD
        if assessment is not None and assessment.blind:
            proof += "; nothing of the change was seen"
        elif assessment is not None and assessment.unseen:
            proof += f"; seen in part: not {_unseen_files(assessment)}"
        state = _CriterionState("passed", "judged", "judged", "planner", proof)
    acceptance = _accepted(criterion, evidence, acceptances)
    weak = state.kind in ("judged", "none") or state.grade == "shown" or state.disbelieved
    mapped = is_mapped_by_planner(criterion) and state.status != "failed"
    if acceptance is not None and (weak or mapped):
        proof = f"{acceptance.by}: {acceptance.reason}"
        state = _CriterionState("passed", "accepted", "accepted", "person", proof)
    comment = assessment.comments.get(criterion.id, "") if assessment else criterion.comment
    return criterion.model_copy(
        update={
            "status": state.status,
            "evidence": state.kind,
            "grade": state.grade,
            "author": state.author,
            "proof": state.proof,
            "comment": comment,
        }
    )


def _unseen_files(assessment: Assessment) -> str:
    """The first files of the change that the judge was not shown whole, then a count."""
    shown = ", ".join(assessment.unseen[:3])
    more = assessment.unseen_count - 3
    return f"{shown} and {more} more" if more > 0 else shown


def _executed(
    criterion: Criterion,
    outcome: CheckOutcome | None,
    evidence: Evidence | None,
    proofs: Mapping[str, Proof],
    test: TestSpec | None,
) -> _CriterionState:
    """What execution alone says; `unknown` where it says nothing that counts."""
    if evidence is None:
        return _CriterionState()
    check, proof = criterion.check, proofs.get(criterion.id)
    if (gone := criterion.withdrawn) is not None:
        who = "the planner" if gone.by == "planner" else "a person"
        return _CriterionState(
            proof=f"{who} withdrew its check `{gone.what}` after the work had begun,"
            f" {LAST_OUTCOMES[gone.outcome]}"
        )
    if check is None:
        if outcome is not None and outcome.outcome == "failed":
            detail = f"{outcome.what} → {outcome.detail}"
            return _CriterionState("failed", "tested", proof=detail)
        if proof is None:
            if outcome is not None and outcome.before == "green":
                detail = f"{outcome.what} passes, as before"
                return _CriterionState("passed", "tested", "kept", "person", detail)
            if outcome is not None and outcome.before == "unknown" and evidence.examined:
                return _CriterionState(
                    "passed", "tested", "kept", "person", f"{outcome.what} passes"
                )
            doubt = evidence.doubts.get(criterion.id, "")
            if not evidence.examined and _have_turned(criterion, evidence):
                names = ", ".join(criterion.tests[:2])
                more = f" and {len(criterion.tests) - 2} more tests" * (len(criterion.tests) > 2)
                turned = of_number(TURNED, len(criterion.tests))
                return _CriterionState("passed", "tested", proof=f"{names}{more} {turned}")
            if not doubt and evidence.examined and criterion.tests:
                doubt = _why_mapped_prove_nothing(criterion, evidence, proofs)
            return _CriterionState(proof=doubt)
        return _CriterionState("passed", "tested", proof.grade, proof.author, proof.text)
    late = criterion.late and criterion.check_origin == "model"
    if check.kind == "test" and not check.name and test is not None:
        return _by_test_command(criterion, evidence, proof, late=late)
    if outcome is None or outcome.outcome == "not_run":
        return _CriterionState(proof=outcome.detail if outcome else "")
    detail = f"{outcome.what} → {outcome.detail or outcome.exit_code}"
    kind: EvidenceKind = "tested" if check.kind == "test" else "checked"
    if outcome.outcome == "failed":
        return _CriterionState("failed", kind, proof=detail, disbelieved=outcome.disbelieved)
    if late:
        return _CriterionState(proof=f"{detail}, but {LATE}")
    if proof is not None:
        detail += ", failed before"
        if proof.author == "worker":
            detail += "; by the worker's own test"
        return _CriterionState("passed", kind, proof.grade, proof.author, detail)
    by_person = criterion.check_origin != "model"
    if by_person and outcome.before == "green":
        return _CriterionState("passed", kind, "kept", "person", f"{detail}, as before")
    if not evidence.examined:  # its worth is found out when completion is asked for
        red = outcome.before == "red"
        return (
            _CriterionState("passed", kind, proof=detail + ", failed before" * red)
            if (red or by_person)
            else _CriterionState(proof=f"{detail}, but it was not seen failing before")
        )
    if by_person and outcome.before == "unknown":
        return _CriterionState("passed", kind, "kept", "person", detail)
    why = evidence.doubts.get(criterion.id) or "it was not seen failing before"
    return _CriterionState(proof=f"{detail}, but {within(why)}")


def _have_turned(criterion: Criterion, evidence: Evidence) -> bool:
    """Whether each test mapped to a criterion was red before and passes now, as far as one run
    shows: its worth is found out when completion is asked for.
    """
    if evidence.test is None or not criterion.tests or criterion.late:
        return False
    return set(criterion.tests) <= set(evidence.test.turned)


def _why_mapped_prove_nothing(
    criterion: Criterion, evidence: Evidence, proofs: Mapping[str, Proof]
) -> str:
    """Why the tests mapped to a criterion prove nothing of it, though one may be a proof."""
    for name in names_meant(criterion.tests, evidence.proofs):
        if not any(name in proof.tests for proof in evidence.proofs):
            return f"no test {name} was red before and passes now"
        taken = next((one for one, proof in proofs.items() if name in proof.tests), "")
        if taken:
            return f"its test stands for {taken}, and only for one criterion: {name}"
    return "its tests stand for other criteria"


def _by_test_command(
    criterion: Criterion, evidence: Evidence, proof: Proof | None, *, late: bool
) -> _CriterionState:
    if evidence.test is None:
        return _CriterionState()
    detail = f"{evidence.test.command} → {evidence.test.exit_code}"
    if not evidence.test.green:
        finding = f" ({evidence.test.finding})" * bool(evidence.test.finding)
        doubted = evidence.test.disbelieved
        return _CriterionState("failed", "tested", proof=detail + finding, disbelieved=doubted)
    if late:
        return _CriterionState(proof=f"{detail}, but {LATE}")
    if proof is not None:
        return _CriterionState(
            "passed", "tested", proof.grade, proof.author, f"{detail}; {proof.text}"
        )
    if not evidence.examined:  # as with any other check
        if evidence.test.green_before is False:
            return _CriterionState("passed", "tested", proof=f"{detail}, failed before")
        return _CriterionState(proof=detail)
    if evidence.test.green_before and criterion.check_origin != "model":
        return _CriterionState("passed", "tested", "kept", "person", f"{detail}, as before")
    why = evidence.doubts.get("test") or "it was green before"
    return _CriterionState(proof=f"{detail}, but {within(why)}")


def _accepted(
    criterion: Criterion, evidence: Evidence | None, acceptances: Sequence[Acceptance]
) -> Acceptance | None:
    """The latest acceptance by a person that covers this criterion on this very tree."""
    for acceptance in reversed(acceptances):
        covers = not acceptance.criteria or criterion.id in acceptance.criteria
        if covers and (evidence is None or acceptance.tree == evidence.tree):
            return acceptance
    return None


def is_mapped_by_planner(criterion: Criterion) -> bool:
    """Whether nobody but the planner, or code, decided which tests stand for a criterion."""
    return criterion.check is None and criterion.tests_origin == "model"
