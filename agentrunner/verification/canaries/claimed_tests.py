"""Whether the test tool can still report a failure: canaries made of the claimed tests themselves.

Each claimed test gets a failing end, then its expected literals are changed, in its own file and
under its own name; both must be reported as failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec
from msgspec import Struct

from agentrunner.state.run_state import Finding
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.canaries.canary_trees import (
    CanaryTree,
    CanaryTrees,
    CommandOnTrees,
    FailingTree,
    Places,
    RedLines,
    failing_trees,
    red_lines,
)
from agentrunner.verification.canaries.helper_canary import helper_not_asked
from agentrunner.verification.canaries.own_assertions import ask_assertions
from agentrunner.verification.canaries.table_rows import (
    Passes,
    case_not_asked,
    row_not_asked,
    row_of_test_not_asked,
)
from agentrunner.verification.evidence.findings import tool_changed
from agentrunner.verification.evidence.target import Measured, in_repo
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import all_pass, test_of_case
from agentrunner.verification.syntax.canary import changed_where_red
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.word_tests import Statement, WordTest, killing, tests_by_words

NOT_ITSELF = "could not be made to fail itself; so this shows, and no more"

MOST_ALONE = 10
"""Tests that are run one by one, where nothing is reported about them together."""


class WordsAsked(Struct, frozen=True):
    """What such canaries showed.

    Each claimed test is changed to expect another value, under its own name. A test that has no
    value that must be equal is made to fail at its end instead. A statement that is reached and
    passes all the same is a finding.
    """

    dead: str = ""
    """Why a test cannot fail; "" where no such test was found."""
    unconfirmed: tuple[str, ...] = ()
    """Names of tests of which nothing was seen to fail."""


class WordCanaries(Struct, frozen=True):
    """Makes and runs such canaries. Methods raise what running in rooms raises."""

    command: CommandOnTrees
    _made: dict[str, list[WordTest]] = msgspec.field(default_factory=dict)
    _files: dict[str, str] = msgspec.field(default_factory=dict)
    _sources: dict[str, bytes] = msgspec.field(default_factory=dict)
    _silent: set[str] = msgspec.field(default_factory=set)
    """Names that were not reported when they were last changed, while the command was red."""

    async def ask(
        self, places: Mapping[str, Sequence[str]], now: Results, red: RedLines
    ) -> WordsAsked:
        """Run canaries of tests in files without a grammar; red statements are also tried alone."""
        await asyncio.to_thread(self._read_tests, places, now)
        remaining = list(self._made)
        sure = [name for name in remaining if self._is_sure(name)]
        remaining = await self._not_failed(remaining, self._changed_values)
        # A value of one test may be what loads another one: then each is tried by itself.
        for test_name in [
            test_name for test_name in sure if test_name in remaining and test_name in self._silent
        ][:MOST_ALONE]:
            if not await self._not_failed([test_name], self._changed_values):
                remaining.remove(test_name)
        if lost := [name for name in sure if name in remaining and name not in self._silent]:
            # A statement that is not reached shows nothing; any that is reached must fail.
            if (name := await self._first_reached(lost, {})) is not None:
                return WordsAsked(f"{name} passes with another expected value")
            return WordsAsked(unconfirmed=tuple(remaining))
        red_statements = {name: some for name in sure if (some := self._where_red(name, red))}
        lost = await self._not_failed(
            [*red_statements], lambda name: [e for one in red_statements[name] for e in one.edits]
        )
        if lost:
            reported = [name for name in lost if name not in self._silent]
            if (name := await self._first_reached(reported, red_statements)) is not None:
                return WordsAsked(f"{name} passes with another value where it was red before")
            return WordsAsked(unconfirmed=tuple(lost))
        remaining = await self._not_failed(
            remaining, lambda name: [one.end for one in self._made[name] if one.end is not None]
        )
        return WordsAsked(unconfirmed=tuple(remaining))

    def _read_tests(self, places: Mapping[str, Sequence[str]], now: Results) -> None:
        read = self.command.read
        lines = {test.name: test.line for test in now.tests}
        for path, names in places.items():
            source = read(path) if language_of(path) is None else None
            self._sources[path] = source or b""
            for name in names if source is not None else ():
                self._made[name] = tests_by_words(source or b"", path, name, lines.get(name))
                self._files[name] = path

    def _is_sure(self, name: str) -> bool:
        return any(one.sure for test in self._made[name] for one in test.statements)

    def _changed_values(self, name: str) -> list[Edit]:
        return [
            edit
            for test in self._made[name]
            for one in test.statements
            if one.sure or not self._is_sure(name)
            for edit in one.edits
        ]

    def _where_red(self, name: str, red: RedLines) -> list[Statement]:
        """The statements that were red; [] where all were, or none is known."""
        sure = [one for test in self._made[name] for one in test.statements if one.sure]
        text = self._sources[self._files[name]].decode("latin-1")
        lines = {to_bytes(one).decode("latin-1") for one in red.get(name, ())}
        red_ones = [one for one in sure if text[one.at :].split("\n", 1)[0].strip() in lines]
        return red_ones if len(red_ones) < len(sure) else []

    async def _not_failed(
        self, names: Sequence[str], change: Callable[[str], list[Edit]]
    ) -> list[str]:
        """Those of `names` that are not reported as failed when each of them is changed."""
        changed = {name: edits for name in names if (edits := change(name))}
        if not changed:
            return list(names)
        seen = await self.command.on(await self._tree(changed), list(changed))
        self._silent.difference_update(changed)
        named = seen.results.named if seen.results is not None else lambda _: []
        if not seen.passed:  # in a run that fails, and says nothing of them
            self._silent.update(name for name in changed if not named(name))
        return [
            name for name in names if name not in changed or not any(one.red for one in named(name))
        ]

    async def _first_reached(
        self, names: Sequence[str], only: Mapping[str, Sequence[Statement]]
    ) -> str | None:
        """The first of these tests whose statement with an expected value is known to run.

        For a test in `only`, one of the statements given there.
        """
        for name in names:
            path = self._files[name]
            source = self._sources[path]
            sure = [one for test in self._made[name] for one in test.statements if one.sure]
            places = [one.at for one in only.get(name, sure)]
            pairs = [pair for at in places if (pair := killing(path, source, at)) is not None]
            if not pairs:
                continue
            killed, harmless = ([pair[index] for pair in pairs] for index in (0, 1))
            if await self._passes_with(name, harmless) and not await self._passes_with(
                name, killed
            ):
                return name
        return None

    async def _passes_with(self, name: str, edits: Sequence[Edit]) -> bool:
        seen = await self.command.on(await self._tree({name: edits}), [name])
        return seen.results is not None and seen.results.passed(name)

    async def _tree(self, changed: Mapping[str, Sequence[Edit]]) -> str:
        edits: dict[str, set[Edit]] = {}
        for name, edits_of_name in changed.items():
            edits.setdefault(self._files[name], set()).update(edits_of_name)
        return await self.command.edited(edits)


MOST_TESTS = 200
"""Claimed tests that canaries are made of; with more, the claim is shown at most."""
NO_CANARY = "no canary: none could be made of these tests"
TOO_MANY = f"of more than {MOST_TESTS} claimed tests only so many were made to fail"
PASSED_BY = "passes by the assertion that was red before; so this shows, and no more"


@dataclass(frozen=True)
class CanaryReport:
    """What running canaries showed; a finding where one did not fail."""

    finding: Finding | None = None
    notes: list[str] = field(default_factory=list)
    shows_only: bool = False
    """Whether the claim is shown at most: no canary failed as the program itself does."""


class FailingEnds(Struct, frozen=True):
    """What runs said in which claimed tests were made to fail at their end."""

    runs: Sequence[tuple[CanaryTree, Measured]] = ()

    @property
    def whole(self) -> Measured | None:
        """The run of all tests, where there was one."""
        return self.runs[0][1] if self.runs else None

    @property
    def failing(self) -> frozenset[str]:
        """The tests that were made to fail in it."""
        return frozenset(self.runs[0][0].names if self.runs else ())


class Canaries(Struct, frozen=True):
    """Makes and runs canaries of one command. Methods raise what running in rooms raises."""

    command: CommandOnTrees

    @property
    def _trees(self) -> CanaryTrees:
        return CanaryTrees(self.command)

    def _report(self, what: str) -> CanaryReport:
        return CanaryReport(tool_changed(self.command.target, what))

    async def failing_ends(self, names: Sequence[str], now: Results) -> FailingEnds:
        """Run all tests, with `names`, which pass on the new tree, made to fail at their end."""
        return FailingEnds(await self._run(self._trees.failing_ends, self._places(names, now)))

    async def dead(
        self, names: Sequence[str], now: Results, failing: FailingEnds, before: Results | None
    ) -> CanaryReport:
        """A finding where a canary of `names`, which all pass on the new tree, does not fail.

        `before` are the results on the old tree: what was red there, and where, is changed first.
        """
        command, places, ends = self.command, self._places(names, now), failing.runs
        old = await asyncio.to_thread(command.world.snapshots.reader, command.world.old)
        red = await asyncio.to_thread(red_lines, before, places, old)
        make = self._trees.changed_literals
        literals = await self._run(partial(make, red=red), places, narrow=True)
        if not ends and not any(
            canaries.names or _any_red(canaries, seen) for canaries, seen in literals
        ):
            return await self._by_programs(names, places, now, red)
        changed = {name for canaries, _ in literals for name in canaries.names}
        unseen_literals = [name for one in literals for name in _not_reported_as_failed(*one)]
        unseen_ends = [name for one in ends for name in _not_reported_as_failed(*one)]
        unseen = [name for name in unseen_ends if name not in changed] + unseen_literals
        if unseen:
            what = "another expected value" if unseen_literals else "a failing statement at its end"
            return self._report(f"{unseen[0]} passes with {what}")
        if unasked_row := await self._row_not_asked(places):
            return self._report(unasked_row)
        without = {
            path: [name for name in names if name not in changed] for path, names in places.items()
        }
        if unasked := await helper_not_asked(command, without):
            return self._report(unasked)
        by_words = await self._by_words(places, now, red)
        notes = [TOO_MANY] * (len(names) > MOST_TESTS)
        where_red = partial(make, make=changed_where_red, red=red)
        for one in await self._run(where_red, places, narrow=True):
            notes += [f"{name} {PASSED_BY}" for name in _not_reported_as_failed(*one)[:1]]
        return replace(
            by_words,
            notes=[*by_words.notes, *notes],
            shows_only=by_words.shows_only or bool(notes),
        )

    def _places(self, names: Sequence[str], now: Results) -> dict[str, list[str]]:
        """The names of tests by their file, relative to the repository."""
        files = {test.name: test.file for test in now.tests if test.file}
        found: dict[str, list[str]] = {}
        for name in names[:MOST_TESTS]:
            if name in files:
                path = in_repo(files[name], self.command.target.cwd)
                found.setdefault(path, []).append(name)
        return found

    async def _row_not_asked(self, places: Places) -> str:
        """Why claimed tests cannot fail in a row of a table that they loop over; "" for none."""
        for path, names in places.items():

            async def passes(tree: str, names: Sequence[str] = names) -> bool:
                seen = await self.command.on(tree, names)
                return seen.results is not None and all_pass(names, seen.results)

            if unasked_row := await row_of_test_not_asked(self.command, passes, path):
                return unasked_row
            if any(test_of_case(name) != name for name in names) and (
                unasked_case := await case_not_asked(self.command, passes, path)
            ):
                return unasked_case
        return ""

    async def _by_words(self, places: Places, now: Results, red: RedLines) -> CanaryReport:
        """Make claimed tests fail in files without a grammar, each by its own words."""
        asked = await WordCanaries(self.command).ask(places, now, red)
        if asked.dead:
            return self._report(asked.dead)
        if asked.unconfirmed:
            return CanaryReport(notes=[f"{asked.unconfirmed[0]} {NOT_ITSELF}"], shows_only=True)
        return CanaryReport()

    async def _run(
        self, make: Callable[[Places], CanaryTree | None], places: Places, *, narrow: bool = False
    ) -> list[tuple[CanaryTree, Measured]]:
        """Run canaries of all files at once, with what was seen; [] where none can be made.

        A tool that stops at the first red file reports nothing about the others: these run again,
        each file alone.
        """
        found: list[tuple[CanaryTree, Measured]] = []

        async def ask(subset: Places) -> None:
            canaries = await asyncio.to_thread(make, subset)
            if canaries is not None:
                only = [*canaries.names, *canaries.may_be_red] if narrow else ()
                found.append((canaries, await self.command.on(canaries.tree, only)))

        await ask(places)
        if found and len(places) > 1:
            for path in _files_not_reported(*found[0], places):
                await ask({path: places[path]})
        return found

    async def _by_programs(
        self, names: Sequence[str], places: Places, now: Results, red: RedLines
    ) -> CanaryReport:
        """For claimed tests without a failing end: make them fail by words, or their programs."""
        by_words = await self._by_words(places, now, red)
        if by_words.finding or (
            places and not by_words.shows_only and all(language_of(path) is None for path in places)
        ):
            return by_words

        async def passes(tree: str) -> bool:
            seen = await self.command.on(tree)
            named = seen.results and all(seen.results.passed(name) for name in names)
            return seen.passed or bool(named)

        async def fails(failing_tree: FailingTree) -> tuple[bool, bool]:
            if not failing_tree.programs:
                return False, False  # the texts may be those of other tests
            seen = await self.command.on(failing_tree.tree)
            green = bool(seen.results and all(map(seen.results.passed, names)))
            # A tool may report a program that fails by its exit code alone, under no test's name.
            unnamed = green and not seen.passed and not (seen.results and seen.results.red)
            return seen.passed or (green and failing_tree.whole and not unnamed), (
                unnamed or not green
            )

        return await self._programs(fails, passes)

    async def _programs(
        self, fails: Callable[[FailingTree], Awaitable[tuple[bool, bool]]], passes: Passes
    ) -> CanaryReport:
        """Make the programs behind a command fail; `fails` returns whether one is dead, and red."""
        confirmed = False
        for failing_tree in await asyncio.to_thread(failing_trees, self.command):
            dead, red = await fails(failing_tree)
            if dead:
                return self._report(failing_tree.what)
            confirmed = confirmed or red
        asked = await ask_assertions(self.command, passes)
        if asked.dead:
            return self._report(asked.dead)
        if unasked_row := await row_not_asked(self.command, passes):
            return self._report(unasked_row)
        notes = list(asked.notes)
        if not confirmed and not asked.confirmed:
            notes.append(NO_CANARY)
        return CanaryReport(notes=notes, shows_only=asked.shows_only)

    async def program_is_dead(self) -> CanaryReport:
        """The same for a command without test names: its programs and tables are made to fail.

        A program fails wherever it ends, and by its own assertions where it has some. The tables
        and texts that it compares with get another content.
        """
        passes = self.command.passes

        async def fails(failing_tree: FailingTree) -> tuple[bool, bool]:
            green = await passes(failing_tree.tree)
            if green and failing_tree.old and await passes(failing_tree.old):
                return False, False  # it is handed the text, and compares nothing with it
            return green, not green

        return await self._programs(fails, passes)


def _files_not_reported(canaries: CanaryTree, seen: Measured, places: Places) -> list[str]:
    """Files that have a canary which is missing in the results."""
    if seen.results is None:
        return []
    names = {name for name in canaries.names if name not in seen.results.names}
    return [path for path in places if names.intersection(places[path])]


def _not_reported_as_failed(canaries: CanaryTree, seen: Measured) -> list[str]:
    names = canaries.names
    if seen.results is None:
        return list(names) if seen.passed else []
    if not seen.results.tests and not seen.passed:
        return []  # everything broke, which is a failure as well
    red = [test.name for test in seen.results.red]
    return [
        name
        for name in names
        if seen.results.passed(name) and not any(map(partial(_is_of_one_test, name), red))
    ]


def _is_of_one_test(name: str, other: str) -> bool:
    """Whether `name` is one of the cases that a test runs by itself, and `other` is another one.

    A canary changes one value of the test, which may be that of another case than the named one.
    """
    test = test_of_case(name)
    return test != name and test_of_case(other) == test


def _any_red(canaries: CanaryTree, seen: Measured) -> bool:
    """Whether a test that another value may turn red is red."""
    red = {test.name for test in seen.results.red} if seen.results else set()
    return not red.isdisjoint(canaries.may_be_red)
