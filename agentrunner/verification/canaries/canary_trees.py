"""Makes trees with canaries: claimed tests that have to fail, and programs."""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from agentrunner.verification.canaries.script_canary import (
    GARBAGE,
    changed_texts,
)
from agentrunner.verification.evidence.target import Measured, Run, Target
from agentrunner.verification.inputs.model import Inputs
from agentrunner.verification.results.model import ReadFile, Results
from agentrunner.verification.syntax.canary import changed_literal, leaves_row
from agentrunner.verification.syntax.edits import Canary, Edit, applied
from agentrunner.verification.syntax.ends import failing_end
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.test_finder import find_test
from agentrunner.verification.syntax.test_spans import Found
from agentrunner.verification.trees import with_edits
from agentrunner.verification.world import SnapshotTrees


class CommandOnTrees(Struct, frozen=True):
    """A command, and the trees that it runs on. Methods raise what running in rooms raises."""

    run: Run
    target: Target
    world: SnapshotTrees
    inputs: Inputs
    """What decides what the command says."""

    async def on(self, tree: str, only: Sequence[str] = ()) -> Measured:
        """Run it on a tree; of its tests only those named, if any are named."""
        return await self.run(self.target, tree, only)

    async def passes(self, tree: str) -> bool:
        return (await self.on(tree)).passed

    async def edited(self, edits: Mapping[str, Iterable[Edit]]) -> str:
        """The new tree with edits in its files, by path."""
        return await asyncio.to_thread(with_edits, self.world.snapshots, self.world.new, edits)

    @property
    def read(self) -> ReadFile:
        """Reads files of the new tree. Blocks."""
        return self.world.now


class FailingTree(Struct, frozen=True):
    """The new tree with some of what decides made to fail."""

    tree: str
    what: str
    """What to report where the tree is green, one clause."""
    programs: bool = True
    """Whether programs were changed, not only texts that something may compare with."""
    whole: bool = False
    """Whether all programs that decide were changed."""
    old: str = ""
    """The old tree with the same texts; "" where programs were changed."""


RedLines = Mapping[str, frozenset[str]]
"""The text of such lines by test name, without the space around it."""
MOST_LINES = 20

Places = Mapping[str, Sequence[str]]
"""Names of tests, by their file."""


class CanaryTree(Struct, frozen=True):
    """A tree with canaries, and the names of tests that must be red in it."""

    tree: str
    names: tuple[str, ...]
    may_be_red: tuple[str, ...] = ()
    """Names of tests whose changed value is not known to be an expected one."""


class CanaryTrees(Struct, frozen=True):
    """Makes them; None where none can be made. Everything here blocks."""

    command: CommandOnTrees

    def failing_ends(self, places: Places) -> CanaryTree | None:
        """The new tree with a failing end in each test."""
        return self.changed_literals(places, red={}, make=lambda found, _: failing_end(found))

    def changed_literals(
        self,
        places: Places,
        *,
        red: RedLines,
        make: Callable[[Found, Collection[str]], Canary | None] = changed_literal,
    ) -> CanaryTree | None:
        """The new tree with another expected value in each test, as `make` changes it."""
        read = self.command.read
        made: dict[str, bytes] = {}
        kinds: dict[str, str] = {}
        for path, wanted in places.items():
            source, language = read(path), language_of(path)
            if source is None or language is None:
                continue
            edits, used = _edits(source, language, wanted, make, red)
            kinds |= used
            if edits:
                made[path] = applied(source, edits)
        sure = [name for name in kinds if kinds[name] != "case"]
        if not made:
            return None
        tree = self.command.world.snapshots.with_texts(self.command.world.new, made)
        return CanaryTree(tree, tuple(sure), tuple(name for name in kinds if name not in sure))


def _edits(
    source: bytes,
    language: str,
    wanted: Sequence[str],
    make: Callable[[Found, Collection[str]], Canary | None],
    red: RedLines,
) -> tuple[list[Edit], dict[str, str]]:
    """The edits that make canaries of these tests of a file, and the kind of each by test name."""
    edits: list[Edit] = []
    kinds: dict[str, str] = {}
    for name in wanted:
        found = find_test(source, language, name)
        canary = make(found, red.get(name, ())) if found else None
        if canary is None or found is None or leaves_row(found, name, canary):
            continue
        if not set(canary.edits) & set(edits):
            edits += canary.edits
            kinds[_failing_name(name, found)] = canary.kind
    return edits, kinds


def _failing_name(name: str, found: Found) -> str:
    """The name under which a canary of this test fails: its own, or that of the test around it.

    The function of a sub-test of Go can stand elsewhere (`t.Run(name, check)`, or inside of a
    helper): then the canary stands in the outer test, which alone fails by it.
    """
    if found.parsed.language != "go" or found.inner:
        return name
    return f"{name.partition(f'{found.span.name}/')[0]}{found.span.name}" if "/" in name else name


def red_lines(
    before: Results | None, places: Mapping[str, Sequence[str]], read: ReadFile
) -> RedLines:
    """The text of the lines that were red, by test, in files of the tree that `read` reads.

    `places` are the names of tests by file. A test whose tool reports no line is left out.
    """
    found: dict[str, frozenset[str]] = {}
    for path, names in places.items() if before is not None else ():
        lines = (read(path) or b"").decode("utf-8", "replace").splitlines()
        for name in names:
            messages = [one.message for one in (before.named(name) if before else []) if one.red]
            numbers = {number for text in messages for number in _numbers(text, path)}
            texts = {lines[number - 1].strip() for number in numbers if 0 < number <= len(lines)}
            if texts := texts - {""}:
                found[name] = frozenset(texts)
    return found


def _numbers(message: str, path: str) -> list[int]:
    """Line numbers of a file in a message: `test_a.py:7`, `File "test_a.py", line 7`."""
    name = re.escape(posixpath.basename(path))
    hits = re.findall(rf"(?<![\w-]){name}[\"']?(?::|, line |\()(\d{{1,7}})", message)
    return [int(hit) for hit in hits[-MOST_LINES:]]


def failing_trees(command: CommandOnTrees) -> list[FailingTree]:
    """The new tree with programs that were made to fail, then with other texts to compare with."""
    snapshots, world, read = command.world.snapshots, command.world, command.read
    entries = snapshots.list(world.new)
    there = [one for one in command.inputs.deciding if one.path in entries]
    programs = [one.path for one in there if one.kind in ("test", "runner") and not one.region]
    texts = [
        one.path
        for one in there
        if one.kind == "fixture" and not one.itself and language_of(one.path) is None
    ]
    found = []
    for files, what in (
        (changed_texts(programs, read), "its program is green although it was made to fail"),
        (dict.fromkeys(texts, GARBAGE), "it is green with another text to compare with"),
    ):
        if files:
            by_program = not files.keys() <= set(texts)
            old = "" if by_program else snapshots.with_texts(world.old, files)
            tree, whole = snapshots.with_texts(world.new, files), files.keys() >= set(programs)
            found.append(FailingTree(tree, what, by_program, whole, old))
    return found
