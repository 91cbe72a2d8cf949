"""Claimed tests whose text is as it was, and trees in which statements of these are edited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.syntax.definitions import definition
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.test_finder import find_test
from agentrunner.verification.syntax.test_spans import Found
from agentrunner.verification.world import SnapshotTrees

MOST = 50
"""The most tests that are looked at."""
Statement = TypeVar("Statement")


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
