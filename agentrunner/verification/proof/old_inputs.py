"""Checks that what has to pass passes with all inputs of the proof as they were before the run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from difflib import unified_diff
from time import monotonic

from msgspec import Struct

from agentrunner.state.red_tests import first_line
from agentrunner.state.run_state import Finding
from agentrunner.text.cut import telling_line
from agentrunner.text.terminal import sanitize
from agentrunner.verification.evidence.findings import TIMED_OUT, tests_changed
from agentrunner.verification.evidence.target import Measured, in_repo
from agentrunner.verification.inputs.minimal_set import smallest
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.results.names import stands_for
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.world import InputChange

SEARCH_SEC = 120
"""At most so many seconds are spent on finding the smallest set of changes that matters."""
FOLLOWED = "it follows what the task renames, moves or removes, and has more besides"
OTHERWISE = "in a second run on the same files it is otherwise"
SHOWN_LINES = 6
"""Changed lines of expected data that a question shows."""
MOST_LINES = 2_000


class Held(Struct, frozen=True):
    """What a command says with the inputs of the proof as they were."""

    results: Results | None
    red: bool


async def with_old_inputs(exam: Examination, case: Case) -> Held | None:
    """Run the command with the old inputs; None where the result stops the examination.

    Then the smallest set of changes that matters is a finding. Raises what running in rooms raises.
    """
    world = exam.world
    if world.kept == world.new:
        return Held(case.now, red=False)
    kept = await exam.run(case.target, world.kept)
    if await asyncio.to_thread(differs, exam, case, kept):
        problem, kept = await seen_twice(exam, case, world.kept, kept)
        if problem:
            finding = await _finding_about_smallest_set(exam, case, problem)
            if exam.report.stopped_by(finding, case.target.id):
                return None
    return Held(kept.results, red=not kept.passed)


async def seen_twice(
    exam: Examination, case: Case, tree: str, first: Measured
) -> tuple[str, Measured]:
    """What fails on a tree, and the run that counts; `first` is a run of it that failed.

    A test that was red by chance before the run, too, says nothing of the tree, where a second run
    has the other colour. Claimed tests have to hold each time. Raises what running in rooms raises.
    """
    problem = await asyncio.to_thread(differs, exam, case, first)
    lost = await asyncio.to_thread(_lost_names, exam, case, first)
    if not lost or first.ran.timed_out:  # by its exit code or its time
        return problem, first
    again = await exam.run(case.target, tree)
    if again.results is None or again.ran.timed_out:
        return problem, first
    lost_again = await asyncio.to_thread(_lost_names, exam, case, again)
    steady = [name for name in lost if name in lost_again]
    by_chance = [name for name in dict.fromkeys([*lost, *lost_again]) if name not in steady]
    if not by_chance:
        return problem, first
    claimed = exam.claims(case).claimed
    if claimed.isdisjoint(by_chance) and await exam.was_flaky_before(case, by_chance):
        return in_words(steady, first), again
    return problem if steady else f"{problem}; {OTHERWISE}", first


async def hold_with_old_data(exam: Examination, case: Case, names: Sequence[str]) -> bool:
    """Whether the tests that turned green still pass with the old data that the PRD permits to
    change only by their kind ("the snapshots").

    "Update the snapshots" means what the work makes different, not what was red because the work
    was missing. Else there is a finding. Raises what running in rooms raises.
    """
    paths = exam.differential.freed_by_kind.difference(exam.world.allowed)
    if not paths or not (names or case.now is None):
        return True
    world, target = exam.world, case.target
    tree = await asyncio.to_thread(
        exam.differential.with_paths, world.new, world.old, sorted(paths)
    )
    ran = await exam.run(target, tree, names)
    if ran.results is None or not names:
        problem = "" if ran.passed else f"exit {ran.ran.exit_code}" + _why(ran)
    else:
        lost = [name for name in names if not ran.results.passed(name)]
        problem = f"{lost[0]} fails, which was red before" if lost else ""
    if not problem:
        return True
    why = "it is compared with, and the PRD does not name it"
    changes = [InputChange(path, why, "modified") for path in sorted(paths)]
    finding = tests_changed(target, changes, problem, cut=False, lines="")
    return not exam.report.stopped_by(finding, target.id)


def differs(exam: Examination, case: Case, kept: Measured) -> str:
    """What fails with the inputs of the proof as they were; "" for nothing. Blocks."""
    if kept.ran.timed_out:
        return f"{TIMED_OUT} {case.target.timeout_sec:g} s"
    if case.now is None or kept.results is None:
        if kept.passed or (case.was_red and not exam.differential.runs_old_files(case.target)):
            return ""
        return f"exit {kept.ran.exit_code}" + _why(kept)
    return in_words(_lost_names(exam, case, kept), kept)


def _lost_names(exam: Examination, case: Case, kept: Measured) -> list[str]:
    """Tests that have to pass and do not, with the inputs as they were. Blocks."""
    if case.now is None or kept.results is None:
        return []
    held = kept.results
    claims = exam.claims(case)
    tests = case.before.tests if case.before else ()
    must_pass = [test.name for test in tests if test.outcome == "passed"]
    # A test that failed and is not run any more has to pass where it stood, as it was worded. What
    # could not even be loaded is no test yet.
    now, failed = case.now, {test.name for test in tests if test.outcome == "failed"}
    claimed = sorted(claims.claimed)
    must_pass += [
        name for name in claimed if now.passed(name) or (name in failed - now.names.keys())
    ]
    # Tests that are called otherwise now, in a file that only followed the work.
    followed = exam.differential.followed_files()
    must_pass += [
        test.name
        for test in now.tests
        if test.outcome == "passed"
        and test.file
        and in_repo(test.file, case.target.cwd) in followed
        and held.named(test.name)
    ]
    lost = [name for name in dict.fromkeys(must_pass) if not held.passed(name)]
    # What is gone with and without the worker's tests is not their doing; see `tests_gone`.
    reported = held.names.keys() | case.now.names.keys()
    lost = [name for name in lost if name in reported]
    may_go = exam.differential.may_go
    files, green = case.old_files, {test.name for test in tests if test.outcome == "passed"}
    return [
        name
        for name in lost
        if name in case.now.names or not may_go(name, files.get(name, ""), passed=name in green)
    ]


def in_words(lost: Sequence[str], ran: Measured) -> str:
    """What a run says of the first test that is lost; "" for none."""
    if not lost or ran.results is None:
        return ""
    first, tests = lost[0], ran.results.red
    red = next((test for test in tests if test.name == first), None)
    why = f"{first} fails" if red else f"{first} is not there"
    if red is None:
        lost_test = TestResult(first, "passed")
        red = next((one for one in tests if one.unloaded and stands_for(one, lost_test)), None)
        why += f", as {red.name} cannot be loaded" if red else ""
    if red and (output := first_line(sanitize(red.message))):
        why += f": {output[:200]}"
    return why + f" (and {len(lost) - 1} more)" * (len(lost) > 1)


async def _finding_about_smallest_set(
    exam: Examination, case: Case, problem: str
) -> Finding | None:
    """The finding about the smallest set of changed inputs that matters."""
    world = exam.world
    deadline = monotonic() + min(SEARCH_SEC, 10 + 5 * case.seconds)
    items = [one for one in world.changes if not one.understood or one.test]

    async def is_red(subset: Sequence[InputChange]) -> bool:
        tree = await asyncio.to_thread(exam.differential.with_old_inputs, subset)
        kept = await exam.run(case.target, tree)
        return bool(await asyncio.to_thread(differs, exam, case, kept))

    found, cut = await smallest(items, is_red, deadline)
    found = found or [
        InputChange(path, FOLLOWED, "modified", test=True)
        for path in sorted(exam.differential.followed_files())
    ]
    lines = await asyncio.to_thread(_changed_lines, exam, found)
    return tests_changed(case.target, found, problem, cut=cut, lines=lines)


def _changed_lines(exam: Examination, found: Sequence[InputChange]) -> str:
    """The first changed lines of expected data, as in a diff; "" where code changed. Blocks."""
    changed: list[str] = []
    for one in found:
        before, after = exam.world.was(one.path), exam.world.now(one.path)
        if family_of(one.path) or language_of(one.path) or before is None or after is None:
            return ""
        old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
        diff = list(unified_diff(old[:MOST_LINES], new[:MOST_LINES], n=0, lineterm=""))[2:]
        changed += [line for line in diff if not line.startswith("@@")]
    shown = [sanitize(line).strip()[:80] for line in changed[:SHOWN_LINES]]
    more = len(changed) - len(shown)
    return " | ".join(shown) + f" | and {more} more" * (more > 0)


def _why(measured: Measured) -> str:
    """What a command says of its end, or which tests failed by a total that names them."""
    if (counts := measured.ran.counts) is not None and counts.failing:
        return f": {sanitize(', '.join(counts.failing[:3]))[:200]}"
    line = telling_line(sanitize(measured.ran.tail), 200)
    return f": {line}" if line else ""
