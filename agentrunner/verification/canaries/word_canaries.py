"""Canaries of claimed tests whose language has no grammar here, made by their words.

Each claimed test is changed to expect another value, under its own name. A test that has no value
that must be equal is made to fail at its end instead. A statement that is reached and passes all
the same is a finding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.canaries.canary_trees import CommandOnTrees, RedLines
from agentrunner.verification.results.model import Results
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.word_tests import Statement, WordTest, killing, tests_by_words

NOT_ITSELF = "could not be made to fail itself; so this shows, and no more"

MOST_ALONE = 10
"""Tests that are run one by one, where nothing is reported about them together."""


class WordsAsked(Struct, frozen=True):
    """What such canaries showed."""

    dead: str = ""
    """Why a test cannot fail; "" where no such test was found."""
    unconfirmed: tuple[str, ...] = ()
    """Names of tests of which nothing was seen to fail."""


class WordCanaries(Struct, frozen=True):
    """Makes and runs such canaries. Methods raise what running in rooms raises."""

    command: CommandOnTrees
    _made: dict[str, list[WordTest]] = field(default_factory=dict)
    _files: dict[str, str] = field(default_factory=dict)
    _sources: dict[str, bytes] = field(default_factory=dict)
    _silent: set[str] = field(default_factory=set)
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
