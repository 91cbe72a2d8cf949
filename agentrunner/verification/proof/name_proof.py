"""Commands whose tests have names: confirms and grades what turned green, and tries canaries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentrunner.state.run_state import Proof
from agentrunner.verification.canaries.claimed_tests import NO_CANARY, Canaries, CanaryReport
from agentrunner.verification.canaries.fixture_canary import answered_from_data
from agentrunner.verification.evidence.findings import (
    about_work,
    tool_changed,
)
from agentrunner.verification.evidence.target import in_repo
from agentrunner.verification.evidence.wanted import wanted_by
from agentrunner.verification.grades import IN_WORDING, TURNED
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.proof.ambient_conditions import stopped_for_ambient_conditions
from agentrunner.verification.proof.carried_tests import stopped_for_lost_values
from agentrunner.verification.proof.case import Case, text_of
from agentrunner.verification.proof.data_changes import (
    OWN_DATA,
    find_tests_of_new_data,
)
from agentrunner.verification.proof.earlier_workers import NOTE, tests_of_earlier_workers
from agentrunner.verification.proof.edited_tests import swallowed
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.former_questions import not_asked_again
from agentrunner.verification.proof.integrity import exchanged
from agentrunner.verification.proof.pinned_answers import (
    KnownTexts,
    stopped_for_near_answers,
    stopped_for_pinned_answers,
)
from agentrunner.verification.proof.silenced_tools import find_silenced_tools
from agentrunner.verification.proof.turned_tests import TurnedTests, find_turned_tests
from agentrunner.verification.proof.work_for_tests import right_only_in_tests, why_not_lasting
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import (
    settled,
)
from agentrunner.verification.subject_words import about, is_about_something, shares_a_word
from agentrunner.verification.verdict import BY_NAMES, ONCE

MOST_NAMES = 50
UNASKED = "{} failed before and passes now, and shares no word with what was asked for"
OF_THE_WORKER = "of the worker's own fails on the old code and passes now"
OF_THE_WORKERS_WORDING = f"{IN_WORDING} fails on the old code and passes now"
"""Of a test that was there before, and that the work has changed."""
OF_OLD_CODE = "asked for passes now, and fails where the code that it is for does nothing"
FOLLOWS = (
    "passed before and passes now, and fails where either the code or what it compares with stays"
)


async def prove_by_name(exam: Examination, case: Case, held: Results | None) -> None:
    """Add the proofs, doubts and findings of a command to the examination's report.

    `held` has its results with the inputs of the proof as they were. Raises what running in rooms
    raises.
    """
    if (found := await find_turned_tests(exam, case, held)) is None:
        return
    if (canaries := await _living(exam, case, held, found)) is None:
        return
    wanted_words = outside_of_checks(exam.verifier.spec.wanted)
    if not await _withstand_questions(exam, case, found, wanted_words):
        return
    await _grade(exam, case, found, canaries)


async def _living(
    exam: Examination, case: Case, held: Results | None, found: TurnedTests
) -> CanaryReport | None:
    """What canaries in the tests showed; none where the tool or the tests do not do their work."""
    target, world, report = case.target, exam.world, exam.report

    def decides(path: str) -> bool:
        return exam.differential.counts(in_repo(path, target.cwd), target)

    swapped = await exchanged(
        exam.run, target, case.before, case.results, world, held, decides,
        exam.without_work,
    )  # fmt: skip
    if report.stopped_by(swapped, target.id):
        return None
    inputs = await asyncio.to_thread(exam.differential.inputs, world.new, [target])
    was = await asyncio.to_thread(exam.differential.inputs, world.old, [target])
    wanted_words = outside_of_checks(exam.verifier.spec.wanted)
    answers = await answered_from_data(exam.on_trees(target, was), found.here, wanted_words)
    if answers and report.stopped_by(tool_changed(target, answers), target.id):
        return None
    canaries = Canaries(exam.on_trees(target, inputs))
    ends = await canaries.failing_ends(found.here, case.results)
    dead = await canaries.dead(found.here, case.results, ends, case.before)
    if report.stopped_by(dead.finding, target.id):
        return None
    return dead if await exam.others_green_again(case, ends) else None


async def _withstand_questions(
    exam: Examination, case: Case, found: TurnedTests, wanted_words: str
) -> bool:
    """Whether no further question about what the tests ask, and where, stops the examination."""
    target, report = case.target, exam.report
    standing, all_found = found.standing, [*found.standing, *found.of_worker]
    if await _stopped_for_other_questions(exam, case, standing):
        return False
    quiet = await find_silenced_tools(exam, case, standing, wanted_words) if standing else ""
    if quiet and report.stopped_by(tool_changed(target, quiet), target.id):
        return False
    if await stopped_for_lost_values(exam, case, wanted_words):
        return False
    only = await right_only_in_tests(exam, case, standing, found.of_worker, wanted_words)
    if only:
        if report.stopped_by(about_work("only in tests", only), target.id):
            return False
    elif await stopped_for_ambient_conditions(exam, case, all_found, wanted_words):
        return False  # the same question, which a person is asked once
    fleeting = await why_not_lasting(exam, case, all_found, wanted_words)
    if fleeting and report.stopped_by(about_work("not lasting", fleeting), target.id):
        return False
    for names in filter(None, (standing, found.of_worker)):
        of_worker = names is not standing
        texts = KnownTexts(exam, target, frozenset(case.files.get(one, "") for one in names))
        if await stopped_for_pinned_answers(texts, names, of_worker=of_worker):
            return False
        if await stopped_for_near_answers(texts, names):
            return False
    return True


async def _grade(exam: Examination, case: Case, found: TurnedTests, dead: CanaryReport) -> None:
    """Add a proof for each group of tests of one author and one way of turning green."""
    names = [*found.stood, *found.shown.names][:MOST_NAMES]
    words = await asyncio.to_thread(_words_about, exam, case, names)
    unasked = _unasked(exam, found, words)
    how = [ONCE] if exam.confirms_once else [BY_NAMES] if exam.by_names(case) else []
    stood = found.stood
    own = await find_tests_of_new_data(exam, case.target, stood)
    theirs = await asyncio.to_thread(tests_of_earlier_workers, exam, case, stood)
    weak = dead.shows_only or NO_CANARY in dead.notes

    def prove(group: list[str], what: str, notes: Sequence[str], **facts: Any) -> None:
        if group:
            exam.report.proofs.append(
                Proof(
                    target=case.target.id,
                    text=text_of(case.target, group, what),
                    tests=group[:MOST_NAMES],
                    about={name: words[name] for name in group if name in words},
                    notes=[*notes, *how],
                    **facts,
                )
            )

    for group, notes in (
        ([name for name in stood if name not in (*own, *theirs)], dead.notes),
        ([name for name in stood if name in own], [OWN_DATA, *dead.notes]),
        ([name for name in theirs if name not in own], [NOTE, *dead.notes]),
    ):
        prove(
            group,
            "failed before and passes now",
            notes,
            author="worker" if NOTE in notes else "person",
            grade="shown" if weak or {OWN_DATA, NOTE} & {*notes} else "proven",
            unasked=[name for name in unasked if name in group],
        )
    uses = sorted(found.shown.uses)[:200]
    for group, what, more in _groups_of_worker(exam, case, found):
        notes = [*more, *found.shown.notes, *dead.notes]
        prove(group, what, notes, author="worker", grade="shown", names=uses)


def _unasked(
    exam: Examination, found: TurnedTests, words: Mapping[str, Sequence[str]]
) -> list[str]:
    """Tests that share no word with what was asked for; a doubt where all of them are so."""
    names = [*found.stood, *found.shown.names]
    wanted = "\n".join(wanted_by(exam.verifier.spec, exam.criteria))
    denies = is_about_something(exam.verifier.spec.wanted)
    unasked = [name for name, own in words.items() if denies and not shares_a_word(own, wanted)]
    if len(unasked) == len(words) == len(names):
        for criterion in exam.criteria:
            exam.report.doubts.setdefault(criterion.id, UNASKED.format(names[0]))
    return unasked


def _groups_of_worker(
    exam: Examination, case: Case, found: TurnedTests
) -> Iterator[tuple[list[str], str, Sequence[str]]]:
    """The worker's tests by what can be said of them: names, the sentence, notes."""
    known = {settled(name) for name in case.before.names} if case.before else frozenset()
    files, changed = case.files, {one.path for one in exam.world.changes}
    own = [name for name in found.shown.names if name not in found.followed.names]
    new = [name for name in own if settled(name) not in known]
    former = [name for name in own if settled(name) in known]
    reworded = [name for name in former if files.get(name) in changed]
    of_old_code = OF_OLD_CODE if found.shown.of_old_code else ""
    yield new, of_old_code or OF_THE_WORKER, ()
    yield reworded, of_old_code or OF_THE_WORKERS_WORDING, ()
    yield [name for name in former if name not in reworded], of_old_code or TURNED, ()
    yield (
        [name for name in found.shown.names if name in found.followed.names],
        FOLLOWS,
        found.followed.notes,
    )


async def _stopped_for_other_questions(exam: Examination, case: Case, names: Sequence[str]) -> bool:
    """Whether a finding stops the examination, as tests pass without asking what they asked red."""
    places: dict[str, list[str]] = {}
    for name in names:
        if path := case.files.get(name):
            places.setdefault(path, []).append(name)
    wanted = "\n".join(wanted_by(exam.verifier.spec, exam.criteria))
    why = await not_asked_again(exam, case.target, places, wanted)
    why = why or await swallowed(exam, case.target, places)
    return bool(why) and exam.report.stopped_by(tool_changed(case.target, why), case.target.id)


def _words_about(exam: Examination, case: Case, names: Sequence[str]) -> dict[str, list[str]]:
    """Words that say what each of these tests is about, by its name. Blocks."""
    files, world = case.files, exam.world
    return {name: about(name, files.get(name, ""), world.now, world.product) for name in names}
