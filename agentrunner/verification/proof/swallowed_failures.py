"""Whether the failure that a claimed test had once would still make it red.

Code of the product may stand around an assertion: a decorator, a context manager, what calls a
callback. One that catches errors by what they say lets just the known one pass. So the assertion
that was red is made to fail with the very values that it was red with, on the new code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentrunner.git.snapshots import Snapshots
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.definitions import definition
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.replayed_assertions import (
    Equality,
    ending,
    equalities,
    helper,
    sides_in,
    telling_sides,
    with_sides,
)
from agentrunner.verification.syntax.test_finder import find_test
from agentrunner.verification.target import Measured, Target
from agentrunner.verification.world import SnapshotTrees

MOST_TESTS = 50


@dataclass(frozen=True)
class _Test:
    path: str
    name: str
    language: str
    before: Sequence[Equality]
    after: Sequence[Equality]


async def swallowed(exam: Examination, target: Target, places: Mapping[str, Sequence[str]]) -> str:
    """Why a claimed test would be green with the very failure that it had; "" where none would.

    `places` are the names of tests that were red and pass now, by file. Raises what running in
    rooms raises.
    """
    snapshots, world = exam.verifier.snapshots, exam.world
    tests = await asyncio.to_thread(_tests, places, snapshots, world)
    if not tests:
        return ""
    name = f"agentrunner_{exam.unknown.make()}"

    async def run(tree: str, chosen: Sequence[_Test], edits: Mapping[str, list[Edit]]) -> Measured:
        made = await asyncio.to_thread(_edited, snapshots, tree, chosen, edits, name)
        return await exam.run(target, made, [test.name for test in chosen])

    numbers = [(test, index) for test in tests for index in range(len(test.before))]
    telling: dict[str, list[Edit]] = {}
    for number, (test, index) in enumerate(numbers):
        edit = telling_sides(test.before[index], test.language, number, name)
        telling.setdefault(test.path, []).append(edit)
    seen = await run(world.old, tests, telling)
    red: dict[str, tuple[int, tuple[str, str]]] = {}
    for result in seen.results.red if seen.results else ():
        for number, sides in sides_in(result.message).items():
            if number < len(numbers):
                red.setdefault(numbers[number][0].name, (numbers[number][1], sides))
    tests = [one for one in tests if one.name in red]
    for tree, stays in ((world.new, True), (world.old, False)):
        if not tests:
            return ""
        edits: dict[str, list[Edit]] = {}
        for test in tests:
            index, texts = red[test.name]
            each = (test.after if stays else test.before)[index]
            edits.setdefault(test.path, []).extend(with_sides(each, texts))
        ran = await run(tree, tests, edits)
        tests = [
            one for one in tests
            if ran.results is not None and ran.results.passed(one.name) is stays
        ]  # fmt: skip
    # One by one: each ends its process.
    for test in tests:
        index, (first, second) = red[test.name]
        ran = await run(world.new, [test], {test.path: [ending(test.after[index], name)]})
        if ran.results is None or not ran.results.passed(test.name):
            return (
                f"{test.name} was red in line {test.before[index].line}, where it compared {first}"
                f" with {second}, and would be green now with just these values: the work catches"
                " that error"
            )
    return ""


def _edited(
    snapshots: Snapshots,
    tree: str,
    tests: Sequence[_Test],
    edits: Mapping[str, Sequence[Edit]],
    name: str,
) -> str:
    read = snapshots.reader(tree)
    languages = {test.path: test.language for test in tests}
    changed = {
        path: applied(read(path) or b"", of_file) + to_bytes(helper(languages[path], name))
        for path, of_file in edits.items()
    }
    return snapshots.with_texts(tree, changed)


def _tests(
    places: Mapping[str, Sequence[str]], snapshots: Snapshots, world: SnapshotTrees
) -> list[_Test]:
    """The unchanged tests that compare values, where code of the project stands around. Blocks."""
    was, now = snapshots.reader(world.old), snapshots.reader(world.new)
    return list(_unchanged(places, was, now))[:MOST_TESTS]


def _unchanged(
    places: Mapping[str, Sequence[str]], was: ReadFile, now: ReadFile
) -> Iterator[_Test]:
    for path, names in places.items():
        language, before, after = language_of(path), was(path), now(path)
        if language is None or before is None or after is None:
            continue
        for name in names:
            span, later = find_test(before, language, name), find_test(after, language, name)
            if span is None or later is None:
                continue
            same = before == after or definition(before, language, name) == definition(
                after, language, name
            )
            pairs = equalities(before, language, span), equalities(after, language, later)
            if same and pairs[0] and len(pairs[0]) == len(pairs[1]):
                yield _Test(path, name, language, *pairs)
