"""Claimed tests whose text is as it was, and trees in which statements of these are edited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.names import all_pass
from agentrunner.verification.syntax.definitions import definition
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.replayed_assertions import (
    ending,
    equalities,
    helper,
    sides_in,
    telling_sides,
    with_sides,
)
from agentrunner.verification.syntax.test_finder import find_test
from agentrunner.verification.syntax.test_spans import Found
from agentrunner.verification.world import SnapshotTrees

MOST = 50
"""The most tests that are looked at."""
Statement = TypeVar("Statement")
Values = TypeVar("Values")


class UnchangedTest(Struct, Generic[Statement], frozen=True):
    """A claimed test, with what was found in its text, the same before and after."""

    path: str
    name: str
    language: str
    before: Sequence[Statement]
    after: Sequence[Statement]


def unchanged_tests(
    places: Mapping[str, Sequence[str]],
    world: SnapshotTrees,
    find: Callable[[Found], Sequence[Statement]],
) -> list[UnchangedTest[Statement]]:
    """The claimed tests, by file, in which something is found and whose text stayed. Blocks."""
    tests: list[UnchangedTest[Statement]] = []
    for path, names in places.items():
        language, before, after = language_of(path), world.was(path), world.now(path)
        if language is None or before is None or after is None:
            continue
        for name in names:
            first, later = find_test(before, language, name), find_test(after, language, name)
            if first is None or later is None:
                continue
            same = before == after or definition(before, language, name) == definition(
                after, language, name
            )
            old, new = find(first), find(later)
            if same and old and len(old) == len(new):
                tests.append(UnchangedTest(path, name, language, old, new))
    return tests[:MOST]


class EditedTests(Struct, frozen=True):
    """Runs tests with edited statements; `helper` is the source that these call, by language."""

    exam: Examination
    target: Target
    helper: Callable[[str, str], str]

    async def measure(
        self,
        tree: str,
        tests: Sequence[UnchangedTest[Statement]],
        edits: Sequence[tuple[UnchangedTest[Statement], Edit]],
        name: str,
    ) -> Measured:
        """Run just these tests in a tree with the edits. `name` is the helper's.

        Raises what running in rooms raises.
        """
        made = await asyncio.to_thread(self._edited, tree, edits, name)
        return await self.exam.run(self.target, made, [test.name for test in tests])

    async def red_with(
        self,
        tests: Sequence[UnchangedTest[Statement]],
        name: str,
        telling: Callable[[Statement, str, int, str], Edit],
        read: Callable[[str], Mapping[int, Values]],
    ) -> dict[str, tuple[int, Values]]:
        """With which statement, made to tell its values, each test was red on the old tree.

        By the test's name, with the values that `read` finds in its message.
        """
        numbers = [(test, index) for test in tests for index in range(len(test.before))]
        edits = [
            (test, telling(test.before[index], test.language, number, name))
            for number, (test, index) in enumerate(numbers)
        ]
        seen = await self.measure(self.exam.world.old, tests, edits, name)
        found: dict[str, tuple[int, Values]] = {}
        for result in seen.results.red if seen.results else ():
            for number, values in read(result.message).items():
                if number < len(numbers):
                    test, index = numbers[number]
                    found.setdefault(test.name, (index, values))
        return found

    def _edited(
        self, tree: str, edits: Sequence[tuple[UnchangedTest[Statement], Edit]], name: str
    ) -> str:
        snapshots, by_path = self.exam.world.snapshots, dict[str, list[Edit]]()
        read = snapshots.reader(tree)
        languages = {test.path: test.language for test, _ in edits}
        for test, edit in edits:
            by_path.setdefault(test.path, []).append(edit)
        changed = {
            path: applied(read(path) or b"", of_file) + to_bytes(self.helper(languages[path], name))
            for path, of_file in by_path.items()
        }
        return snapshots.with_texts(tree, changed)


async def swallowed(exam: Examination, target: Target, places: Mapping[str, Sequence[str]]) -> str:
    """Why a claimed test would be green with the very failure that it had; "" where none would.

    `places` are the names of tests that were red and pass now, by file. Raises what running in
    rooms raises.

    Code of the product may stand around an assertion: a decorator, a context manager, what calls a
    callback. One that catches errors by what they say lets just the known one pass. So the
    assertion that was red is made to fail with the very values that it was red with, on the new
    code.
    """
    world = exam.world
    tests = await asyncio.to_thread(unchanged_tests, places, world, equalities)
    if not tests:
        return ""
    name = f"agentrunner_{exam.unknown.make()}"
    edited = EditedTests(exam, target, helper)
    red = await edited.red_with(tests, name, telling_sides, sides_in)
    tests = [one for one in tests if one.name in red]
    for tree, stays in ((world.new, True), (world.old, False)):
        if not tests:
            return ""
        edits = []
        for test in tests:
            index, texts = red[test.name]
            each = (test.after if stays else test.before)[index]
            edits += [(test, edit) for edit in with_sides(each, texts)]
        ran = await edited.measure(tree, tests, edits, name)
        tests = [
            one for one in tests
            if ran.results is not None and all_pass([one.name], ran.results) is stays
        ]  # fmt: skip
    # One by one: each ends its process.
    for test in tests:
        index, (first, second) = red[test.name]
        end = (test, ending(test.after[index], name))
        ran = await edited.measure(world.new, [test], [end], name)
        if ran.results is None or not all_pass([test.name], ran.results):
            return (
                f"{test.name} was red in line {test.before[index].line}, where it compared {first}"
                f" with {second}, and would be green now with just these values: the work catches"
                " that error"
            )
    return ""
