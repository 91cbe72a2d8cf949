"""Tests that the PRD asks to adapt without naming their file: whether each had to change.

As it was worded before it has to fail on the new code, and as it is worded now on the old code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct

from agentrunner.verification.evidence.findings import tests_changed
from agentrunner.verification.evidence.target import in_repo
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.model import Results
from agentrunner.verification.syntax.definitions import definition
from agentrunner.verification.syntax.imports import carried
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.test_finder import find_test
from agentrunner.verification.test_changes.adapted_tests import with_guarded_imports
from agentrunner.verification.world import InputChange

NEEDLESS = "{} passes on the new code as it was worded before, too"
NOT_OF_THE_WORK = "{} passes on the old code as it is worded now, too"
UNKNOWN = "whether {} had to change cannot be seen"
BUILT_WHOLE = frozenset({"go", "rust", "java"})
"""Languages whose tests do not even start where one of them hands over too little."""
WHY = "the PRD asks for tests to be adapted"


async def hold_adapted(exam: Examination, case: Case) -> bool:
    """Whether each test that was adapted in the PRD's ordinary words had to change.

    Else there is a finding. Raises what running in rooms raises.
    """
    differential, adapted = exam.differential, sorted(exam.differential.adapted_by_words)
    paths = await asyncio.to_thread(
        lambda: [one for one in adapted if differential.counts(one, case.target)]
    )
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
    tests = await asyncio.to_thread(_reworded, exam, case, paths)
    if not tests:
        of_these = (in_repo(one.file, case.target.cwd) in paths for one in case.now.tests)
        return "" if any(of_these) else UNKNOWN.format(paths[0])
    cwd, world = case.target.cwd, exam.world
    tests = [one for one in tests if case.before and one.any_of(case.before, cwd, "passed")]
    if not tests:
        return ""
    old_words = await asyncio.to_thread(_with_files, exam, world.new, paths, _as_worded_before)
    ran = await exam.run(case.target, old_words)
    built = all(language_of(path) in BUILT_WHOLE for path in paths)
    if ran.results is None and not (built and not ran.passed):
        return UNKNOWN.format(tests[0].name)
    for one in tests:
        unbuilt = built and not one.any_of(ran.results, cwd, "passed")
        red = one.any_of(ran.results, cwd, "failed") or one.any_of(ran.results, cwd, "error")
        if not red and not unbuilt:
            return NEEDLESS.format(one.name)
    new_words = await asyncio.to_thread(_with_files, exam, world.mixed, paths, _guarded)
    ran = await exam.run(case.target, new_words)
    if ran.results is None and not (built and not ran.passed):
        return UNKNOWN.format(tests[0].name)
    failed = [one for one in tests if one.any_of(ran.results, cwd, "failed")]
    for one in tests:
        if one not in failed and one.any_of(ran.results, cwd, "passed"):
            return NOT_OF_THE_WORK.format(one.name)
    # Where the file cannot be loaded, that says nothing of any single test.
    return "" if built or len(tests) == 1 or failed == tests else UNKNOWN.format(tests[0].name)


class _Reworded(Struct, frozen=True):
    """A test that says something else now, perhaps with cases that have names of their own."""

    name: str
    """The name of it, or of one of its cases, as it is reported."""
    path: str
    own_name: str
    """Its name in its file."""
    before: bytes
    """The file as it was."""

    def any_of(self, results: Results | None, cwd: str, outcome: str) -> bool:
        """Whether it, or one of its cases, has this outcome; none has it without results."""
        return results is not None and any(
            test.outcome == outcome
            and in_repo(test.file, cwd) == self.path
            and _name_in(self.path, self.before, test.name) == self.own_name
            for test in results.tests
        )


def _reworded(exam: Examination, case: Case, paths: Sequence[str]) -> list[_Reworded]:
    """The tests of these files that say something else now. Blocks."""
    found: dict[tuple[str, str], _Reworded] = {}
    for test in case.results.tests:
        path = in_repo(test.file, case.target.cwd)
        language, text = language_of(path), exam.world.was(path) if path in paths else None
        if language is None or text is None:
            continue
        before = definition(text, language, test.name)
        if before is None or before == definition(exam.world.now(path) or b"", language, test.name):
            continue
        name = _name_in(path, text, test.name)
        found.setdefault((path, name), _Reworded(test.name, path, name, text))
    return list(found.values())


def _name_in(path: str, source: bytes, name: str) -> str:
    """The name in its file of a test that is reported; "" for none."""
    found = find_test(source, language_of(path) or "", name)
    return found.span.name if found else ""


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
    world = exam.world
    entries = world.snapshots.list(world.new)
    texts = {path: made_of(path, world.was(path) or b"", world.now(path) or b"") for path in paths}
    made = {
        path: (entries[path][0], world.snapshots.write_blob(text)) for path, text in texts.items()
    }
    return world.snapshots.combine(tree, made)
