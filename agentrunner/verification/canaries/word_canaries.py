"""Canaries of claimed tests whose language has no grammar here, made by their words.

Each claimed test expects another value, under its own name; where it says of no value that it has
to be equal, it fails at its end instead. What is reached and passes all the same is a finding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.canaries.red_lines import RedLines
from agentrunner.verification.results.model import Results
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.word_tests import Statement, WordTest, killing, tests_by_words
from agentrunner.verification.target import Measured

RunOnly = Callable[[str, Sequence[str]], Awaitable[Measured]]
"""The command in a tree, for tests of these names where it can be narrowed to them."""
NOT_ITSELF = "could not be made to fail itself; so this shows, and no more"

MOST_ALONE = 10
"""Tests that are asked one by one, where nothing is reported of them together."""


@dataclass(frozen=True)
class WordsAsked:
    """What such canaries say."""

    dead: str = ""
    """Why a test cannot say no; "" where none was found that cannot."""
    unconfirmed: tuple[str, ...] = ()
    """Names of tests of which nothing was seen to fail."""


@dataclass(frozen=True)
class WordCanaries:
    """Makes and runs them. Methods raise what runs in rooms raise."""

    run: RunOnly
    snapshots: Snapshots
    tree: str
    """The delivered one."""
    _made: dict[str, list[WordTest]] = field(default_factory=dict)
    _files: dict[str, str] = field(default_factory=dict)
    _sources: dict[str, bytes] = field(default_factory=dict)
    _silent: set[str] = field(default_factory=set)
    """Names that were not reported when they were changed last, while the command was red."""

    async def ask(
        self, places: Mapping[str, Sequence[str]], now: Results, red: RedLines
    ) -> WordsAsked:
        """Canaries of the tests in files without a grammar; what was `red` is asked alone, too."""
        await asyncio.to_thread(self._find, places, now)
        left = list(self._made)
        sure = [name for name in left if self._is_sure(name)]
        left = await self._unseen(left, self._others)
        # A value of one test can be what another one is loaded by: then each is asked by itself.
        for one in [one for one in sure if one in left and one in self._silent][:MOST_ALONE]:
            if not await self._unseen([one], self._others):
                left.remove(one)
        if lost := [name for name in sure if name in left and name not in self._silent]:
            # One statement that is not reached says nothing, any that is has to be seen.
            if (name := await self._reached(lost, {})) is not None:
                return WordsAsked(f"{name} passes with another expected value")
            return WordsAsked(unconfirmed=tuple(left))
        one_of_several = {name: some for name in sure if (some := self._where_red(name, red))}
        lost = await self._unseen(
            [*one_of_several], lambda name: [e for one in one_of_several[name] for e in one.edits]
        )
        if lost:
            reported = [name for name in lost if name not in self._silent]
            if (name := await self._reached(reported, one_of_several)) is not None:
                return WordsAsked(f"{name} passes with another value where it was red before")
            return WordsAsked(unconfirmed=tuple(lost))
        left = await self._unseen(left, self._end)
        return WordsAsked(unconfirmed=tuple(left))

    def _find(self, places: Mapping[str, Sequence[str]], now: Results) -> None:
        read = self.snapshots.reader(self.tree)
        lines = {test.name: test.line for test in now.tests}
        for path, names in places.items():
            source = read(path) if language_of(path) is None else None
            self._sources[path] = source or b""
            for name in names if source is not None else ():
                self._made[name] = tests_by_words(source or b"", path, name, lines.get(name))
                self._files[name] = path

    def _is_sure(self, name: str) -> bool:
        return any(one.sure for test in self._made[name] for one in test.statements)

    def _others(self, name: str) -> list[Edit]:
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
        lines = {one.encode().decode("latin-1") for one in red.get(name, ())}
        hit = [one for one in sure if text[one.at :].split("\n", 1)[0].strip() in lines]
        return hit if len(hit) < len(sure) else []

    def _end(self, name: str) -> list[Edit]:
        return [test.end for test in self._made[name] if test.end is not None]

    async def _unseen(self, names: Sequence[str], change: Callable[[str], list[Edit]]) -> list[str]:
        """Those of `names` that are not reported as failed with a change of each."""
        changed = {name: edits for name in names if (edits := change(name))}
        if not changed:
            return list(names)
        tree = await asyncio.to_thread(self._tree, changed)
        seen = await self.run(tree, list(changed))
        self._silent.difference_update(changed)
        self._silent.update(name for name in changed if _is_silent(name, seen))
        return [name for name in names if name not in changed or not _is_red(name, seen)]

    async def _reached(
        self, names: Sequence[str], only: Mapping[str, Sequence[Statement]]
    ) -> str | None:
        """The first of these tests whose statement with an expected value is known to run.

        Of a test that `only` has, one of those statements.
        """
        read = self.snapshots.reader(self.tree)
        for name in names:
            path = self._files[name]
            source = read(path) or b""
            sure = [one for test in self._made[name] for one in test.statements if one.sure]
            places = [one.at for one in only.get(name, sure)]
            pairs = [pair for at in places if (pair := killing(path, source, at)) is not None]
            if not pairs:
                continue
            killed, harmless = ([pair[index] for pair in pairs] for index in (0, 1))
            trees = [
                await asyncio.to_thread(self._tree, {name: edits}) for edits in (harmless, killed)
            ]
            if _passes(name, await self.run(trees[0], [name])) and not _passes(
                name, await self.run(trees[1], [name])
            ):
                return name
        return None

    def _tree(self, changed: Mapping[str, Sequence[Edit]]) -> str:
        read = self.snapshots.reader(self.tree)
        entries = self.snapshots.list(self.tree)
        edits: dict[str, set[Edit]] = {}
        for name, some in changed.items():
            edits.setdefault(self._files[name], set()).update(some)
        blobs: dict[str, Entry | None] = {
            path: (
                entries[path][0],
                self.snapshots.write_blob(applied(read(path) or b"", sorted(some))),
            )
            for path, some in edits.items()
        }
        return self.snapshots.combine(self.tree, blobs)


def _is_red(name: str, seen: Measured) -> bool:
    return seen.results is not None and any(one.red for one in seen.results.named(name))


def _is_silent(name: str, seen: Measured) -> bool:
    """Whether nothing is reported of a test, in a run that says no all the same."""
    return not seen.passed and not (seen.results is not None and seen.results.named(name))


def _passes(name: str, seen: Measured) -> bool:
    return seen.results is not None and seen.results.passed(name)
