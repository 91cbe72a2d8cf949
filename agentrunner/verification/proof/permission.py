"""What turned green by a change that a person allowed, not by the work: accepted, not proven."""

from __future__ import annotations

from agentrunner.state.run_state import Proof
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination


async def grade_by_permission(exam: Examination, case: Case) -> None:
    """Grade as `accepted` what passes on the old product as well, with the inputs as they are now.

    Only where a person allowed a change of inputs: nobody else's change gets that far.
    """
    mine = [one for one in exam.report.proofs if one.target == case.target.id]
    if not exam.world.allowed or not mine:
        return
    old = await exam.run(case.target, exam.world.mixed)
    for proof in mine:
        by_change = [name for name in proof.tests if old.results and old.results.passed(name)]
        if not by_change and (proof.tests or not old.passed):
            continue
        exam.report.proofs.remove(proof)
        if rest := [name for name in proof.tests if name not in by_change]:
            exam.report.proofs.append(proof.model_copy(update={"tests": rest}))
        exam.report.proofs.append(_accepted(proof, by_change, exam.world.allowed))


def _accepted(proof: Proof, tests: list[str], allowed: tuple[str, ...]) -> Proof:
    what = ", ".join(tests[:2]) or proof.target
    return proof.model_copy(
        update={
            "author": "person",
            "grade": "accepted",
            "tests": tests,
            "text": f"{what} passes by a change of {', '.join(allowed[:3])} that a person allowed",
        }
    )
