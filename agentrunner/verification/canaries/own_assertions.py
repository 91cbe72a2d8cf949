"""Programs without names of tests: their own assertions made to fail, each kind by itself.

A program that is made to end with a failure says nothing of its assertions: a product may have
turned off those, or what follows an exception. Here they fail in the way in which they themselves
fail, and the command has to be red.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from time import monotonic

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.canaries.script_canary import C_MAIN, program_is_known
from agentrunner.verification.canaries.word_assertions import failing_by_words
from agentrunner.verification.inputs.inline_programs import for_people
from agentrunner.verification.inputs.model import Inputs
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.failing import Failing, failing_in_tree
from agentrunner.verification.syntax.languages import parse
from agentrunner.verification.syntax.programs import KILLS, WITH_TREES, program_language
from agentrunner.verification.syntax.stated_literals import other_expectations
from agentrunner.verification.world import SnapshotTrees

MOST = 8
"""Kinds of assertions that are asked, all files together."""
ALONE = 30
"""Assertions that are made to fail alone, all files together."""
ALONE_SEC = 120
NOT_AS_IT_FAILS = "no assertion of this program could be made to fail; so this shows, and no more"
NOT_ALL = "it has more kinds of assertions than are made to fail; so this shows, and no more"
NOT_EACH = "it has more assertions than are made to fail one by one; so this shows, and no more"
NOT_REACHED = "an assertion of this program is not reached, or not seen; so this shows, and no more"

Passes = Callable[[str], Awaitable[bool]]


@dataclass(frozen=True)
class Asked:
    """What failing assertions say."""

    dead: str = ""
    """Why the program cannot say no; "" where it can."""
    notes: tuple[str, ...] = ()
    confirmed: bool = False
    """Whether some assertion was seen to fail."""

    @property
    def shows_only(self) -> bool:
        """Whether the program's yes is worth less than a proof."""
        return bool(self.notes)


@dataclass(frozen=True)
class _Group:
    """The assertions of one kind in a file."""

    path: str
    failing: tuple[Failing, ...]

    @property
    def sure(self) -> bool:
        """Whether the program has to be red when all of them fail."""
        return any(one.sure for one in self.failing)


async def ask_assertions(
    passes: Passes, snapshots: Snapshots, world: SnapshotTrees, inputs: Inputs
) -> Asked:
    """Run the programs of `inputs` with their assertions made to fail; raises what `passes` does.

    An assertion that fails and does not turn the command red is a finding where it is reached: a
    process that is killed in its place is seen to end.
    """
    asking = _Asking(passes, snapshots, world)
    groups, other = await asyncio.to_thread(asking.groups, inputs)
    confirmed, unseen = False, False
    not_run: set[str] = set()
    decisive: list[_Group] = []
    for group in groups[:MOST]:
        if group.path in not_run:
            continue
        if not await asking.green(group, lambda one: one.edits):
            confirmed = True
            decisive.append(group)
            continue
        if not group.sure:
            continue
        if not await asking.green(group, lambda one: one.kill):
            return Asked(dead=_dead(group))
        if await asking.green_without(group.path):
            not_run.add(group.path)
        else:
            unseen = True
    dead, all_asked = await _each_alone(asking, decisive)
    if dead:
        return Asked(dead=dead)
    if unseen:
        return Asked(notes=(NOT_REACHED,), confirmed=confirmed)
    if not all_asked:
        return Asked(notes=(NOT_EACH,), confirmed=confirmed)
    if any(group.sure for group in groups[MOST:]):
        return Asked(notes=(NOT_ALL,), confirmed=confirmed)
    if not confirmed and other:
        return Asked(notes=(NOT_AS_IT_FAILS,))
    return Asked(confirmed=confirmed)


async def _each_alone(asking: _Asking, groups: Sequence[_Group]) -> tuple[str, bool]:
    """Why a program whose assertions fail together cannot say no to one of them; "" for nothing.

    And whether each was asked. What fails first of all, and so ends the program, hides nothing.

    A product may let the first pass and stop a later one, or forget what was counted so far.
    """
    deadline = monotonic() + ALONE_SEC
    several = [
        [_Group(group.path, (one,)) for one in reversed(group.failing) if one.kill]
        for group in groups
        if len(group.failing) > 1
    ]
    places = [one for row in zip_longest(*several) for one in row if one is not None]
    for place in places[:ALONE]:
        if monotonic() > deadline:
            return "", False
        if not await asking.green(place, lambda one: one.edits):
            continue
        if not await asking.green(place, lambda one: one.kill):
            return _dead(place), True
    return "", len(places) <= ALONE


def _dead(group: _Group) -> str:
    last = group.failing[-1]
    where = for_people(group.path)
    return f"it is green although `{last.kind}` in {where} (line {last.line}) has to fail"


@dataclass(frozen=True)
class _Asking:
    passes: Passes
    snapshots: Snapshots
    world: SnapshotTrees

    def groups(self, inputs: Inputs) -> tuple[list[_Group], bool]:
        """What can fail, and whether there is a program that cannot be made to in another way."""
        read = self.snapshots.reader(self.world.new)
        entries = self.snapshots.list(self.world.new)
        found: list[_Group] = []
        known = some_program = False
        for one in inputs.tests:
            if one.path not in entries or one.kind not in ("test", "runner") or one.region:
                continue
            source = read(one.path) or b""
            some_program = True
            language = program_language(one.path, source)
            if language not in WITH_TREES | BY_WORDS or language in ALSO_ENDED:
                known = known or program_is_known(one.path, source)
            if not language:
                continue
            kinds: dict[tuple[str, bool], list[Failing]] = {}
            for failing in _failing(source, language):
                # Comparisons turned round: each alone says little, so all of them are one kind.
                kind = failing.kind if failing.kill else ""
                kinds.setdefault((kind, failing.sure), []).append(failing)
            for several in kinds.values():
                edits = [edit for failing in several for edit in failing.edits]
                if _readable(applied(source, edits), language):
                    found.append(_Group(one.path, tuple(several)))
        found.sort(key=lambda group: not group.sure)
        return found, some_program and not known

    async def green(self, group: _Group, change: Callable[[Failing], Sequence[Edit]]) -> bool:
        """Whether the command passes with a change at all places of a group."""
        edits = [edit for failing in group.failing for edit in change(failing)]
        return await self.passes(await asyncio.to_thread(self._tree, group.path, edits))

    async def green_without(self, path: str) -> bool:
        """Whether the command passes with a program that ends where it begins."""
        edit = await asyncio.to_thread(self._first, path)
        return await self.passes(await asyncio.to_thread(self._tree, path, [edit]))

    def _tree(self, path: str, edits: Sequence[Edit]) -> str:
        source = self.snapshots.reader(self.world.new)(path) or b""
        mode = self.snapshots.list(self.world.new)[path][0]
        changed: dict[str, Entry | None] = {
            path: (mode, self.snapshots.write_blob(applied(source, edits)))
        }
        return self.snapshots.combine(self.world.new, changed)

    def _first(self, path: str) -> Edit:
        """What ends a program before anything else of it runs."""
        source = self.snapshots.reader(self.world.new)(path) or b""
        language = program_language(path, source)
        at = source.find(b"\n") + 1 if source.startswith(b"#!") else 0
        if language == "php":
            hit = re.search(rb"<\?php\s", source)
            at = hit.end() if hit else at
        if language in IN_MAIN and (main := C_MAIN.search(source.decode("latin-1"))):
            at = main.end()
        return Edit(at, at, f"{KILLS[language]};\n")


IN_MAIN = frozenset({"c", "java", "go", "rust"})
"""Languages whose programs begin in a function of that name."""
BY_WORDS = frozenset({"php", "ruby", "c"})
"""Languages without a grammar here whose assertions are known all the same."""
ALSO_ENDED = frozenset({"c"})
"""Those of them whose programs often compare in ways of their own, beside `assert`."""


def _failing(source: bytes, language: str) -> list[Failing]:
    """The assertions of a program, then other places where it expects something."""
    found: list[Failing] = []
    if language in WITH_TREES:
        found = failing_in_tree(source, language)
    elif language in BY_WORDS:
        found = failing_by_words(source, language)
    lines = {one.line for one in found if one.kill}
    several = other_expectations(source, KILLS[language])
    others = [one for one in several if one.line not in lines]
    return [*found, *others]


def _readable(source: bytes, language: str) -> bool:
    """Whether a changed program is well-formed, as far as that can be seen here."""
    if language not in WITH_TREES:
        return True
    parsed = parse(source, language)
    return parsed is not None and not parsed.root.has_error
