"""Work that answers for the values of the tests alone, in whatever way it knows them.

The work has numbers, or strings with some, that only claimed tests have: in a pair that it
compares with, in a joined key, in a table of pairs (`KNOWN = {(1234, 5678): 6912}`). Work that
decides for any value is told from that by asking. The tests ask with values near by: on the work,
and on the code before. Where they fail with the words of before, or with one answer whatever they
ask, it knows just these values. Where other literals in the work harm no test, nothing is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.findings import knows_just
from agentrunner.verification.proof.pinned_answers import KnownTexts, PinnedLiteral, red_without
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import CHANGING_PART
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.pinned import mentions
from agentrunner.verification.syntax.regions import regions_of_tests
from agentrunner.verification.syntax.taken_literals import (
    NearValues,
    TakenLiteral,
    taken_literals,
    without_calls,
)
from agentrunner.verification.trees import with_edits

VALUE, CALL = lazy_regex(r"\d|['\"`]"), lazy_regex(r"\w\([^)\s]")
OF_CALLS = lazy_regex(r"(?:E\s)?\s*\+\s*(?:where|and) ")
STEPS = (1, -1)
"""So far the values lie from those of the tests."""
Taken = Sequence[tuple[str, TakenLiteral]]
"""Literals of the work, with their files."""


class _Asked(Struct, frozen=True):
    """What tests that ask with values near by fail with, by name."""

    step: int
    now: Mapping[str, str]
    old: Mapping[str, str]
    """On the code before."""


async def stopped_for_near_answers(texts: KnownTexts, names: Sequence[str]) -> bool:
    """Whether a finding stops the examination, as the work knows just the values of the tests.

    `names` are the claimed tests. What people give as an example of a call is named in a notice.
    Raises what running in rooms raises.
    """
    exam, target = texts.exam, texts.target
    found = await asyncio.to_thread(_taken, texts)
    unasked = [one for one in found if not mentions(texts.asked, one[1].value)]
    rules = without_calls(texts.asked)
    examples = [one for one in found if one not in unasked and not mentions(rules, one[1].value)]
    if test := await _answered_alone(texts, unasked, names):
        return exam.report.stopped_by(knows_just(_shown(unasked), test), target.id)
    if test := await _answered_alone(texts, examples, names):
        exam.report.findings.append(knows_just(_shown(examples), test, examples=True))
    return False


def _shown(taken: Taken) -> list[tuple[str, str]]:
    return [(f"{path}:{one.line}", f"has {one.text}") for path, one in taken]


def _taken(texts: KnownTexts) -> list[tuple[str, TakenLiteral]]:
    """The literals that the work shares with tests, and with no code before. Blocks."""
    world = texts.exam.world
    return [
        (path, one)
        for path in world.product
        if (after := world.now(path)) is not None
        for one in taken_literals(path, world.was(path), after, texts.tested, texts.code)
    ]


async def _answered_alone(texts: KnownTexts, taken: Taken, names: Sequence[str]) -> str:
    """The first claimed test that the work answers for its own values alone, or ""."""
    places = [PinnedLiteral(path, one.line, (one.edit,), one.text) for path, one in taken]
    if not places or not await red_without(texts.exam, texts.target, places, names):
        return ""
    values = NearValues.of({one.value for _, one in taken}, texts.tested)
    left, asked, world = list(names), list[_Asked](), texts.exam.world
    for step in STEPS:
        now = await _failures(texts, values, step, left, world.new)
        left = [name for name in left if name in now]
        if not left:
            return ""
        old = await _failures(texts, values, step, left, world.mixed)
        asked.append(_Asked(step, now, old))
        left = [name for name in left if _is_alone(name, asked, values)]
    return next(iter(left), "")


def _is_alone(name: str, asked: Sequence[_Asked], values: NearValues) -> bool:
    """Whether a test fails as on the code before, or with one answer that is not its value.

    Only where its words say what the answer was.
    """
    texts = {values.restored(one.now[name], one.step) for one in asked}
    shows = all(_shows_values(one.now[name]) for one in asked)
    if all(one.now[name] == one.old.get(name) for one in asked):
        return shows or len(texts) > 1
    echoes = any(
        mentions(one.now[name], ("number", own)) for one in asked for own in values.numbers
    )
    return shows and len(texts) == 1 and not echoes


def _shows_values(message: str) -> bool:
    """Whether a failing test says what it got: `0 != 6912`, and not `assertion failed: f(1) == 2`.

    A call with arguments in it is the test's own text. Of pytest's words those on the lines of the
    error count, without what it says of calls.
    """
    lines = message.split("\n")
    marked = [line for line in lines if line.startswith("E ")] or lines
    text = "\n".join(line for line in marked if not OF_CALLS.match(line))
    return VALUE.search(text) is not None and CALL.search(text) is None


async def _failures(
    texts: KnownTexts, values: NearValues, step: int, names: Sequence[str], tree: str
) -> dict[str, str]:
    """What claimed tests that ask with values near by fail with, by name; none where all pass."""
    exam, target = texts.exam, texts.target
    made = await asyncio.to_thread(_asking_near, texts, values, step, tree)
    if made == tree:
        return {}
    found = _messages((await exam.run(target, made, names)).results, names, values, step)
    if len(found) == len(names):
        return found
    # Names that are made of the values are others now: the tool cannot be asked for them.
    return _messages((await exam.run(target, made)).results, names, values, step)


def _asking_near(texts: KnownTexts, values: NearValues, step: int, tree: str) -> str:
    """A tree whose tests ask with values near by. Blocks."""
    world, edits = texts.exam.world, dict[str, list[Edit]]()
    read = world.snapshots.reader(tree)
    for path, _ in texts.sources:
        if (source := read(path)) is None:
            continue
        found = list(values.edits(path, source, step))
        if path in world.product:
            inside = regions_of_tests(source, language_of(path))
            found = [one for one in found if any(region.holds(one.start) for region in inside)]
        if found:
            edits[path] = found
    return with_edits(world.snapshots, tree, edits) if edits else tree


def _messages(
    results: Results | None, names: Sequence[str], values: NearValues, step: int
) -> dict[str, str]:
    """What claimed tests fail with, which may be called by the values that they ask with."""
    found = {}
    for test in results.tests if results is not None else ():
        name = test.name if test.name in names else values.restored(test.name, step)
        if name in names and test.red and test.message:
            found[name] = CHANGING_PART.sub("", test.message)
    return found
