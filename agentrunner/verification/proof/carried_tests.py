"""Runs claimed tests whose files the PRD lets change once more, as they were worded before.

That a test may be adapted to a move or a new name permits other imports, not other assertions.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import sanitize
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.findings import tests_changed, tests_reworded
from agentrunner.verification.evidence.target import in_repo
from agentrunner.verification.inputs.globs import matches
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.red_on_old_code import MISSING
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import own_name
from agentrunner.verification.syntax.comparisons import literals
from agentrunner.verification.syntax.definitions import definition, definitions
from agentrunner.verification.syntax.imports import (
    bound_otherwise,
    carried,
    defined_instead,
    imported,
)
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.test_finder import find_test
from agentrunner.verification.syntax.tokens import Value, lexical_family, number
from agentrunner.verification.test_changes.adapted_tests import (
    has_same_values,
    with_guarded_imports,
)
from agentrunner.verification.test_changes.moved_imports import QUOTED_PATH
from agentrunner.verification.test_changes.stated_values import VALUE, hands_over_more
from agentrunner.verification.world import InputChange

NEEDLESS = "{} passes on the new code as it was worded before, too"
NOT_OF_THE_WORK = "{} passes on the old code as it is worded now, too"
UNKNOWN = "whether {} had to change cannot be seen"
BUILT_WHOLE = frozenset({"go", "rust", "java"})
"""Languages whose tests do not even start where one of them hands over too little."""
WHY = "the PRD asks for tests to be adapted"

NUMBER = lazy_regex(r"(?<![\w.,])-?\d+(?:[.,]\d+)?(?![\w])")
LOST = "{} asked for {} before, which the task states, and no test of these files does now"

MOST_MOVED = 20


async def hold_as_worded(exam: Examination, case: Case) -> list[str] | None:
    """Claimed tests of changed files that pass as they were worded before.

    None where one of them passes only with its new wording and this stops the examination: then a
    finding is added. [] where the old wording cannot be carried over to the new code. Raises what
    running in rooms raises.
    """
    claimed = _claimed_that_pass(sorted(exam.claims(case).claimed), case.results)
    changed = await asyncio.to_thread(_permitted_by_the_prd, exam)
    if not claimed or not changed:
        return []
    pairs = await asyncio.to_thread(_old_and_new, exam, changed)
    if not pairs:
        return []
    reworded_by = [
        f"{path} defines {', '.join(names)} itself, which it imported before"
        for path, (old_text, new_text) in pairs.items()
        if (names := defined_instead(old_text, new_text, language_of(path) or ""))
    ]
    asked = exam.verifier.spec.wanted
    moved_modules = await asyncio.to_thread(_paths_of_moved_modules, exam)
    reworded_by += [
        f"{path} imports {', '.join(names)} as something else than before"
        for path, (old_text, new_text) in pairs.items()
        if (
            names := bound_otherwise(
                old_text, new_text, language_of(path) or "", asked, moved_modules
            )
        )
    ]
    target = case.target
    if reworded_by:
        finding = tests_reworded(target, [], sorted(pairs), reworded_by[0])
        return None if exam.report.stopped_by(finding, target.id) else []
    tree = await asyncio.to_thread(_with_old_wording, exam, pairs)
    if tree is None:
        return []
    if tree == exam.world.new:
        return [name for name in claimed if case.results.passed(name)]
    ran = await exam.run(target, tree, claimed)
    if ran.results is None:
        return []
    lost = [
        test
        for test in ran.results.tests
        if test.name in claimed and test.outcome == "failed" and not MISSING.search(test.message)
    ]
    if not lost:
        return [name for name in claimed if ran.results.passed(name)]
    first = lost[0]
    output = sanitize(first.message).strip().splitlines()
    message = output[0][:200] if output else "it fails"
    names = [test.name for test in lost]
    finding = tests_reworded(target, names, sorted(pairs), f"{first.name}: {message}")
    return None if exam.report.stopped_by(finding, target.id) else []


def _claimed_that_pass(names: Sequence[str], now: Results) -> list[str]:
    """The claimed tests that pass now, including those whose module has another name now."""
    own = {own_name(name): name for name in names if name not in now.names}
    return [
        test.name
        for test in now.tests
        if test.outcome == "passed" and (test.name in names or own_name(test.name) in own)
    ]


def _permitted_by_the_prd(exam: Examination) -> list[str]:
    """Changed inputs that the PRD's words permit to change, without a person's own list. Blocks."""
    test = exam.verifier.test
    may = test.may_change if test is not None else []
    permitted = exam.differential.adapted(exam.world.allowed)
    return sorted(path for path in permitted if not matches(path, may))


def _old_and_new(exam: Examination, paths: list[str]) -> dict[str, tuple[bytes, bytes]]:
    """Old and new text of changed files in known languages, by their present path. Blocks."""
    was, now = exam.world.was, exam.world.now
    gone_texts = {
        path: text for path in paths if (text := was(path)) is not None and now(path) is None
    }
    found: dict[str, tuple[bytes, bytes]] = {}
    for path in paths:
        language, after = language_of(path), now(path)
        if language is None or after is None:
            continue
        before = was(path)
        if before is None:  # it was moved here: take the file that had most of its tests
            before = _origin(definitions(after, language).keys(), language, gone_texts)
        if before is not None and before != after:
            found[path] = (before, after)
    return found


def _origin(names: Set[str], language: str, gone_texts: Mapping[str, bytes]) -> bytes | None:
    """The text of the deleted file that had most of these tests; None for none."""
    common = {
        path: len(names & definitions(text, language).keys())
        for path, text in gone_texts.items()
        if language_of(path) == language
    }
    best = max(common, key=lambda path: common[path], default="")
    return gone_texts[best] if best and common[best] else None


def _with_old_wording(exam: Examination, pairs: Mapping[str, tuple[bytes, bytes]]) -> str | None:
    """The new tree with the old wording carried over; None where none can be. Blocks."""
    made: dict[str, bytes] = {}
    any_carried = False
    for path, (before, after) in pairs.items():
        text = carried(before, after, language_of(path) or "")
        any_carried = any_carried or text is not None
        if text is not None and text != after:
            made[path] = text
    return exam.world.snapshots.with_texts(exam.world.new, made) if any_carried else None


def _paths_of_moved_modules(exam: Examination) -> dict[str, frozenset[str]]:
    """Where modules went whose files are gone: parts of the new path, by module name. Blocks.

    The new path is that of the added file of the same name, else of the one most like it.
    """
    before, after = exam.world.was, exam.world.now
    found: dict[str, frozenset[str]] = {}
    for old in sorted(exam.total.deleted)[:MOST_MOVED]:
        path = PurePosixPath(old)
        added = [
            one for one in map(PurePosixPath, sorted(exam.total.added)) if one.suffix == path.suffix
        ][:MOST_MOVED]
        text = before(old) or b""
        same = [one for one in added if one.name == path.name] or sorted(
            added, key=lambda one: _likeness(text, after(str(one)) or b"")
        )[-1:]
        if same:
            found[path.stem] = frozenset(part for one in same for part in one.with_suffix("").parts)
    return found


def _likeness(one: bytes, other: bytes) -> float:
    """The share of lines that two files have in common, from 0 to 1."""
    return SequenceMatcher(None, one.splitlines(), other.splitlines(), autojunk=False).ratio()


async def stopped_for_lost_values(exam: Examination, case: Case, asked: str) -> bool:
    """Whether a finding stops the examination, as a value that the task states is asked no more.

    `asked` is what people ask for.

    The literals of a claimed test before the run that the task states have to stand in some test of
    the changed files still. A test may be split, moved or written as a table: nothing is said of
    its form.
    """
    lost = await asyncio.to_thread(_lost, exam, case, asked)
    if lost is None:
        return False
    name, path, value = lost
    finding = tests_reworded(case.target, [name], [path], LOST.format(name, value))
    return exam.report.stopped_by(finding, case.target.id)


def _lost(exam: Examination, case: Case, asked: str) -> tuple[str, str, str] | None:
    """A claimed test, its file, and a value of it that is lost. Blocks."""
    world, was, now = exam.world, exam.world.was, exam.world.now
    claimed = {
        name: path
        for name in sorted(exam.claims(case).claimed)
        if (path := case.old_files.get(name, "")) and was(path) != now(path)
    }
    if not claimed:
        return None
    inputs = exam.differential.inputs(world.new, [case.target])
    counted = ((path, inputs.input_at(path)) for path in world.snapshots.list(world.new))
    tests = {path for path, one in counted if one and one.kind in ("test", "fixture")}
    asked_now = set(
        _values((path, now(path) or b"") for path in sorted({*tests, *claimed.values()}))
    )
    numbers = {number(hit.replace(",", ".")) for hit in NUMBER.findall(asked)}
    for name, path in claimed.items():
        before, language = was(path) or b"", language_of(path) or ""
        text = (definition(before, language, name) if language else None) or ""
        for value in _values([(path, to_bytes(text))]):
            kind, shown = value
            stated = value in numbers if kind == "number" else len(shown) > 1 and shown in asked
            if stated and value not in asked_now:
                return name, path, shown if kind == "number" else repr(shown)
    return None


def _values(sources: Iterable[tuple[str, bytes]]) -> Iterable[Value]:
    for path, source in sources:
        if (family := lexical_family(path, source)) is not None:
            yield from literals(source, family)


async def hold_adapted(exam: Examination, case: Case) -> bool:
    """Whether each test that was adapted in the PRD's ordinary words had to change.

    Else there is a finding. Raises what running in rooms raises.

    As it was worded before it has to fail on the new code, and as it is worded now on the old code.
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
        if not (red or unbuilt or one.same):
            return NEEDLESS.format(one.name)
    # What passes as it was worded before asks nothing of the work, and holds.
    tests = [one for one in tests if not (one.same and one.any_of(ran.results, cwd, "passed"))]
    if not tests:
        return ""
    new_words = await asyncio.to_thread(_with_files, exam, world.mixed, paths, _guarded)
    ran = await exam.run(case.target, new_words)
    if ran.results is None and not (built and not ran.passed):
        return UNKNOWN.format(tests[0].name)
    tests = [one for one in tests if not (one.more and one.any_of(ran.results, cwd, "passed"))]
    failed = [one for one in tests if one.any_of(ran.results, cwd, "failed")]
    for one in tests:
        if one not in failed and one.any_of(ran.results, cwd, "passed"):
            return NOT_OF_THE_WORK.format(one.name)
    # Where the file cannot be loaded, that says nothing of any single test.
    return "" if built or len(tests) < 2 or failed == tests else UNKNOWN.format(tests[0].name)


class _Reworded(Struct, frozen=True):
    """A test that says something else now, perhaps with cases that have names of their own."""

    name: str
    """The name of it, or of one of its cases, as it is reported."""
    path: str
    own_name: str
    """Its name in its file."""
    before: bytes
    """The file as it was."""
    more: bool
    """Whether it only hands over more, as the task says: a new key that old code does not mind."""
    same: bool
    """Whether it only says in another way what it said: rows in the place of lines."""

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
    texts = [(was or b"", now) for _, _, was, now in exam.world.sources()]
    gone = {
        value
        for both in texts
        for old, new in [[Counter(VALUE.findall(one.decode("utf-8", "replace"))) for one in both]]
        for value in old - new
    }
    for test in case.results.tests:
        path = in_repo(test.file, case.target.cwd)
        language, text = language_of(path), exam.world.was(path) if path in paths else None
        if language is None or text is None:
            continue
        before = definition(text, language, test.name)
        after = definition(exam.world.now(path) or b"", language, test.name)
        if before is None or before == after:
            continue
        name = _name_in(path, text, test.name)
        kit = _from_elsewhere(imported(text, language), exam.world.old_paths)
        more = hands_over_more(before, after or "", exam.verifier.spec.wanted, gone, kit)
        same = has_same_values(before, after or "")
        found.setdefault((path, name), _Reworded(test.name, path, name, text, more, same))
    return list(found.values())


def _from_elsewhere(names: Mapping[str, str], paths: Collection[str]) -> set[str]:
    """Which imported names are from a module that the project does not have: the tests' kit."""
    own = {part.partition(".")[0] for path in paths for part in path.split("/")}
    places = {name: QUOTED_PATH.search(place) for name, place in names.items()}
    modules = {name: hit[1] if (hit := places[name]) else names[name] for name in names}
    return {
        name
        for name, module in modules.items()
        if module[:1] not in (".", "/") and re.split(r"[./ ]", module)[0] not in own
    }


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
