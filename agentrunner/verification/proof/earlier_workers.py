"""Tests and programs that workers of earlier tasks of a plan wrote: they show, and prove nothing.

Who wrote the proof decides what it is worth. Before a task of a plan begins, the tree has what the
workers of others left there, and no person may have looked at that.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.config.spec import EarlierWork
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
