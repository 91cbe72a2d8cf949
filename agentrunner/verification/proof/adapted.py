"""Tests that the PRD asks to adapt without naming their file: whether each had to change.

As it was worded before it has to fail on the new code, and as it is worded now on the old code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from agentrunner.git.restore import Entry
from agentrunner.verification.adapted_tests import with_guarded_imports
from agentrunner.verification.differential import in_repo
from agentrunner.verification.findings import tests_changed
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.model import Results
from agentrunner.verification.syntax.carried import carried
from agentrunner.verification.syntax.definitions import definition
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.world import InputChange

NEEDLESS = "{} passes on the new code as it was worded before, too"
NOT_OF_THE_WORK = "{} passes on the old code as it is worded now, too"
UNKNOWN = "whether {} had to change cannot be seen"
WHY = "the PRD asks for tests to be adapted"


async def hold_adapted(exam: Examination, case: Case) -> bool:
    """Whether each test that was adapted in the PRD's ordinary words had to change.

    Else there is a finding. Raises what running in rooms raises.
    """
    paths = [
        path
        for path in sorted(exam.differential.adapted_by_words)
        if exam.differential.counts(path, exam.world.old, [case.target])
    ]
    if not paths:
        return True
    problem = await _problem(exam, case, paths)
    if not problem:
        return True
    changes = [InputChange(path, WHY, "modified") for path in paths]
    finding = tests_changed(case.target, changes, problem, cut=False, lines="")
    return not exam.report.stopped_by(finding, case.target.id)


async def _problem(exam: Examination, case: Case, paths: Sequence[str]) -> str:
    """Why a test did not have to change; "" where each had to."""
    if case.now is None:
        return UNKNOWN.format(paths[0])
    names = await asyncio.to_thread(_reworded, exam, case, case.now, paths)
    before = [name for name in names if case.before and case.before.passed(name)]
    if not before:
        return "" if names else UNKNOWN.format(paths[0])
    world = exam.world
    old_words = await asyncio.to_thread(_with_files, exam, world.new, paths, _as_worded_before)
    ran = await exam.run(case.target, old_words)
    if ran.results is None:
        return UNKNOWN.format(before[0])
    if needless := [name for name in before if not _is_red(ran.results, name)]:
        return NEEDLESS.format(needless[0])
    new_words = await asyncio.to_thread(_with_files, exam, world.mixed, paths, _guarded)
    ran = await exam.run(case.target, new_words)
    if ran.results is None:
        return UNKNOWN.format(before[0])
    if needless := [name for name in before if ran.results.passed(name)]:
        return NOT_OF_THE_WORK.format(needless[0])
    # Where the file cannot be loaded, that says nothing of any single test.
    if len(before) > 1 and not all(_is_red(ran.results, name) for name in before):
        return UNKNOWN.format(before[0])
    return ""


def _is_red(results: Results, name: str) -> bool:
    return any(test.outcome == "failed" for test in results.named(name))


def _reworded(exam: Examination, case: Case, now: Results, paths: Sequence[str]) -> list[str]:
    """Names of tests of these files that say something else now, as they are reported. Blocks."""
    was = exam.verifier.snapshots.reader(exam.world.old)
    read = exam.verifier.snapshots.reader(exam.world.new)
    found = []
    for test in now.tests:
        path = in_repo(test.file, case.target.cwd)
        language = language_of(path)
        if path not in paths or language is None:
            continue
        before = definition(was(path) or b"", language, test.name)
        if before is not None and before != definition(read(path) or b"", language, test.name):
            found.append(test.name)
    return list(dict.fromkeys(found))


def _as_worded_before(path: str, before: bytes, after: bytes) -> bytes:
    """A file of tests with its old wording and its new imports."""
    return carried(before, after, language_of(path) or "") or before


def _guarded(path: str, _: bytes, after: bytes) -> bytes:
    """A file of tests of which those run that need no name which only the new code has."""
    return with_guarded_imports(after, language_of(path) or "") or after


def _with_files(
    exam: Examination,
    tree: str,
    paths: Sequence[str],
    made_of: Callable[[str, bytes, bytes], bytes],
) -> str:
    """A tree with other texts of files, made of their paths, old and new texts. Blocks."""
    snapshots = exam.verifier.snapshots
    was, now = snapshots.reader(exam.world.old), snapshots.reader(exam.world.new)
    entries = snapshots.list(exam.world.new)
    made: dict[str, Entry | None] = {
        path: (
            entries[path][0],
            snapshots.write_blob(made_of(path, was(path) or b"", now(path) or b"")),
        )
        for path in paths
    }
    return snapshots.combine(tree, made)
