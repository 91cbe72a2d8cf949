"""Tests of a command that turned green: those that existed, and those that the worker shows."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.claims import fresh, turned
from agentrunner.verification.evidence.findings import (
    NOT_LOADED_BEFORE,
    RAN_BEFORE,
    about_work,
    tests_gone,
)
from agentrunner.verification.evidence.target import Target, in_tree
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.proof.carried_tests import hold_as_worded
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.code_removal import ShownTests, find_shown_tests
from agentrunner.verification.proof.data_changes import (
    BY_DATA,
    turned_by_data,
)
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.new_checks import QUOTED
from agentrunner.verification.proof.old_inputs import hold_with_old_data
from agentrunner.verification.proof.packages import holds_with_old_packages
from agentrunner.verification.proof.unloaded_tests import (
    find_lost_unloaded,
    had_no_name,
    without_listed,
)
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import (
    changing,
    gone,
    has_as_many_cases,
    is_of_others,
    put_aside,
    settled,
    stable,
    unstable_names,
)
from agentrunner.verification.syntax.definitions import definition
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.test_changes.moves import moved_to, not_moved
from agentrunner.verification.test_changes.removed_tests import VALUE
from agentrunner.verification.verdict import NOTHING_TURNED

MOST_NAMES = 50
MOST_LINES = 5_000
WORD = lazy_regex(r"\w+")
WRITTEN = "what it expects was written by the worker: {} changed with the code, as the PRD permits"
IN_CODE = lazy_regex(r"`([^`\n]{2,60})`")
"""Beside texts in quotes a PRD writes others so, such as `<h2>`."""
UNSTATED = "{} says “{}” now, which is not what the requirements state in quotes"


class Followed(Struct, frozen=True):
    """Tests whose expected data followed the work.

    The PRD asks for another output and lets a golden file change. A test that compares with this
    file passed before and passes now; it is red with the new code and the old file, and with the
    old code and the new file. So it asks for the new output. The worker wrote what it expects, so
    it is worth what a test of the worker's own is worth.
    """

    names: Sequence[str] = ()
    paths: Sequence[str] = ()
    """The data."""
    why: str = ""
    """Why no test counts as such, although expected data followed the work."""

    @property
    def notes(self) -> list[str]:
        """What a reader of the proof has to know."""
        return [WRITTEN.format(", ".join(self.paths[:3]))]


MOST_REWORDED = 50


class TurnedTests(Struct, frozen=True):
    """Tests of a command that turned green, and whose they are."""

    stood: list[str]
    """Those that existed before the run, by their names of today or before a move."""
    shown: ShownTests
    """Those of the worker's that show something."""
    followed: Followed
    """Those whose expected data followed the work, as the worker's, too."""
    here: list[str]
    """All of them by the names that they have now."""

    @property
    def standing(self) -> list[str]:
        """Those that existed before the run and have their names still."""
        return [name for name in self.stood if name in self.here]

    @property
    def of_worker(self) -> list[str]:
        return [name for name in self.shown.names if name in self.here]


async def find_turned_tests(
    exam: Examination, case: Case, held: Results | None
) -> TurnedTests | None:
    """The tests that turned green, seen once more; none where a finding or doubt ends it here."""
    target, report = case.target, exam.report
    lost = await _lost_tests(exam, case, held)
    if lost and report.stopped_by(tests_gone(target, lost, RAN_BEFORE), target.id):
        return None
    unread = await find_lost_unloaded(exam, case)
    if unread and report.stopped_by(tests_gone(target, unread, NOT_LOADED_BEFORE), target.id):
        return None
    if (as_worded := await hold_as_worded(exam, case)) is None:
        return None
    if (stood := await _that_stood(exam, case, held)) is None:
        return None
    stood += await exam.confirmed_red(case, [name for name in as_worded if name not in stood])
    others = _not_seen_before(case.before, case.results, stood)
    others = await asyncio.to_thread(without_listed, exam, case, others)
    others += await _reworded_tests(exam, case, held)
    followed = await find_followed_data(exam, case)
    others += [name for name in followed.names if name not in others]
    shown = await find_shown_tests(exam, case, others, stood)
    if shown.unasked and report.stopped_by(about_work("unasked", shown.unasked), target.id):
        return None
    if shown.asks_nothing and not stood and _is_named_by_person(exam, target):
        report.stopped_by(about_work("unasked", f"{target.id}: {shown.why}"), target.id)
        return None
    if not (names := [*stood, *shown.names]):
        claimed = sorted(exam.claims(case).claimed)
        report.doubts[target.id] = (
            _not_turned(claimed, case.results) or followed.why or shown.why or NOTHING_TURNED
        )
        return None
    # A test that existed before and has moved since passes only with the old inputs.
    here = [name for name in names if case.results.passed(name)]
    if not await exam.confirmed_green(case, here):
        return None
    if not await holds_with_old_packages(exam, case, here):
        return None
    return TurnedTests(stood, shown, followed, here)


async def _that_stood(exam: Examination, case: Case, held: Results | None) -> list[str] | None:
    """Tests that existed before the run and turned green by the work; none where it ends here."""
    stood = await exam.confirmed_red(case, _turned_names(exam, case, held))
    stood += await _moved_claimed(exam, case, stood, held)
    stood = await _red_without_the_work(exam, case, stood)
    if not await hold_with_old_data(exam, case, stood):
        return None
    if not stood:
        return []
    data, by_data = await turned_by_data(exam, case.target, stood)
    stood = [name for name in stood if name not in by_data]
    if data and not stood:
        exam.report.doubts[case.target.id] = f"{data} {BY_DATA}"
        return None
    return stood


def _is_named_by_person(exam: Examination, target: Target) -> bool:
    """Whether a person named the tests of a command, so that no word stands in for them."""
    return any(one.id == target.id and one.check_origin != "model" for one in exam.criteria)


async def _lost_tests(exam: Examination, case: Case, held: Results | None) -> list[str]:
    """Tests that are gone or skipped, and neither moved nor settled.

    A case that has another name is not gone where its test has as many cases as before, where
    nothing that decides lost a value, and where it passes as it was worded before (`held`).

    Tests that were red are included, also those that a person listed as known reds: these may stay
    red, not go. Before they count as lost, the old tree runs once more: names that differ between
    two runs of one tree are compared by the part that stays the same.
    """
    if case.before is None:
        return []
    # A test that could not even be loaded is no test yet.
    failed = {test.name for test in case.before.red if test.outcome == "failed"}
    red = [name for name in sorted(failed) if not _is_still_run(name, case.results)]
    red += put_aside(case.before, case.results)
    known = changing(case.before)
    lost = await _unsettled(exam, case, [*gone(case.before, case.results, known), *red])
    lost = await asyncio.to_thread(_without_other_cases, exam, case, lost, held)
    if not lost:
        return []
    again = await exam.run(case.target, exam.world.old)
    unstable = unstable_names(case.before, again.results) if again.results else set()
    if not unstable:
        return lost
    lost = await _unsettled(exam, case, [*gone(case.before, case.results, known | unstable), *red])
    return await asyncio.to_thread(_without_other_cases, exam, case, lost, held)


def _without_other_cases(
    exam: Examination, case: Case, lost: list[str], held: Results | None
) -> list[str]:
    """Those of `lost` that are not merely called otherwise now. Blocks."""
    before, now = case.before, case.results
    if before is None or held is None:
        return lost
    green = [name for name in lost if before.passed(name) and held.passed(name)]
    called_otherwise = {
        name
        for name in green
        if has_as_many_cases(name, before, now)
        and all(_keeps_values(exam, path) for path in _inputs_of(exam, case, name))
    }
    return [name for name in lost if name not in called_otherwise]


def _inputs_of(exam: Examination, case: Case, name: str) -> set[str]:
    """The file of a test, and what decides beside it and is another one now."""
    permitted = exam.differential.permitted(exam.world.allowed)
    changed = {*permitted, *(one.path for one in exam.world.changes)}
    return {case.old_files.get(name, ""), *(changed & exam.world.old_paths)}


def _keeps_values(exam: Examination, path: str) -> bool:
    """Whether a file has all texts and numbers that it had, and perhaps more. Blocks."""
    was, there = (
        Counter(VALUE.findall((read(path) or b"").decode("utf-8", "replace")))
        for read in exam.world.readers
    )
    return bool(path) and was <= there


def _is_still_run(name: str, now: Results) -> bool:
    """Whether a test still runs, by the stable part of its name, or tests of a file so named do."""
    parts = {stable(one) for one in now.names}
    return stable(name) in parts or is_of_others(name, parts)


async def _unsettled(exam: Examination, case: Case, lost: list[str]) -> list[str]:
    """Those of `lost` that stand nowhere else and that nobody settled."""
    if not lost or case.before is None:
        return []
    files, before, may_go = case.old_files, case.before, exam.differential.may_go
    unmoved = await asyncio.to_thread(
        lambda: not_moved(
            lost, before, case.results, case.target.cwd, exam.world.readers, exam.renames()
        )
    )
    claimed = exam.claims(case).claimed
    # What was red for another reason may go with its code, as what passed may. A file whose tests
    # are adapted has them all yet: one that is reported and does not run is left out.
    adapted = exam.differential.adapted_by_words
    return [
        name
        for name in unmoved
        if (files.get(name, "") in adapted and name in case.results.names)
        or not may_go(name, files.get(name, ""), passed=before.passed(name) or name not in claimed)
    ]


async def _red_without_the_work(exam: Examination, case: Case, stood: list[str]) -> list[str]:
    """Those of `stood` that did not turn green merely by a permitted change of the test.

    A permit settles that a test may change, not what it says. A test that says something else now
    is the worker's own and dropped. One that says the same must be red on the old product with the
    new inputs.
    """
    permitted = exam.differential.permitted(exam.world.allowed)
    files = case.files
    asked = [name for name in stood if files.get(name) in permitted]
    if not asked:
        return stood
    same = await asyncio.to_thread(_worded_as_before, exam, asked, files)
    stood = [name for name in stood if name not in asked or name in same]
    if not (asked := same):
        return stood
    old = await exam.run(case.target, exam.world.mixed, asked)
    if old.results is None:
        return [name for name in stood if name not in asked] if old.passed else stood
    return [name for name in stood if name not in asked or not old.results.passed(name)]


async def _reworded_tests(exam: Examination, case: Case, held: Results | None) -> list[str]:
    """Tests that existed and always passed, and that the worker gave another wording.

    One that asks for more is as good as a new test: it fails on the old code. That its old wording
    passes as well was seen with the old inputs.
    """
    before, now, world = case.before, case.results, exam.world
    if before is None or held is None:
        return []
    was = await asyncio.to_thread(world.snapshots.list, world.old)
    entries = await asyncio.to_thread(world.snapshots.list, world.new)
    files = {
        name: path
        for name, path in case.files.items()
        if path in was and path in entries and was[path] != entries[path]
    }
    names = [name for name in files if all(one.passed(name) for one in (before, held, now))]
    same = await asyncio.to_thread(_worded_as_before, exam, names, files)
    reworded = [name for name in names if name not in same]
    unread = [name for name in reworded if language_of(files[name]) is None]
    if any(one.test and one.path in was and one.path in entries for one in world.changes):
        # As under CTest, where no test has a file.
        nameless = [test.name for test in now.tests if not test.file]
        unread += [n for n in nameless if before.passed(n) and held.passed(n) and now.passed(n)]
    if unread:  # whether it says something else, only the old code can tell
        ran = await exam.run(case.target, world.mixed)
        # Where nothing can be built of the old code, all of them are red there.
        built = ran.results is not None or ran.passed
        passes = ran.results.passed if ran.results else lambda _: built
        red = [name for name in unread if not passes(name)]
        reworded = [*(name for name in reworded if name not in unread), *red]
    return reworded[:MOST_REWORDED]


def _worded_as_before(
    exam: Examination, names: Sequence[str], files: Mapping[str, str]
) -> list[str]:
    """Those of `names` whose test says now what it said before. Blocks."""
    before, after = exam.world.was, exam.world.now
    same = []
    for name in names:
        path = files[name]
        language, before_text, after_text = language_of(path), before(path), after(path)
        if before_text is None:  # it has moved here, word for word
            same.append(name)
        elif after_text is None:
            continue
        elif language is None:
            same += [name] if before_text == after_text else []
        elif (text := definition(after_text, language, name)) is not None:
            same += [name] if definition(before_text, language, name) == text else []
    return same


async def _moved_claimed(
    exam: Examination, case: Case, stood: Sequence[str], held: Results | None
) -> list[str]:
    """New names of claimed tests that stand elsewhere now, word for word.

    A test that still fails in its old place asks something else there than in its new one.
    """
    now = case.results
    if case.before is None:
        return []
    missing = [name for name in sorted(exam.claims(case).claimed) if name not in stood]
    missing = [name for name in missing if name not in now.names]
    if held is not None and held is not now:
        missing = [n for n in missing if all(one.outcome != "failed" for one in held.named(n))]
    pairs = await asyncio.to_thread(
        lambda: moved_to(
            missing, case.before or now, now, case.target.cwd, exam.world.readers, exam.renames()
        )
    )
    red = await exam.confirmed_red(case, list(pairs))
    return [pairs[name] for name in red]


def _turned_names(exam: Examination, case: Case, held: Results | None) -> list[str]:
    """Tests that existed before the run, did not pass then, and pass with the old inputs."""
    if held is None:
        return []
    found = turned(case.before, held, exam.claims(case).claimed)
    # A file that could not be loaded reported no test names, but its tests existed all the same.
    if case.was_red:
        claimed = exam.claims(case).claimed
        tests = {test.name: test for test in held.tests}
        found += [
            name
            for name in fresh(case.before, held)
            if in_tree(tests[name].file, case.target.cwd, exam.world.old_paths)
            and had_no_name(tests[name], case.before, claimed)
        ]
    return list(dict.fromkeys(found))


def _not_seen_before(before: Results | None, now: Results, stood: Sequence[str]) -> list[str]:
    """Names that pass now and did not before, without those known to have existed (`stood`)."""
    was = {settled(name) for name in before.names if before.passed(name)} if before else set[str]()
    return [
        name
        for name in now.names
        if name not in stood and now.passed(name) and settled(name) not in was
    ]


def _not_turned(claimed: Sequence[str], now: Results) -> str:
    """Why the first test that was red before and does not pass now did not turn; "" for none."""
    phrases = {
        "skipped": "is skipped",
        "xfailed": "is expected to fail",
        "xpassed": "is expected to fail",
    }
    for name in claimed:
        found = now.named(name)
        if not found and is_of_others(name, now.names):
            continue  # its tests are reported by their own names now
        if not found:
            return f"{name} was red before and is not run now"
        bad = [phrases[test.outcome] for test in found if test.outcome in phrases]
        if bad:
            return f"{name} was red before and {bad[0]} now"
    return ""


async def find_followed_data(exam: Examination, case: Case) -> Followed:
    """Tests that passed before, pass now, and fail now with the expected data as it was.

    That they also fail on the old code with the new data is left to `find_shown_tests`. Raises
    what running in rooms raises.
    """
    world, differential = exam.world, exam.differential
    if case.before is None:
        return Followed()
    paths = await asyncio.to_thread(differential.rewritten_data, world, case.target, person=True)
    if not paths:
        return Followed()
    tree = await asyncio.to_thread(differential.with_paths, world.new, world.old, paths)
    ran = await exam.run(case.target, tree)
    if ran.results is None:
        return Followed()
    now = case.results
    green = [name for name in now.names if now.passed(name) and case.before.passed(name)]
    names = [
        name for name in green if any(test.outcome == "failed" for test in ran.results.named(name))
    ]
    if not names:
        return Followed()
    if why := await asyncio.to_thread(_why_unstated, exam, paths):
        return Followed(why=why)
    return Followed(names[:MOST_NAMES], paths)


def _why_unstated(exam: Examination, paths: Sequence[str]) -> str:
    """What data says that the PRD does not state, where it states texts in quotes. Blocks."""
    wanted = outside_of_checks(exam.verifier.spec.wanted)
    if stated := QUOTED.findall(wanted):
        stated += IN_CODE.findall(wanted)
    for path in paths:
        before, after = exam.world.was(path) or b"", exam.world.now(path) or b""
        if line := unstated(
            before.decode("utf-8", "replace"), after.decode("utf-8", "replace"), stated
        ):
            return UNSTATED.format(path, line[:80])
    return ""


def _times(text: str, line: str) -> int:
    """How often a line has a text, of which no part of a longer word counts."""
    before = r"(?<![A-Za-z0-9_])" if re.match(r"\w", text[:1]) else ""
    behind = r"(?![A-Za-z0-9_])" if re.match(r"\w", text[-1:]) else ""
    return len(re.findall(f"{before}{re.escape(text)}{behind}", line))


def unstated(before: str, after: str, stated: Sequence[str]) -> str:
    """The first changed line with other words that states none of these texts anew. Pure.

    "" where there is none, and where nothing is stated.
    """
    old, new = before.splitlines(), after.splitlines()
    if not stated or max(len(old), len(new)) > MOST_LINES:
        return ""
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        pairs = [(old[a:b], new[c:d])]
        if b - a == d - c:
            pairs = [([x], [y]) for x, y in zip(old[a:b], new[c:d], strict=True)]
        for was, now in pairs:
            one, other = "\n".join(was), "\n".join(now)
            if WORD.findall(one) == WORD.findall(other):
                continue
            if not any(_times(text, other) > _times(text, one) for text in stated):
                return next((line.strip() for line in now if line.strip()), "less than before")
    return ""
