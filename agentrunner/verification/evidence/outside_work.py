"""What a person changed after a run had ended is no work of the run, and proves none. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.state.run_state import Evidence, Finding, Proof
from agentrunner.verification.evidence.target import TEST

CODE = "changed_since"
MOST = 50
SHOWN = 5


def with_outside_work(
    evidence: Evidence, known: Evidence | None, edited: Sequence[str]
) -> Evidence:
    """Return evidence of an ended run's tree that names `edited` as changed outside of the run.

    `known` is the evidence before that. What was not green there holds only with the later edits;
    where these cover all that the workers had changed, everything does.
    """
    outside = [*(known.outside if known else []), *edited]
    outside = list(dict.fromkeys(outside))[:MOST]
    if not outside:
        return evidence
    everything = known is None or set(evidence.changed_files) <= set(outside)
    green: list[str] = []
    if known is not None and not everything:
        green = [one.criterion_id for one in known.checks if one.outcome == "passed"]
        green += [TEST] if known.test and known.test.green else []
        green += known.test.turned if known.test else []
        green = [one for one in green if one not in known.by_hand]
    targets = [TEST, *(one.criterion_id for one in evidence.checks)]
    targets += evidence.test.turned if evidence.test else []
    by_hand = [one for one in targets if one not in green]
    shown = ", ".join(outside[:SHOWN]) + (" …" if len(outside) > SHOWN else "")
    finding = Finding(
        code=CODE,
        message=f"changed since the run ended, not by the worker: {shown}",
        paths=outside,
        blocks=False,
    )
    findings = [one for one in evidence.findings if one.code != CODE]
    return evidence.model_copy(
        update={"outside": outside, "by_hand": by_hand, "findings": [*findings, finding]}
    )


def without_credit(evidence: Evidence) -> Evidence:
    """Return examined evidence in which what only later edits made green is no proof of the run.

    It is `shown`, until a person accepts it.
    """
    if not evidence.by_hand:
        return evidence
    proofs = [_lowered(one) if _is_by_hand(one, evidence) else one
              for one in evidence.proofs]  # fmt: skip
    return evidence.model_copy(update={"proofs": proofs})


def _is_by_hand(proof: Proof, evidence: Evidence) -> bool:
    by_hand = set(evidence.by_hand)
    if proof.target != TEST or not proof.tests:
        return proof.target in by_hand
    return bool(by_hand & set(proof.tests))


def _lowered(proof: Proof) -> Proof:
    text = f"{proof.text}, only with what was changed since the run ended"
    return proof.model_copy(update={"grade": "shown", "text": text})
