"""Work that is right only in the surroundings in which its tests run.

The work asks for something that nobody hands in and that the task does not name: whether there is a
terminal, who called, where it was started. What it does otherwise is tried: the condition is made
always true, and never. Where a claimed test fails in one of the two and no test asks for it, the
work may be right only here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.findings import about_work
from agentrunner.verification.inputs.test_detection import path_words
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.syntax.conditions import Condition, ambient_conditions
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.trees import with_edits

MOST_TRIED = 4
"""So many conditions are tried, two or three runs each."""
WORD = lazy_regex(r"[A-Za-z0-9]{3,}")
WHY = (
    "{}:{} goes by `{}`, which nobody hands in and the task does not name: the other way round {}"
    " fails, and no test asks for that. The work may be right only where its tests run"
)


class _Place(Struct, frozen=True):
    path: str
    condition: Condition


async def stopped_for_ambient_conditions(
    exam: Examination, case: Case, names: Sequence[str], asked: str
) -> bool:
    """Whether a finding stops the examination, as the work goes by what is around its tests.

    `names` are the tests that the proof rests on, `asked` is what people ask for. Raises what
    running in rooms raises.
    """
    for place in await asyncio.to_thread(_places, exam, case, asked):
        one = place.condition
        always, never = [
            await asyncio.to_thread(
                with_edits, exam.world.snapshots, exam.world.new, {place.path: [edit]}
            )
            for edit in (one.always, one.never)
        ]
        red, other = await exam.first_red(case, always, names), never
        if not red:
            red, other = await exam.first_red(case, never, names), always
        if not red or await exam.first_red(case, other, names):
            continue  # both ways are alike, or both are asked for
        whole = await exam.run(case.target, other)
        if whole.results is None or any(
            test.outcome == "passed" and not whole.results.passed(test.name)
            for test in case.results.tests
        ):
            continue
        found = about_work("only in tests", WHY.format(place.path, one.line, one.text, red))
        if exam.report.stopped_by(found, case.target.id):
            return True
    return False


def _places(exam: Examination, case: Case, asked: str) -> list[_Place]:
    """Where the work goes by its surroundings without being asked to. Blocks."""
    world = exam.world
    if not any(map(language_of, world.product)):
        return []
    paths = world.snapshots.list(world.new)
    modules = {PurePosixPath(path).stem for path in paths if language_of(path)}
    modules |= {PurePosixPath(path).parent.name for path in paths if language_of(path)}
    inputs = exam.differential.inputs(world.new, [case.target])
    of_tests = path_words(one.path for one in inputs.deciding)
    named = {word.lower() for word in WORD.findall(asked)} - of_tests
    return [
        _Place(path, one)
        for path, language, before, after in world.sources()
        for one in ambient_conditions(before, after, language, modules)
        if not any(word in other for word in named for other in one.words)
    ][:MOST_TRIED]
