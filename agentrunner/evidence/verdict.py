"""From evidence and claims to a status for each criterion and an end of the run. Pure.

`settle` gives every criterion its status and kind of evidence. `judge` says what stands between
a tree and COMPLETE; `end_at_limit` how a run ends that may not go on. None of them believes
the meta-agent more than an exit code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from agentrunner.task.context import (
    Acceptance,
    Assessment,
    Baseline,
    CheckOutcome,
    Criterion,
    Evidence,
    EvidenceKind,
    Finding,
    Status,
    TestOutcome,
    Verdict,
    WorkerRun,
)
from agentrunner.task.spec import TestSpec

Mode = Literal["evidence", "strict", "judged"]
HARD_EVIDENCE: frozenset[EvidenceKind] = frozenset({"checked", "tested", "accepted"})


@dataclass(frozen=True)
class Judgement:
    """What stands between a tree and COMPLETE.

    `red` has to be mended, `open` findings need a person's word, `unproven` lacks evidence.
    """

    red: list[str]
    open: list[Finding]
    unproven: list[str]

    @property
    def complete(self) -> bool:
        """Nothing stands between."""
        return not (self.red or self.open or self.unproven)

    @property
    def missing(self) -> list[str]:
        """Everything that stands between, one sentence each."""
        return [*self.red, *(finding.message for finding in self.open), *self.unproven]


def fingerprint(finding: Finding) -> str:
    """Names a finding, so that saying it once and approving it can be remembered."""
    text = "\0".join([finding.code, *sorted(finding.paths)])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def approval_of(finding: Finding, tree: str) -> str:
    """Names a finding about one tree: what a person allows is what they were shown, no more."""
    return f"{fingerprint(finding)}-{tree[:12]}"


def vouched_for(
    evidence: Evidence, baseline: Baseline | None, approved: Collection[str]
) -> Evidence:
    """The evidence once a person allowed the changed tests: they count as the task's tests.

    The same evidence where no such change was allowed, or other ones were not.
    """
    changed = [finding for finding in evidence.findings if finding.code == "tests_changed"]
    allowed = [finding for finding in changed if approval_of(finding, evidence.tree) in approved]
    if not changed or len(allowed) < len(changed):
        return evidence
    proof = [*fail_to_pass(baseline, evidence.test), *evidence.proof]
    return evidence.model_copy(update={"restored_test": None, "proof": list(dict.fromkeys(proof))})


def fail_to_pass(baseline: Baseline | None, test: TestOutcome | None) -> list[str]:
    """The test command red on the tree before the run and green now."""
    before = baseline.test if baseline is not None else None
    if before is None or test is None or not test.green:
        return []
    if before.exit_code == 0 and not before.failed:  # green, or believed not to be; never red
        return []
    return [f"`{test.command}` failed before and passes now"]


def test_proof(proof: Sequence[str], checks: Sequence[CheckOutcome]) -> str:
    """The proof that the test command gives, not the check of a criterion; "" for none."""
    of_checks = tuple(f"{check.criterion_id}: " for check in checks)
    return next((line for line in proof if not line.startswith(of_checks)), "")


def settle(
    criteria: Sequence[Criterion],
    evidence: Evidence | None,
    assessment: Assessment | None,
    test: TestSpec | None,
    acceptances: Sequence[Acceptance] = (),
) -> list[Criterion]:
    """Each criterion with the status, kind of evidence and proof that code can vouch for."""
    if assessment is not None and evidence is not None and assessment.tree != evidence.tree:
        assessment = None
    outcomes = {check.criterion_id: check for check in evidence.checks} if evidence else {}
    return [
        _settled(criterion, outcomes.get(criterion.id), evidence, assessment, test, acceptances)
        for criterion in criteria
    ]


def _settled(
    criterion: Criterion,
    outcome: CheckOutcome | None,
    evidence: Evidence | None,
    assessment: Assessment | None,
    test: TestSpec | None,
    acceptances: Sequence[Acceptance],
) -> Criterion:
    status, kind, proof = _executed(criterion, outcome, evidence, test)
    says_failed = assessment is not None and criterion.id in assessment.failed
    says_passed = assessment is not None and not says_failed and criterion.id in assessment.passed
    if says_failed and not (status == "failed" and kind != "none"):
        status, kind, proof = "failed", "judged", "the model calls it failed"
    elif status == "unknown" and says_passed:
        status, kind, proof = "passed", "judged", proof or "the model's word only"
    yes = _accepted(criterion, evidence, acceptances)
    if yes is not None and kind in ("judged", "none"):
        status, kind, proof = "passed", "accepted", f"{yes.by}: {yes.reason}"
    comment = assessment.comments.get(criterion.id, "") if assessment else criterion.comment
    return criterion.model_copy(
        update={"status": status, "evidence": kind, "proof": proof, "comment": comment}
    )


def _executed(
    criterion: Criterion,
    outcome: CheckOutcome | None,
    evidence: Evidence | None,
    test: TestSpec | None,
) -> tuple[Status, EvidenceKind, str]:
    """What running alone says; `unknown` where it says nothing that counts."""
    check = criterion.check
    if evidence is None or check is None:
        return "unknown", "none", ""
    if check.kind == "test" and not check.name and test is not None:
        return _by_test_command(evidence)
    if outcome is None or outcome.outcome == "not_run":
        return "unknown", "none", outcome.detail if outcome else ""
    proof = f"{outcome.what} → {outcome.detail or outcome.exit_code}"
    if outcome.outcome == "failed":
        return "failed", "tested" if check.kind == "test" else "checked", proof
    if check.kind == "test":
        if outcome.before == "red":
            return "passed", "tested", f"{proof}, failed before"
        return "unknown", "none", f"{proof}, but it was not seen failing before"
    if criterion.check_origin == "model" and outcome.before != "red":
        return "unknown", "none", f"{proof}, but the model's check was not seen failing before"
    return "passed", "checked", proof + (", failed before" if outcome.before == "red" else "")


def _by_test_command(evidence: Evidence) -> tuple[Status, EvidenceKind, str]:
    if evidence.test is None:
        return "unknown", "none", ""
    proof = f"{evidence.test.command} → {evidence.test.exit_code}"
    if not evidence.test.green:
        return (
            "failed",
            "tested",
            proof + (f" ({evidence.test.finding})" * bool(evidence.test.finding)),
        )
    if evidence.restored_test is not None and not evidence.restored_test.green:
        return "unknown", "none", f"{proof}, but not with the tests as they were"
    if shown := test_proof(evidence.proof, evidence.checks):
        return "passed", "tested", f"{proof}; {shown}"
    return "unknown", "none", f"{proof}, but it was green before"


def _accepted(
    criterion: Criterion, evidence: Evidence | None, acceptances: Sequence[Acceptance]
) -> Acceptance | None:
    """A person's yes that covers this criterion on this very tree."""
    for yes in reversed(acceptances):
        covers = not yes.criteria or criterion.id in yes.criteria
        if covers and (evidence is None or yes.tree == evidence.tree):
            return yes
    return None


def judge(
    criteria: Sequence[Criterion],
    evidence: Evidence,
    mode: Mode,
    *,
    approved: Collection[str] = (),
    acceptances: Sequence[Acceptance] = (),
) -> Judgement:
    """What stands between this tree and COMPLETE; `criteria` are settled.

    `approved` names findings that a person allowed (`approval_of`). A blanket acceptance of this
    tree (`agentrunner accept` without criteria) stands in for missing proof and open findings.
    """
    vouched = any(not yes.criteria and yes.tree == evidence.tree for yes in acceptances)
    anyone = any(yes.tree == evidence.tree for yes in acceptances)
    unproven = [_why_unproven(c, mode) for c in criteria if _lacks_proof(c, mode)]
    if mode != "judged" and not evidence.proof and not anyone:
        unproven.append(
            "Nothing that was red before this run is green now: there is no proof of work."
        )
    return Judgement(
        red=_red(criteria, evidence),
        open=[
            finding
            for finding in evidence.findings
            if finding.blocks
            and not vouched
            and approval_of(finding, evidence.tree) not in approved
        ],
        unproven=unproven,
    )


def _red(criteria: Sequence[Criterion], evidence: Evidence) -> list[str]:
    red = []
    if evidence.test is not None and not evidence.test.green:
        names = f": {', '.join(evidence.test.failing[:3])}" if evidence.test.failing else ""
        why = evidence.test.finding or f"exits {evidence.test.exit_code}"
        red.append(f"`{evidence.test.command}` {why}{names}")
    red += [
        f"{criterion.id} failed: {criterion.proof}"
        for criterion in criteria
        if criterion.critical and criterion.status == "failed"
    ]
    return red


def _lacks_proof(criterion: Criterion, mode: Mode) -> bool:
    if not criterion.critical or criterion.status == "failed":
        return False
    return criterion.status != "passed" or (
        mode == "strict" and criterion.evidence not in HARD_EVIDENCE
    )


def _why_unproven(criterion: Criterion, mode: Mode) -> str:
    if criterion.status == "passed" and mode == "strict":
        return f"{criterion.id} rests on the model's word alone: {criterion.description}"
    return f"{criterion.id} is not shown to be met: {criterion.proof or criterion.description}"


def complete(criteria: Sequence[Criterion], evidence: Evidence, mode: Mode) -> Verdict:
    """The verdict of a tree that `judge` found complete; says so where nothing proves it."""
    judged = [c.id for c in criteria if c.critical and c.evidence == "judged"]
    if mode == "judged" and (not evidence.proof or judged):
        return Verdict(
            state="COMPLETE",
            reason="unproven",
            text="The model's word was admitted as evidence (completion: judged).",
        )
    text = "; ".join(evidence.proof[:2]) or "accepted by a person"
    if judged:
        text += f". {', '.join(judged)} rests on the model's word alone"
    return Verdict(state="COMPLETE", reason="complete", text=text[:1].upper() + text[1:] + ".")


def end_at_limit(
    criteria: Sequence[Criterion],
    evidence: Evidence | None,
    judgement: Judgement,
    reason: str,
    refused: Sequence[str] = (),
) -> Verdict:
    """How a run ends that may not go on: FAILED for red, NEEDS_REVIEW for a person's part.

    `refused` says why completion was refused last, if it was.
    """
    if evidence is None:
        return Verdict(state="FAILED", reason=reason, text="No worker run ended.", missing=[])
    if judgement.red:
        text = f"{judgement.red[0]}."
        return Verdict(state="FAILED", reason=reason, text=text, missing=judgement.missing)
    executed = any(c.evidence in ("checked", "tested") for c in criteria) or evidence.test
    text = (
        "Everything that can be executed passed; the rest is for a person to decide."
        if executed
        else "Nothing could be executed; only a person can decide."
    )
    missing = list(dict.fromkeys([*judgement.missing, *refused]))
    return Verdict(state="NEEDS_REVIEW", reason=reason, text=text, missing=missing)


def not_accepted(verdict: Verdict) -> Verdict:
    """The same end, after a person's yes that could not change it."""
    first, *others = verdict.missing
    missing = [f"The acceptance was refused: {first}", *others]
    return verdict.model_copy(update={"missing": missing})


def worker_trouble(recent: Sequence[WorkerRun]) -> str:
    """Why the last worker run did not succeed, as a sentence; "" where it did."""
    if not recent or recent[-1].outcome == "completed":
        return ""
    return f"The last worker run did not succeed: {recent[-1].error or recent[-1].outcome}"
