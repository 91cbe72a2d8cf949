"""Tests of files, packages and classes that could not be loaded before the run.

No report names them, so what they are is read off their text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence

from agentrunner.verification.evidence.target import in_repo
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.model import ReadFile, Results, TestResult
from agentrunner.verification.results.names import gone, stands_for
from agentrunner.verification.syntax.definitions import definition, definitions
from agentrunner.verification.syntax.languages import SCRIPTS, language_of
from agentrunner.verification.test_changes.moves import Pair, Renames, forms_of, not_moved

MayGo = Callable[[str, str], bool]
"""Whether a test of this name and file may be gone."""


async def find_lost_unloaded(exam: Examination, case: Case) -> list[str]:
    """What could not be loaded before, and is gone, left out or asks less; nobody settled it."""
    before, may_go = case.before, exam.differential.may_go
    if before is None:
        return []
    claimed = exam.claims(case).claimed
    return await asyncio.to_thread(
        lambda: lost_unloaded(
            before,
            case.results,
            case.target.cwd,
            exam.world.readers,
            sorted(exam.total.all),
            exam.renames(),
            lambda name, file: may_go(name, file, passed=name not in claimed),
        )
    )


def without_listed(exam: Examination, case: Case, names: Sequence[str]) -> list[str]:
    """Those of `names` that no person called red for another reason. Blocks.

    What turns there says nothing of the work. Tests of what could not be loaded are found in the
    text that it had before.
    """
    before, listed = case.before, exam.claims(case).listed
    if before is None or not listed:
        return list(names)
    missing = [one for one in before.red if one.unloaded and one.name in listed]
    tests, cwd, was = (
        {test.name: test for test in case.results.tests},
        case.target.cwd,
        exam.world.was,
    )
    return [
        name
        for name in names
        if name not in listed
        and not any(
            stands_for(one, tests[name]) and stood_in_text(tests[name], cwd, was) for one in missing
        )
    ]


def had_no_name(test: TestResult, before: Results | None, claimed: Collection[str]) -> bool:
    """Whether a test may have been there without a name, and has to turn green.

    What stands for it could not be loaded and is claimed, or the report was cut.
    """
    if before is None or not before.complete:
        return True
    missing = [one for one in before.red if one.unloaded and one.name in claimed]
    return any(stands_for(one, test) for one in missing)


def lost_unloaded(
    before: Results,
    now: Results,
    cwd: str,
    trees: Pair,
    changed: Iterable[str],
    renames: Renames,
    may_go: MayGo,
) -> list[str]:
    """What could not be loaded before, and is gone, left out or asks something else by its text.

    `trees` reads the tree before the run and the one after it; `changed` are paths of the latter
    that are new or different, where a test may stand word for word. Blocks.
    """
    missing = [test for test in before.tests if test.unloaded and test.red]
    if not missing:
        return []
    files = list(dict.fromkeys(in_repo(file, cwd) for one in missing for file in files_of(one)))
    was = _by_text(before, files, trees[0])
    is_now = _by_text(now, dict.fromkeys([*files, *changed]), trees[1])
    found = not_moved(gone(was, is_now), was, is_now, ".", trees, renames)
    found += _reworded(was, _still_missing(missing, now, cwd), trees, renames)
    by_name = {test.name: test.file for test in was.tests}
    lost = [name for name in found if not may_go(name, by_name[name])]
    for one in missing:
        paths = [in_repo(file, cwd) for file in files_of(one)]
        is_deleted = bool(paths) and all(trees[1](path) is None for path in paths)
        if is_deleted and any(test.file in paths for test in was.tests):
            continue  # its tests are judged one by one
        if not _is_still_run(one, now) and not may_go(one.name, paths[0] if paths else ""):
            lost.append(one.name)
    return lost


def _still_missing(missing: Sequence[TestResult], now: Results, cwd: str) -> set[str]:
    """The files of what cannot be loaded now either: no run says what their tests ask."""
    names = {test.name for test in now.tests if test.unloaded}
    return {in_repo(file, cwd) for one in missing if one.name in names for file in files_of(one)}


def _reworded(was: Results, files: Collection[str], trees: Pair, renames: Renames) -> list[str]:
    """Tests of these files that stand there with another text, but for moves and new names."""
    found = []
    for path in files:
        language, sources = language_of(path), [read(path) for read in trees]
        old, new = (
            definitions(one, language) if language and one is not None else {} for one in sources
        )
        found += [
            test.name
            for test in was.tests
            if test.file == path
            and (own := _own_name(test)) in new
            and new[own] not in forms_of(old[own], renames)
        ]
    return found


def stood_in_text(test: TestResult, cwd: str, read: ReadFile) -> bool:
    """Whether a test stood in its file; without a grammar whether the file was there. Blocks."""
    path = in_repo(test.file, cwd) if test.file else ""
    language, source = language_of(path), read(path) if path else None
    if source is None or language is None:
        return source is not None
    return definition(source, language, test.name) is not None


def files_of(one: TestResult) -> tuple[str, ...]:
    """The files of the tests that it stands for, as far as they are known."""
    return one.files or ((one.file,) if one.file else ())


def _is_still_run(one: TestResult, now: Results) -> bool:
    """Whether it is still red, or tests that it stands for run."""
    return any(
        (test.red or test.outcome == "passed") and (test.name == one.name or stands_for(one, test))
        for test in now.tests
    )


def _by_text(results: Results, paths: Iterable[str], read: ReadFile) -> Results:
    """The tests that stand in these files, as if each of them passed."""
    tests = []
    for path in paths:
        language = language_of(path)
        source = read(path) if language is not None else None
        if language is not None and source is not None:
            names = definitions(source, language)
            tests += [TestResult(f"{path}{_joint(path)}{name}", "passed", path) for name in names]
    return Results(results.reader, tuple(tests))


def _joint(path: str) -> str:
    return " > " if language_of(path) in SCRIPTS else "::"


def _own_name(test: TestResult) -> str:
    """The name of such a test within its file."""
    return test.name[len(test.file + _joint(test.file)) :]
