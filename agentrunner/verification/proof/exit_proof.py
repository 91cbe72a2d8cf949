"""Commands whose tests have no names: an exit code that was red before and is green now.

What that is worth depends on who wrote the program that decides, and on whether it runs the code.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import LINK
from agentrunner.state.evidence_words import Author, Grade
from agentrunner.state.run_state import Proof
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.canaries.claimed_tests import NO_CANARY
from agentrunner.verification.canaries.fixture_canary import green_by_data
from agentrunner.verification.evidence.findings import (
    about_work,
    first_few,
    flaky,
    inputs_written,
    looks_at_nothing,
    tool_changed,
)
from agentrunner.verification.evidence.target import TEST, Target
from agentrunner.verification.inputs.executed_files import only_reads
from agentrunner.verification.inputs.shell import piped_commands
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.proof.case import Case, label
from agentrunner.verification.proof.data_changes import (
    BY_DATA,
    OWN_DATA,
    find_tests_of_new_data,
    turned_by_data,
)
from agentrunner.verification.proof.earlier_workers import NOTE, programs_of_earlier_workers
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.inline_canaries import canaries_of_programs
from agentrunner.verification.proof.new_checks import why_not_shown
from agentrunner.verification.proof.old_inputs import hold_with_old_data
from agentrunner.verification.proof.packages import holds_with_old_packages
from agentrunner.verification.proof.pinned_answers import KnownTexts, stopped_for_pinned_answers
from agentrunner.verification.proof.silenced_tools import (
    find_silenced_tools,
    find_silent_program,
    find_unasked_settings,
)
from agentrunner.verification.proof.work_for_tests import right_only_in_tests, why_not_lasting
from agentrunner.verification.syntax.languages import language_of

LEAST_LIKENESS = 0.6
"""The least likeness of two texts that are one file before and after."""
MOST_FILES = 100
"""Deleted files, and added ones that they are compared with."""
MOST_BYTES = 200_000

GREEN_BEFORE = "it is green on the code before the run as well"
GREEN_AND_NAMELESS = (
    "it was green before the run, and it reports no tests by name: what is new in it shows the work"
    " only if that is red on the code before the run"
)
GREEN_BY_ITSELF = (
    "it is green on the old code as soon as what the worker wrote to decide it is there"
)
FILES_ONLY = (
    "it only asks whether a file is there: let it ask for what an empty file does not do, or name"
    " the file in the criterion"
)
TEXT_ONLY = "it reads the code and does not run it: let it run what was changed"
NEEDS_NEW_INPUTS = "it is red with what decides as it was before the run"
BY_RECIPE = "the worker wrote the recipe that it runs; without what the recipe does it is red"
FAMOUS = lazy_regex(r"^[A-Z]{2}[A-Z_-]*$")
"""Files that people name without their ending: README, CHANGELOG, LICENSE."""


WHOSE: dict[Author, str] = {
    "person": "",
    "planner": ", a check of the planner,",
    "worker": ", the worker's own,",
}


@dataclass(frozen=True)
class ExitFound:
    """What an exit code is worth; `doubt` says why it is worth nothing."""

    author: Author = "person"
    grade: Grade = "proven"
    doubt: str = ""
    notes: list[str] = field(default_factory=list)


async def _examine(exam: Examination, target: Target, *, red_with_old: bool) -> ExitFound:
    """Whether a command that is green now is red on the old code, and who wrote it.

    `red_with_old`: it is red on the new code with the inputs of the proof as they were.
    """
    world, differential, author = exam.world, exam.differential, target.author
    if author == "person" and await asyncio.to_thread(
        differential.is_of_the_worker, target, red_with_old
    ):
        author = "worker"
    old = world.old
    if author != "person":
        old = await asyncio.to_thread(differential.with_new_programs, target)
    if (await exam.run(target, old)).passed:
        if author == "worker" and await _is_a_wanted_recipe(exam, target):
            return ExitFound(author, "shown", notes=[BY_RECIPE])
        if author == "person":
            return ExitFound(author, doubt=GREEN_BEFORE)
        paths = await asyncio.to_thread(differential.decided_by_the_worker, target)
        return ExitFound(author, doubt=f"{GREEN_BY_ITSELF}{_advice(paths)}")
    if author != "person":
        doubt = await _asks_too_little(exam, target)
        return ExitFound(author, doubt=doubt) if doubt else ExitFound(author, "shown")
    path, _ = await turned_by_data(exam, target)
    if path:
        return ExitFound(author, doubt=f"{path} {BY_DATA}")
    if await find_tests_of_new_data(exam, target):
        return ExitFound(author, "shown", notes=[OWN_DATA])
    inputs = await asyncio.to_thread(differential.inputs, world.new, [target])
    if unsure := [path for path in world.unsure if inputs.is_unsure(path)]:
        return ExitFound(author, "shown", notes=_notes_about_unsure(unsure))
    if await _is_a_report(exam, target):
        note = "the worker wrote the file that it reads, and no code of the project is run"
        return ExitFound("worker", "shown", notes=[note])
    return ExitFound(author)


async def _asks_too_little(exam: Examination, target: Target) -> str:
    """Why a check that no person wrote shows nothing; "" where it may show something."""
    world = exam.world
    emptied = await asyncio.to_thread(exam.differential.with_emptied_files, target)
    if emptied is not None and (await exam.run(target, emptied)).passed:
        added = [path for path in world.product if path not in world.old_paths]
        return "" if _is_any_named(added, _text_of(exam, target)) else FILES_ONLY
    without_bodies = await exam.without_work.emptied()
    if without_bodies is not None and await _is_a_tool_of_the_person(exam, target):
        return ""  # it reads the code by the worker's settings: emptied code leaves it nothing
    if without_bodies is not None and (await exam.run(target, without_bodies)).passed:
        return TEXT_ONLY
    return ""


async def _is_a_tool_of_the_person(exam: Examination, target: Target) -> bool:
    """Whether a person wrote the command, and the worker only settings that were asked for."""
    if target.author != "person" or not exam.differential.steered_as_wanted():
        return False
    return not await asyncio.to_thread(exam.differential.new_programs, target)


async def _is_a_wanted_recipe(exam: Examination, target: Target) -> bool:
    """Whether a recipe that the PRD asks for does what a person's command looks at.

    Then the command is red where the new lines of the recipe do nothing.
    """
    if target.author != "person":
        return False
    tree = await asyncio.to_thread(exam.differential.with_idle_recipes, target)
    return tree is not None and not (await exam.run(target, tree)).passed


async def _is_a_report(exam: Examination, target: Target) -> bool:
    """Whether files that are no code, and that the worker added unasked, decide alone."""
    world = exam.world
    added = [
        path
        for path in world.product
        if path not in world.old_paths
        and language_of(path) is None
        and not exam.differential.is_wanted_new(path)
    ]
    if not added or _is_any_named(added, _text_of(exam, target)):
        return False
    made = await asyncio.to_thread(exam.differential.with_paths, world.old, world.new, added)
    return (await exam.run(target, made)).passed


async def prove_by_exit(exam: Examination, case: Case, *, red_with_old: bool) -> None:
    """Add the proof, doubt or finding of a command without test names to the report.

    The command was red before and is green now; what counts is whose program decides.
    `red_with_old` says that it is red with the inputs of the proof as they were. Raises what
    running in rooms raises.
    """
    target, world, report = case.target, exam.world, exam.report
    if not case.was_red:
        if target.id == TEST:
            await _prove_what_is_new(exam, case, red_with_old=red_with_old)
        return
    if not await hold_with_old_data(exam, case, ()):
        return
    gone = await asyncio.to_thread(exam.differential.looked_at_and_gone, target)
    gone = gone or await red_where_it_was(exam, target, exam.differential.may_be_gone())
    if gone and report.stopped_by(looks_at_nothing(target, gone), target.id):
        return
    asked = outside_of_checks(exam.verifier.spec.wanted)
    if report.stopped_by(await find_unasked_settings(exam, case, asked), target.id):
        return
    found = await _examine(exam, target, red_with_old=red_with_old)
    if found.doubt:
        report.doubts[target.id] = found.doubt
        return
    theirs = await asyncio.to_thread(programs_of_earlier_workers, exam, target)
    if found.author == "person" and theirs:
        note = f"{NOTE}: {first_few(theirs, 3)}"
        found = replace(found, author="worker", grade="shown", notes=[*found.notes, note])
    again = await exam.run(target, world.new)
    if not again.passed and report.stopped_by(flaky([f"`{target.shell}`"]), target.id):
        return
    written = await asyncio.to_thread(exam.deciding, again.moved, target)
    if written and report.stopped_by(inputs_written(written), target.id):
        return
    if not await holds_with_old_packages(exam, case, ()):
        return
    was = await asyncio.to_thread(exam.differential.inputs, world.old, [target])
    answers = await green_by_data(exam.on_trees(target, was), asked)
    if answers and report.stopped_by(tool_changed(target, answers), target.id):
        return
    dead = await canaries_of_programs(exam, target)
    if report.stopped_by(dead.finding, target.id):
        return
    silent = await find_silent_program(exam, target)
    if silent and report.stopped_by(tool_changed(target, silent), target.id):
        return
    quiet = await find_silenced_tools(exam, case, (), asked)
    if quiet and report.stopped_by(tool_changed(target, quiet), target.id):
        return
    only = await right_only_in_tests(exam, case, (), (), asked)
    if only and report.stopped_by(about_work("only in tests", only), target.id):
        return
    fleeting = await why_not_lasting(exam, case, (), asked)
    if fleeting and report.stopped_by(about_work("not lasting", fleeting), target.id):
        return
    of_worker = found.author != "person"
    if await stopped_for_pinned_answers(KnownTexts(exam, target), of_worker=of_worker):
        return
    # A tool that reads sources can be blinded by them. A command that only looks reports the text.
    # Where the output of a program is looked at, its silence was seen to turn the command red.
    can_say_no = only_reads(target.shell) or bool(piped_commands(target.shell))
    weak = dead.shows_only or (NO_CANARY in dead.notes and not can_say_no)
    report.proofs.append(
        Proof(
            target=target.id,
            author=found.author,
            grade="shown" if weak and found.grade == "proven" else found.grade,
            text=f"{label(target)}`{target.shell}`{WHOSE[found.author]} failed before"
            " and passes now",
            notes=[*found.notes, *dead.notes],
        )
    )


async def _prove_what_is_new(exam: Examination, case: Case, *, red_with_old: bool) -> None:
    """Add the proof, or the doubt, of a green test command in which the worker changed tests."""
    target, world, report = case.target, exam.world, exam.report
    decided = await asyncio.to_thread(exam.differential.decided_by_the_worker, target)
    asked = exam.differential.permitted(world.allowed)
    paths = sorted({*decided, *asked, *(one.path for one in world.changes)})
    if not paths:
        return
    why = NEEDS_NEW_INPUTS
    if not red_with_old:
        why = await why_not_shown(exam, case, paths, lambda: _asks_too_little(exam, target))
    if why:
        report.doubts[target.id] = f"{GREEN_AND_NAMELESS}: {why} {_advice_to_add_a_check(paths)}"


def _advice_to_add_a_check(paths: Sequence[str]) -> str:
    """What a person can do where the worker's own tests cannot be told apart."""
    return (
        f"({first_few(paths, 3)}). A criterion with a check of its own that fails on the old"
        " code, (check: `COMMAND`), would show the work; agentrunner accept settles it for this run"
    )


def _advice(paths: Sequence[str]) -> str:
    """What a person can do where files that decide are the work itself."""
    listed = ", ".join(paths[:3])
    return f" ({listed}); task.test.product: [{listed}] says that it is the work" if paths else ""


def _text_of(exam: Examination, target: Target) -> str:
    return "\n".join(f"{c.description}\n{c.detail}" for c in exam.criteria if c.id == target.id)


def _is_any_named(paths: Sequence[str], text: str) -> bool:
    """Whether a text names one of these files."""
    for path in paths:
        name = posixpath.basename(path)
        stem = name.split(".")[0]
        if name in text or (FAMOUS.match(stem) and stem in text):
            return True
    return False


def _notes_about_unsure(paths: Sequence[str]) -> list[str]:
    text = "is taken as product and checks something itself; so this shows, and does not prove"
    return [f"{path} {text}" for path in paths[:3]]


async def red_where_it_was(exam: Examination, target: Target, wanted: Collection[str]) -> list[str]:
    """Files that a command no longer looks at, where their new content is red in the old place.

    `wanted` are paths that may be gone. [] where the command is green there as well. Raises what
    running in rooms raises.

    A search that finds nothing is green also where it has nothing to search: a folder has another
    name, or a file is a link now. What the work made of a file has to satisfy the check in the old
    place.
    """
    back = await asyncio.to_thread(_as_they_are_now, exam, wanted)
    if not back:
        return []
    snapshots, new = exam.world.snapshots, exam.world.new
    tree = await asyncio.to_thread(snapshots.combine, new, back)
    if (await exam.run(target, tree)).passed:
        return []
    empty_file = ("100644", await asyncio.to_thread(snapshots.write_blob, b""))
    emptied = await asyncio.to_thread(snapshots.combine, new, dict.fromkeys(back, empty_file))
    about_content = (await exam.run(target, emptied)).passed  # else it wants no file there at all
    return sorted(back) if about_content else []


def _as_they_are_now(exam: Examination, wanted: Collection[str]) -> dict[str, Entry | None]:
    """What became of files elsewhere, by their path before the run. Blocks."""
    snapshots, world = exam.world.snapshots, exam.world
    before, after = snapshots.list(world.old), snapshots.list(world.new)
    found: dict[str, Entry | None] = {}
    for path, (mode, _) in before.items():
        if path in after and after[path][0] == LINK != mode:
            place = snapshots.leads_to(world.new, path)
            if place in after:
                found[path] = after[place]
    deleted = [path for path in sorted(exam.total.deleted) if path not in wanted][:MOST_FILES]
    added = [path for path in sorted(exam.total.added) if after[path][0] != LINK][:MOST_FILES]
    texts = snapshots.read_many(world.new, added)
    for path, raw in snapshots.read_many(world.old, deleted).items():
        if new := _successor(path, raw, texts):
            found[path] = after[new]
    return found


def _successor(path: str, before: bytes, texts: dict[str, bytes]) -> str:
    """The added file that a deleted one has become; "" for none."""
    name = path.rpartition("/")[2]
    if len(before) > MOST_BYTES:
        return ""
    likeness = {
        new: SequenceMatcher(None, before.splitlines(), text.splitlines()).ratio()
        + (new.rpartition("/")[2] == name)
        for new, text in texts.items()
        if len(text) <= MOST_BYTES
    }
    best = max(likeness, key=lambda new: likeness[new], default="")
    return best if best and likeness[best] >= LEAST_LIKENESS else ""
