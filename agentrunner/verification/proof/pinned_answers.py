"""Code that answers for exactly the tests that are there.

The work compares a value with a literal of a claimed test that neither the requirements nor the
code before it mention (`if (v == 99) return -1;`), or gives one, whatever it is handed (`return
5;`). What the requirements only mention in an example counts as well, where the work has the
example's answer beside it. Whether the test rests on that is tried with another literal instead. A
test that is red then holds for this one value only.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.findings import knows_just, pinned_to
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.evidence.wanted import wants_one_answer
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import CHANGING_PART
from agentrunner.verification.syntax.answers import FixedAnswer, fixed_answers
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.pinned import (
    KnownToTests,
    compared_anew,
    compared_values,
    is_choice,
    is_common,
    mentions,
    pinned,
)
from agentrunner.verification.syntax.regions import regions_of_tests, without_regions
from agentrunner.verification.syntax.taken_literals import (
    NearValues,
    TakenLiteral,
    stepped_word,
    taken_literals,
)
from agentrunner.verification.syntax.tokens import LARGEST, Value, lexical_family
from agentrunner.verification.syntax.words import examples, identifiers, without_examples
from agentrunner.verification.trees import with_edits

VALUE, CALL = lazy_regex(r"\d|['\"`]"), lazy_regex(r"\w\([^)\s]")
STRING = lazy_regex(r"\"[^\"]*\"|'[^']*'")
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


MOST_TRIED = 6
"""So many literals are changed one by one; with more, only the first ones are named."""
MOST_FILES = 2_000
"""So many files of the old product are searched for a string."""


class KnownTexts(Struct, frozen=True, dict=True):
    """What the tests of a target know, and who else does. Each is read once, and blocks."""

    exam: Examination
    target: Target
    test_files: frozenset[str] = frozenset()
    """Those of the claimed tests; "" stands for one that is not known, none for a whole command."""

    @cached_property
    def sources(self) -> tuple[tuple[str, bytes], ...]:
        """Files of tests and their data, of files with tests inside only these."""
        return tuple(_test_sources(self.exam, self.target, self.test_files))

    @cached_property
    def tested(self) -> KnownToTests:
        return KnownToTests.of(self.sources)

    @cached_property
    def asked(self) -> str:
        """What people ask for, without its checks: a planner has read the tests."""
        people = [one.description for one in self.exam.criteria if one.origin != "model"]
        return outside_of_checks("\n".join([self.exam.verifier.spec.wanted, *people]))

    @cached_property
    def rules(self) -> str:
        """What people ask for, without examples."""
        return without_examples(self.asked)

    @cached_property
    def examples(self) -> dict[str, str]:
        """Texts that examples hand to calls, with what these give; without a choice of words."""
        return {
            handed.strip("\"'"): value.strip("\"'")
            for call, value in examples(self.asked, bare=True)
            for handed in STRING.findall(call)
            if not is_choice(handed.strip("\"'"), self.rules)
        }

    @cached_property
    def code(self) -> str:
        """The code before, without its tests; also of files from which some of it moved."""
        world = self.exam.world
        return "\n".join(
            without_regions(world.was(path) or b"", language_of(path)).decode("utf-8", "replace")
            for path in world.product
            if lexical_family(path) is not None
        )


@dataclass(frozen=True)
class PinnedLiteral:
    """A literal of the work that only tests know."""

    path: str
    line: int
    edits: tuple[Edit, ...]
    """What makes it another."""
    what: str
    """What the code does with it."""


async def stopped_for_pinned_answers(
    texts: KnownTexts, names: Sequence[str] = (), *, of_worker: bool = False
) -> bool:
    """Whether a finding stops the examination, as the work answers for literals of claimed tests.

    `names` are the claimed tests; without names it is the command as a whole. What a test
    `of_worker` asks may be the worker's idea: then only answers count that code would work out.
    Raises what running in rooms raises.
    """
    exam, target = texts.exam, texts.target
    places = await asyncio.to_thread(_places, exam, texts, only_pairs=of_worker)
    if not places:
        return False
    red = await red_without(exam, target, places, names)
    if not red:  # one run says so of all of them, as in most honest work
        return False
    if len(places) > 1:
        alone = [
            one for one in places[:MOST_TRIED] if await red_without(exam, target, [one], names)
        ]
        places = alone or places
    found = [(f"{one.path}:{one.line}", one.what) for one in places]
    return exam.report.stopped_by(pinned_to(found, red), target.id)


async def red_without(
    exam: Examination, target: Target, places: Sequence[PinnedLiteral], names: Sequence[str]
) -> str:
    """The first claimed test that fails where the work has other literals, or "".

    Without names it is the command. Raises what running in rooms raises.
    """
    tree = await asyncio.to_thread(_with_other_literals, exam, places)
    ran = await exam.run(target, tree, names)
    if not names:
        return "" if ran.passed else f"`{target.shell}`"
    if ran.results is None:
        return ""
    red = (
        test.name for name in names for test in ran.results.named(name) if test.outcome == "failed"
    )
    return next(red, "")


def _places(exam: Examination, texts: KnownTexts, *, only_pairs: bool) -> list[PinnedLiteral]:
    """What the work compares with that only the tests know. Blocks."""
    world = exam.world
    files = [(path, world.was(path), after) for path in world.product if (after := world.now(path))]
    fixed = [
        (path, answer)
        for path, before, after in files
        for answer in fixed_answers(before, after, path)
        if not only_pairs or (answer.value and mentions(texts.asked, answer.value))
    ]
    if not (fixed or any(compared_anew(*one) for one in files)):
        return []
    always = [
        PinnedLiteral(path, one.line, one.edits, f"always gives {one.text} whatever it is handed")
        for path, one in fixed
        if _is_unasked(one, texts)
    ]
    found = [
        (path, one)
        for path, before, after in files
        for one in pinned(
            path,
            before,
            after,
            texts.tested,
            texts.asked,
            texts.code,
            rules=texts.rules,
            only_pairs=only_pairs,
        )
    ]
    strings = {one.value for _, one in found if one.value[0] == "string"}
    old = _compared_before(exam, texts.target, strings) if strings else set()
    return always + [
        PinnedLiteral(path, one.line, one.edits, f"compares with {one.shown}")
        for path, one in found
        if one.value not in old
    ]


def _is_unasked(one: FixedAnswer, texts: KnownTexts) -> bool:
    """Whether nobody asked for a fixed answer: only tests have it, or nothing speaks of one."""
    common = one.value is None or is_common(one.value)
    if one.is_new and one.function not in identifiers(texts.asked):
        # Others call it, as they do a handler, with what it may not need.
        call = re.compile(to_bytes(rf"\b{re.escape(one.function)}\b"))
        called = any(call.search(source) for _, source in texts.sources)
        if common or not called:
            return False
    if one.value is None or common:
        return not (one.is_new or one.reads or wants_one_answer(texts.asked))
    return one.value in texts.tested and not mentions(texts.rules + texts.code, one.value)


def _test_sources(
    exam: Examination, target: Target, test_files: frozenset[str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the files of tests and their data, of files with tests inside only these. Blocks.

    Where a claimed test's file is not known, all files that decide are taken, and those that the
    work left alone and that name a file of it: a runner of the project's own may find them.
    """
    inputs = exam.differential.inputs(exam.world.new, [target])
    paths = test_files | {one.path for one in inputs.deciding if one.kind == "fixture"}
    if not test_files or "" in test_files:
        paths = frozenset(_files_that_may_decide(exam, target))
    for path in sorted(paths):
        if (source := exam.world.now(path)) is None:
            continue
        if path in exam.world.product:
            inside = regions_of_tests(source, language_of(path))
            source = b"\n".join(source[one.start : one.end] for one in inside)
        yield path, source


def _files_that_may_decide(exam: Examination, target: Target) -> set[str]:
    world = exam.world
    inputs = exam.differential.inputs(world.new, [target])
    stems = {PurePosixPath(path).stem for path in world.product}
    named = re.compile(to_bytes("|".join(rf"\b{re.escape(one)}\b" for one in sorted(stems))))
    paths = set(world.snapshots.list(world.new))
    found = {path for path in paths if inputs.input_at(path) is not None}
    for path in sorted(paths - found - set(world.product))[:MOST_FILES]:
        source = world.now(path) if lexical_family(path) is not None else None
        if source is not None and len(source) <= LARGEST and named.search(source):
            found.add(path)
    return found


def _compared_before(exam: Examination, target: Target, strings: Collection[Value]) -> set[Value]:
    """Those strings that some old file of the product compares with already. Blocks."""
    seen: set[Value] = set()
    inputs = exam.differential.inputs(exam.world.old, [target])
    for path in sorted(exam.world.old_paths)[:MOST_FILES]:
        if inputs.input_at(path) is not None or (source := exam.world.was(path)) is None:
            continue
        if any(to_bytes(text) in source for _, text in strings):
            seen |= compared_values(path, source).intersection(strings)
    return seen


def _with_other_literals(exam: Examination, places: Sequence[PinnedLiteral]) -> str:
    """The new tree in which the work compares with other literals. Blocks."""
    edits: dict[str, list[Edit]] = {}
    for one in places:
        edits.setdefault(one.path, []).extend(one.edits)
    return with_edits(exam.world.snapshots, exam.world.new, edits)


async def stopped_for_near_answers(texts: KnownTexts, names: Sequence[str]) -> bool:
    """Whether a finding stops the examination, as the work knows just the values of the tests.

    `names` are the claimed tests. Raises what running in rooms raises.

    The work has numbers, or strings with some, that only claimed tests have: in a pair that it
    compares with, in a joined key, in a table of pairs (`KNOWN = {(1234, 5678): 6912}`); or the
    answer of an example. Work that
    decides for any value is told from that by asking. The tests ask with values near by: on the
    work, and on the code before. Where they fail with the words of before, or with one answer
    whatever they ask, it knows just these values. Where other literals in the work harm no test,
    nothing is asked.
    """
    exam, target = texts.exam, texts.target
    found = await asyncio.to_thread(_taken, texts)
    unasked = [one for one in found if not mentions(texts.rules, one[1].value)]
    if test := await _answered_alone(texts, unasked, names):
        return exam.report.stopped_by(knows_just(_shown(unasked), test), target.id)
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
        for one in taken_literals(
            path, world.was(path), after, texts.tested, texts.code, texts.examples.values()
        )
    ]


async def _answered_alone(texts: KnownTexts, taken: Taken, names: Sequence[str]) -> str:
    """The first claimed test that the work answers for its own values alone, or ""."""
    places = [PinnedLiteral(path, one.line, (one.edit,), one.text) for path, one in taken]
    if not places or not await red_without(texts.exam, texts.target, places, names):
        return ""
    values = NearValues.of({one.value for _, one in taken}, texts.tested, texts.examples)
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
    ) or any(
        stepped_word(word, one.step) in _without_calls(one.now[name])
        for one in asked
        for word in values.words
    )
    return shows and len(texts) == 1 and not echoes


def _shows_values(message: str) -> bool:
    """Whether a failing test says what it got: `0 != 6912`, and not `assertion failed: f(1) == 2`.

    A call with arguments in it is the test's own text. Of pytest's words those on the lines of the
    error count, without what it says of calls.
    """
    text = _without_calls(message)
    return VALUE.search(text) is not None and CALL.search(text) is None


def _without_calls(message: str) -> str:
    lines = message.split("\n")
    marked = [line for line in lines if line.startswith("E ")] or lines
    return "\n".join(line for line in marked if not OF_CALLS.match(line))


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
