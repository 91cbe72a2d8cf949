"""Makes the assertions of programs without test names fail, each kind by itself.

A program that is made to end with a failure says nothing about its assertions: a product may have
turned these off, or what follows an exception. Here they fail in the way in which they would really
fail, and the command has to be red.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from time import monotonic

from msgspec import Struct

from agentrunner.verification.canaries.canary_trees import CommandOnTrees
from agentrunner.verification.canaries.script_canary import C_MAIN, program_is_known
from agentrunner.verification.canaries.table_rows import Passes
from agentrunner.verification.inputs.inline_programs import for_people
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.failing_assertions import Failing, failing_in_tree
from agentrunner.verification.syntax.languages import KILLS, WITH_TREES, parse, program_language
from agentrunner.verification.syntax.stated_literals import other_expectations
from agentrunner.verification.syntax.tokens import Token, tokens

MOST_KINDS = 8
"""Kinds of assertions that are tried, in all files together."""
MOST_ALONE = 30
"""Assertions that are made to fail alone, in all files together."""
ALONE_SEC = 120
NOT_AS_IT_FAILS = "no assertion of this program could be made to fail; so this shows, and no more"
NOT_ALL = "it has more kinds of assertions than are made to fail; so this shows, and no more"
NOT_EACH = "it has more assertions than are made to fail one by one; so this shows, and no more"
NOT_REACHED = "an assertion of this program is not reached, or not seen; so this shows, and no more"


class AssertionsAsked(Struct, frozen=True):
    """What happened when assertions were made to fail."""

    dead: str = ""
    """Why the program cannot fail; "" where it can."""
    notes: tuple[str, ...] = ()
    confirmed: bool = False
    """Whether some assertion was seen to fail."""

    @property
    def shows_only(self) -> bool:
        """Whether the program's success is worth less than a proof."""
        return bool(self.notes)


class _Group(Struct, frozen=True):
    """The assertions of one kind in a file."""

    path: str
    failing: tuple[Failing, ...]

    @property
    def sure(self) -> bool:
        """Whether the program has to be red when all of them fail."""
        return any(one.sure for one in self.failing)


async def ask_assertions(command: CommandOnTrees, passes: Passes) -> AssertionsAsked:
    """Run the programs behind a command with their assertions made to fail; raises what `passes`
    does.

    An assertion that fails without turning the command red is a finding if it is reached: the
    command turns red when the process is killed in its place.
    """
    programs = _Programs(command, passes)
    groups, other = await asyncio.to_thread(programs.groups)
    confirmed, unseen = False, False
    not_run: set[str] = set()
    decisive: list[_Group] = []
    for group in groups[:MOST_KINDS]:
        if group.path in not_run:
            continue
        if not await programs.green(group, lambda one: one.edits):
            confirmed = True
            decisive.append(group)
            continue
        if not group.sure:
            continue
        if not await programs.green(group, lambda one: one.kill):
            return AssertionsAsked(dead=_why_dead(group))
        if await programs.green_without(group.path):
            not_run.add(group.path)
        else:
            unseen = True
    dead, all_asked = await _try_each_alone(programs, decisive)
    if dead:
        return AssertionsAsked(dead=dead)
    if unseen:
        return AssertionsAsked(notes=(NOT_REACHED,), confirmed=confirmed)
    if not all_asked:
        return AssertionsAsked(notes=(NOT_EACH,), confirmed=confirmed)
    if any(group.sure for group in groups[MOST_KINDS:]):
        return AssertionsAsked(notes=(NOT_ALL,), confirmed=confirmed)
    if not confirmed and other:
        return AssertionsAsked(notes=(NOT_AS_IT_FAILS,))
    return AssertionsAsked(confirmed=confirmed)


async def _try_each_alone(programs: _Programs, groups: Sequence[_Group]) -> tuple[str, bool]:
    """Why a program whose assertions fail together cannot fail by one of them; "" for none.

    The second value says whether each was tried. The first assertion to fail ends the program, so
    its failure shows nothing about the others: a product may let the first pass and stop a later
    one, or forget what was counted so far.
    """
    deadline = monotonic() + ALONE_SEC
    by_group = [
        [_Group(group.path, (one,)) for one in reversed(group.failing) if one.kill]
        for group in groups
        if len(group.failing) > 1
    ]
    singles = [one for row in zip_longest(*by_group) for one in row if one is not None]
    for single in singles[:MOST_ALONE]:
        if monotonic() > deadline:
            return "", False
        if not await programs.green(single, lambda one: one.edits):
            continue
        if not await programs.green(single, lambda one: one.kill):
            return _why_dead(single), True
    return "", len(singles) <= MOST_ALONE


def _why_dead(group: _Group) -> str:
    last = group.failing[-1]
    where = for_people(group.path)
    return f"it is green although `{last.kind}` in {where} (line {last.line}) has to fail"


class _Programs(Struct, frozen=True):
    command: CommandOnTrees
    passes: Passes

    def groups(self) -> tuple[list[_Group], bool]:
        """Assertions that can fail, and whether a program cannot be made to fail in another way."""
        read = self.command.read
        entries = self.command.world.snapshots.list(self.command.world.new)
        found: list[_Group] = []
        known = some_program = False
        for input_ in self.command.inputs.deciding:
            if input_.path not in entries or input_.kind not in ("test", "runner") or input_.region:
                continue
            source = read(input_.path) or b""
            some_program = True
            language = program_language(input_.path, source)
            if language not in WITH_TREES | WITHOUT_GRAMMAR or language in ALSO_ENDED:
                known = known or program_is_known(input_.path, source)
            if not language:
                continue
            kinds: dict[tuple[str, bool], list[Failing]] = {}
            for failing in _failing(source, language):
                # Inverted comparisons: each alone says little, so all of them are one kind.
                kind = failing.kind if failing.kill else ""
                kinds.setdefault((kind, failing.sure), []).append(failing)
            for failings in kinds.values():
                edits = [edit for failing in failings for edit in failing.edits]
                if _is_well_formed(applied(source, edits), language):
                    found.append(_Group(input_.path, tuple(failings)))
        found.sort(key=lambda group: not group.sure)
        return found, some_program and not known

    async def green(self, group: _Group, change: Callable[[Failing], Sequence[Edit]]) -> bool:
        """Whether the command passes with a change at all places of a group."""
        edits = [edit for failing in group.failing for edit in change(failing)]
        return await self.passes(await self.command.edited({group.path: edits}))

    async def green_without(self, path: str) -> bool:
        """Whether the command passes with a program that ends where it begins."""
        edit = await asyncio.to_thread(self._end_at_start, path)
        return await self.passes(await self.command.edited({path: [edit]}))

    def _end_at_start(self, path: str) -> Edit:
        """The edit that ends a program before anything else of it runs."""
        source = self.command.read(path) or b""
        language = program_language(path, source)
        at = source.find(b"\n") + 1 if source.startswith(b"#!") else 0
        if language == "php":
            hit = re.search(rb"<\?php\s", source)
            at = hit.end() if hit else at
        if language in IN_MAIN and (main := C_MAIN.search(source.decode("latin-1"))):
            at = main.end()
        return Edit(at, at, f"{KILLS[language]};\n")


IN_MAIN = frozenset({"c", "java", "go", "rust"})
"""Languages whose programs begin in a function `main`."""
WITHOUT_GRAMMAR = frozenset({"php", "ruby", "c"})
"""Languages without a grammar here in which what a program expects is known all the same."""
NO_CALL = frozenset({".", "->", "::", "function", "define"})
"""What stands before a name that is no call of the language's own function."""
ALSO_ENDED = frozenset({"c"})
"""Those of them whose programs often compare in ways of their own, beside `assert`."""


def _failing(source: bytes, language: str) -> list[Failing]:
    """The assertions of a program, then other places where it expects something."""
    found: list[Failing] = []
    if language in WITH_TREES:
        found = failing_in_tree(source, language)
    elif language in ("php", "c"):
        found = failing_by_words(source, language)
    lines = {one.line for one in found if one.kill}
    expectations = other_expectations(source, KILLS[language])
    others = [one for one in expectations if one.line not in lines]
    return [*found, *others]


def _is_well_formed(source: bytes, language: str) -> bool:
    """Whether a changed program is well-formed, as far as that can be seen here."""
    if language not in WITH_TREES:
        return True
    parsed = parse(source, language)
    return parsed is not None and not parsed.root.has_error


def failing_by_words(source: bytes, language: str) -> list[Failing]:
    """The calls of `assert` in "php" or "c", which flags and headers can turn off."""
    read, found = tokens(source, language), []
    joint = " and " if language == "php" else ", "
    for at, (one, opened) in enumerate(pairwise(read)):
        before = read[at - 1] if at else one
        if (one.text, opened.text) != ("assert", "(") or before.text in NO_CALL:
            continue
        if (end := _end_of_first(read, at + 2)) is None:
            continue
        start = before.start if before.text == "\\" else one.start
        edits = (Edit(opened.end, opened.end, "!("), Edit(end, end, ")"))
        kill = (Edit(start, start, f"{KILLS[language]}{joint}"),)
        found.append(Failing("assert", True, one.line, edits, kill))
    return found


def _end_of_first(read: Sequence[Token], at: int) -> int | None:
    """Where the first argument of a call ends; None where the call does not."""
    depth = 0
    for one in read[at:]:
        if depth == 0 and one.text in (",", ")"):
            return one.start
        depth += (one.text in "([{") - (one.text in ")]}")
    return None
