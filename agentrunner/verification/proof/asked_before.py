"""What a claimed test asked when it was red: does it ask the same, now that it is green?

A test may expect what a constant of the product says, or run through rows that the product keeps
or reads for it. Then a change of these makes it green and leaves the answer as it was. So the
statement that was red before tells with which values it asked, and has to ask with them again.
Values that the PRD wants otherwise are left alone, and so are those that differ from run to run.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.inputs.asked import SENTENCE
from agentrunner.verification.inputs.between import Asked
from agentrunner.verification.syntax.asked_values import (
    Asking,
    asking_again,
    askings,
    helper,
    telling,
    values_in,
)
from agentrunner.verification.syntax.calls import names_changed
from agentrunner.verification.syntax.definitions import definition
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.find import find_test
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.target import Measured, Run, Target
from agentrunner.verification.world import SnapshotTrees

MOST_TESTS = 50
LEAVES = re.compile(
    r"(?i)\b(?:remov|delet|drop|obsolete|get rid|no longer|renam|replac)|削除|廃止|改名"
)
VALUE = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|(?<![\w.])\d[\w.]*")


@dataclass(frozen=True)
class _Test:
    """A claimed test that says the same before and after, and what it asks with."""

    path: str
    name: str
    language: str
    before: Sequence[Asking]
    after: Sequence[Asking]


Seen = Mapping[str, tuple[int, tuple[object, ...]]]
"""By name of a test: which of its statements was red, and with which values."""


async def not_asked_again(
    run: Run,
    target: Target,
    places: Mapping[str, Sequence[str]],
    snapshots: Snapshots,
    world: SnapshotTrees,
    wanted: str,
) -> str:
    """Why a claimed test is green without asking what it asked before; "" for none.

    `places` has by file the names of tests that were red and pass now; `wanted` is what was asked
    for. Raises what `run` does.
    """
    tests = await asyncio.to_thread(lambda: list(_read(places, snapshots, world))[:MOST_TESTS])
    if not tests:
        return ""
    looking = _Looking(run, target, snapshots, world)
    seen = await looking.before(tests)
    tests = [one for one in tests if one.name in seen]
    left = await looking.passing(tests, seen)
    if not left:
        return ""
    left = await asyncio.to_thread(
        lambda: [one for one in left if not _is_wanted(one, seen, snapshots, world, wanted)]
    )
    again = await looking.before(left) if left else {}
    for one in left:
        if again.get(one.name) == seen[one.name]:
            place, values = seen[one.name]
            known = [repr(value) for value in values if value is not None]
            what = f"with {', '.join(known)[:200]}" if known else "there"
            return (
                f"{one.name} was red in line {one.before[place].line} as it asked {what}, and does"
                " not ask so any more"
            )
    return ""


@dataclass(frozen=True)
class _Looking:
    run: Run
    target: Target
    snapshots: Snapshots
    world: SnapshotTrees

    async def before(self, tests: Sequence[_Test]) -> Seen:
        """With which values each test was red on the old tree."""
        name = f"agentrunner_{secrets.token_hex(4)}"
        numbers = [(test, place) for test in tests for place in range(len(test.before))]
        edits: dict[str, list[Edit]] = {}
        for number, (test, place) in enumerate(numbers):
            edit = telling(test.before[place], test.language, number, name)
            edits.setdefault(test.path, []).append(edit)
        seen = await self._ask(self.world.old, tests, edits, name)
        found: dict[str, tuple[int, tuple[object, ...]]] = {}
        for result in seen.results.red if seen.results else ():
            for number, values in values_in(result.message).items():
                if number < len(numbers):
                    test, place = numbers[number]
                    found.setdefault(test.name, (place, values))
        return found

    async def passing(self, tests: Sequence[_Test], seen: Seen) -> list[_Test]:
        """Those that pass on the new tree, and fail as soon as they ask with these values."""
        if not tests:
            return []
        name = f"agentrunner_{secrets.token_hex(4)}"
        edits: dict[str, list[Edit]] = {}
        for test in tests:
            place, values = seen[test.name]
            edit = asking_again(test.after[place], test.language, values, name)
            edits.setdefault(test.path, []).append(edit)
        ran = await self._ask(self.world.new, tests, edits, name)
        return [one for one in tests if ran.results and ran.results.passed(one.name)]

    async def _ask(
        self, tree: str, tests: Sequence[_Test], edits: Mapping[str, Sequence[Edit]], name: str
    ) -> Measured:
        languages = {test.path: test.language for test in tests}

        def made() -> str:
            read, entries = self.snapshots.reader(tree), self.snapshots.list(tree)
            changed: dict[str, Entry | None] = {}
            for path, some in edits.items():
                text = applied(read(path) or b"", some) + helper(languages[path], name).encode()
                changed[path] = (entries[path][0], self.snapshots.write_blob(text))
            return self.snapshots.combine(tree, changed)

        changed = await asyncio.to_thread(made)
        return await self.run(self.target, changed, [test.name for test in tests])


def _read(
    places: Mapping[str, Sequence[str]], snapshots: Snapshots, world: SnapshotTrees
) -> Iterator[_Test]:
    """The tests that ask with values from elsewhere, and that the work left alone. Blocks."""
    was, now = snapshots.reader(world.old), snapshots.reader(world.new)
    for path, names in places.items():
        language, one, other = language_of(path), was(path), now(path)
        if language is None or one is None or other is None:
            continue
        for name in names:
            span, later = find_test(one, language, name), find_test(other, language, name)
            if span is None or later is None:
                continue
            before, after = askings(one, language, span), askings(other, language, later)
            same = one == other or definition(one, language, name) == definition(
                other, language, name
            )
            if before and same and len(before) == len(after):
                yield _Test(path, name, language, before, after)


def _is_wanted(
    test: _Test, seen: Seen, snapshots: Snapshots, world: SnapshotTrees, wanted: str
) -> bool:
    """Whether the PRD wants other values where they come from: it speaks of it, or of them."""
    place, values = seen[test.name]
    names, asked = test.before[place].names, Asked(wanted)
    leaves = Asked("\n".join(one for one in SENTENCE.split(wanted) if LEAVES.search(one)))
    words = [value for value in values if isinstance(value, str) and re.search(r"\w", value)]
    if any(map(leaves.writes, words)):
        return True
    was, now = snapshots.reader(world.old), snapshots.reader(world.new)
    for path in world.product:
        language, after = language_of(path), now(path)
        if language is None or after is None:
            continue
        changed = names & names_changed(was(path), after, language)
        if any(map(asked.names_code, changed)):
            return True
        new = _values(after, changed) - _values(was(path) or b"", changed)
        if new and all(map(asked.writes, new)):
            return True
    return False


def _values(source: bytes, names: Collection[str]) -> set[str]:
    """The literals in lines that give these names something."""
    text = source.decode("utf-8", "replace")
    lines = [
        line
        for line in text.splitlines()
        if any(re.search(rf"\b{re.escape(name)}\b[^=]*=", line) for name in names)
    ]
    return {hit[0].strip("\"'") for line in lines for hit in VALUE.finditer(line)}
