"""What workers of earlier tasks of a plan wrote, or a person allowed: it shows, and proves nothing.

Who wrote the proof decides what it is worth. Before a task of a plan begins, the tree has what the
workers of others left there, and no person may have looked at that.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.config.spec import EarlierWork
from agentrunner.state.run_state import Proof
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.test_finder import find_test

NOTE = "the worker of an earlier task of the plan wrote it"
DECIDES = ("test", "runner", "fixture")


def tests_of_earlier_workers(exam: Examination, case: Case, names: Sequence[str]) -> list[str]:
    """Those of the tests, which stood before the run, that an earlier worker wrote. Blocks.

    One that an earlier worker changed is among them.
    """
    earlier = exam.verifier.spec.earlier
    if earlier is None:
        return []
    read = exam.world.was
    return [name for name in names if _wrote(earlier, case.old_files.get(name, ""), name, read)]


def _wrote(earlier: EarlierWork, path: str, name: str, read: ReadFile) -> bool:
    if path in earlier.files:
        return True
    language, source = language_of(path), read(path) if path in earlier.tests else None
    if language is None or source is None:
        return False
    found = find_test(source, language, name)
    return found is not None and found.span.name in earlier.tests[path]


def programs_of_earlier_workers(exam: Examination, target: Target) -> list[str]:
    """Files that decide about a command without test names, and that an earlier worker wrote.

    A recipe or a setting that one changed may be no more than the list of what is built. Blocks.
    """
    earlier = exam.verifier.spec.earlier
    if earlier is None:
        return []
    inputs = exam.differential.inputs(exam.world.old, [target])
    found = ((path, inputs.input_at(path)) for path in [*earlier.files, *earlier.tests])
    return [path for path, one in found if one is not None and one.kind in DECIDES]


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
