"""Whether what the requirements name in code is there, and some test asks it.

That is a function that they name, and what it makes of what it is handed, and a parameter.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct, field

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.file_names import has_word
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.trees_without_work import turns_red
from agentrunner.verification.results.model import Results
from agentrunner.verification.syntax.answers import (
    parameter_names,
    says_yes_or_no,
    texts_within,
)
from agentrunner.verification.syntax.comparisons import BOUND
from agentrunner.verification.syntax.emptied_functions import changed_functions
from agentrunner.verification.syntax.emptied_text_functions import (
    changed_in_text,
    family_of_functions,
    giving_back,
)
from agentrunner.verification.syntax.functions import Function, functions_of
from agentrunner.verification.syntax.languages import language_of, parse, walk
from agentrunner.verification.syntax.stand_ins import (
    find_only_raising,
    find_unwritten,
    new_functions,
    stand_ins,
)
from agentrunner.verification.syntax.text_functions import text_functions
from agentrunner.verification.syntax.tokens import lexical_family, number
from agentrunner.verification.syntax.words import examples, identifiers, signatures
from agentrunner.verification.world import SnapshotTrees

_Read = dict[tuple[str, str], bool]
"""By function and parameter: whether any function of that name reads it."""

NOT_ASKED = "no test asks `{}`, which the requirements name: with an empty body all stay green"
ONE_ANSWER = "`{}`, which the requirements name with what it is handed, {}"
SAME_ANSWER = "every test that asks `{}`, which the requirements name, also passes where it {}"
HANDED_BACK = "gives back what it is handed first, as it is"
NOT_THERE = "`{}`, which the requirements name, does nothing but raise an exception"
UNUSED = "`{}` does not use its new `{}`, which the requirements name"
EXAMPLE = "no test asks that `{}` gives {}, which the requirements state"
DOUBLED = "the tests put a double in place of `{}`, of which nothing was run"
MOST_NAMED = 5
"""So many functions that the requirements name are emptied one by one."""


class NamedWork(Struct, frozen=True):
    """Functions of the work that people name. Methods raise what running in rooms raises."""

    exam: Examination
    target: Target
    whole: Target
    """The target of all tests, any of which may ask a function."""
    asked: str
    """What people ask for."""
    texts: Sequence[bytes]
    """The files of the tests that may ask."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the proof has to know; it grows."""

    async def unasked(
        self,
        now: Results,
        candidates: Sequence[str],
        stood: Sequence[str],
        refused: Mapping[str, str],
        silent: Collection[str] = (),
    ) -> str:
        """Why a function is not there or asked by no test; else "".

        `candidates` are tests of the worker that may show something, `refused` those that do not,
        `silent` those of them that pass where nothing is done: of what says yes or no they ask all
        the same ("not valid") whether it gives back something else.
        Beside tests of others (`stood`) alone, only functions that are new have to be asked.
        """
        exam, world, known = self.exam, self.exam.world, self.exam.asked_functions
        names, added, idle = await asyncio.to_thread(_named_functions, world, self.asked)
        if idle:
            return NOT_THERE.format(idle[0])
        if unused := await asyncio.to_thread(_unused, world, self.asked):
            return UNUSED.format(*unused)
        if candidates and not stood and (example := self._unasked_example()):
            return EXAMPLE.format(*example)
        same = self.whole.id == self.target.id
        elsewhere = _AllTests(exam, self.whole, now if same else None, refused)
        first = [*candidates, *stood]
        unasked, is_asked = "", False
        for name in [*added, *names][:MOST_NAMED]:
            # A text may name what stood before in passing: that one such function is asked is
            # enough, and none has to be where it asks for functions that are new.
            if name not in added and (added or is_asked or not candidates):
                continue
            if (world.new, name) in known:
                is_asked = True
                continue
            tree = await exam.without_work.emptied(name)
            if tree is None:
                continue
            ran = await exam.run(self.target, tree, first)
            red = [one for one in first if turns_red(ran, [one])]
            asking: bool | None = bool(red)
            if not asking:
                asking = await elsewhere.is_red(tree)
            if asking is None:
                continue  # it says nothing
            if not asking and await asyncio.to_thread(self._is_doubled, name):
                self.notes.append(DOUBLED.format(name))
                continue
            if not asking:
                unasked = unasked or NOT_ASKED.format(name)
                if name in added:
                    break
                continue
            if name in added and candidates:
                alike = await self._answers_alike(
                    elsewhere, first, name, several=len(red) > 1, silent=silent
                )
                if alike:
                    return alike
            is_asked = True
            known.add((world.new, name))
        return unasked if added or not is_asked else ""

    def _unasked_example(self) -> tuple[str, str] | None:
        """A call with what it gives, as people state it, of which no test of these files knows.

        One that asks for more or less than a value knows none.
        """
        text = BOUND.sub("", b"\n".join(self.texts).decode("utf-8", "replace"))
        numbers = {number(one) for one in re.findall(r"\d+(?:\.\d+)?", text)} - {None}
        for call, value in examples(self.asked):
            bare = value.strip("\"'")
            known = re.search(rf"(?<![\w.]){re.escape(bare)}(?![\w])", text)
            if not known and number(bare) not in numbers:
                return call, value
        return None

    def _is_doubled(self, name: str) -> bool:
        """Whether tests put a double in place of a function that another one of the work uses.

        A network or a clock is asked that way: what calls it is tested with answers of the test's
        own. Blocks.
        """
        quoted = rf"[\"'`](?:[\w./:]+[./:])?{re.escape(name)}[\"'`]"
        doubled = re.compile(to_bytes(rf"{quoted}|(?<!\w){re.escape(name)}\s*[:=](?!=)"))
        if not any(doubled.search(text) for text in self.texts):
            return False
        for _, language, before, after in self.exam.world.sources():
            functions = changed_functions(before, after, language, inner=True)
            others = (one.body for one in functions if one.last_name != name)
            # In code, not in a text: `return "median"` calls nothing.
            named = (one for body in others for one in walk(body) if "identifier" in one.type)
            if any(one.text == to_bytes(name) for one in named):
                return True
        return False

    async def _answers_alike(
        self,
        elsewhere: _AllTests,
        tests: Sequence[str],
        name: str,
        *,
        several: bool,
        silent: Collection[str],
    ) -> str:
        """Why the tests do not ask what a new function makes of what it is handed; else "".

        One test may ask for one value; where `several` ask the function, they ask for several.
        """
        world = self.exam.world
        for path, language, before, after in await asyncio.to_thread(lambda: [*world.sources()]):
            if silent and says_yes_or_no(after, language, name):
                others = {one: why for one, why in elsewhere.refused.items() if one not in silent}
                elsewhere = replace(elsewhere, refused=others, passed=None)
            for one in stand_ins(before, after, language, name, self.asked):
                if one.own:
                    return ONE_ANSWER.format(name, one.what)
                if one.constant and not several:
                    continue
                tree = await asyncio.to_thread(
                    world.snapshots.with_texts, world.new, {path: one.source}
                )
                if turns_red(await self.exam.run(self.target, tree, tests), tests):
                    continue
                if await elsewhere.is_red(tree) is False:
                    return SAME_ANSWER.format(name, one.what)
        if (found := await asyncio.to_thread(_giving_back, world, name)) is not None:
            tree = await asyncio.to_thread(world.snapshots.with_texts, world.new, dict([found]))
            if (
                not turns_red(await self.exam.run(self.target, tree, tests), tests)
                and await elsewhere.is_red(tree) is False
            ):
                return SAME_ANSWER.format(name, HANDED_BACK)
        return ""


@dataclass
class _AllTests:
    """All tests of a task, for what the tests of one command do not ask."""

    exam: Examination
    target: Target
    now: Results | None
    """Their results on the new tree, where they are known."""
    refused: Mapping[str, str]
    """Tests that show nothing, with the reason."""
    passed: list[str] | None = None

    async def is_red(self, tree: str) -> bool | None:
        """Whether any of them that passes on the new tree, and shows something, does not here.

        None where they do not pass on the new tree either, so that this would say nothing.
        """
        if self.passed is None:
            results = self.now
            if results is None:
                ran = await self.exam.run(self.target, self.exam.world.new)
                results = ran.results
                if results is None and not ran.passed:
                    return None
            names = results.names if results else []
            self.passed = [
                one
                for one in names
                if results and results.passed(one) and not self.refused.get(one)
            ]
        return turns_red(await self.exam.run(self.target, tree), self.passed)


def _named_functions(world: SnapshotTrees, asked: str) -> tuple[list[str], list[str], list[str]]:
    """Functions of the work that a text names in code; those of them that no file had before it,
    and those that only raise."""
    wanted = identifiers(asked)
    found: set[str] = set()
    known: set[str] = set()
    idle: set[str] = set()
    work: set[str] = set()
    for path in world.product if wanted else ():
        language, before, after = language_of(path), world.was(path), world.now(path)
        if before is not None and language is not None:
            known |= new_functions(None, before, language) - find_unwritten(before, language)
        elif before is not None:
            known |= _changed_in(path, None, before)
        if after is None:
            continue
        if language is not None:
            functions = changed_functions(before, after, language, inner=True)
            names = {one.last_name for one in functions}
            raising = find_only_raising(before, after, language, asked)
            idle |= raising
            work |= names - raising
        else:
            names = _changed_in(path, before, after)
        found |= names & wanted
    return sorted(found), sorted(found - known), sorted((idle - work) & wanted)


def _changed_in(path: str, before: bytes | None, after: bytes) -> set[str]:
    """Functions that were added or altered in a language that is read by patterns."""
    family = family_of_functions(path, after)
    return changed_in_text(before, after, family) if family is not None else set()


def _giving_back(world: SnapshotTrees, name: str) -> tuple[str, bytes] | None:
    """A file of such a language in which a changed function gives back what it is handed first."""
    for path in world.product:
        after = world.now(path)
        family = family_of_functions(path, after or b"")
        if after is None or language_of(path) is not None or family is None:
            continue
        made = giving_back(world.was(path), after, family, name)
        if made is not None:
            return path, made
    return None


def _unused(world: SnapshotTrees, asked: str) -> tuple[str, str] | None:
    """A new parameter that a text names with its function, and that the function does not read:
    that function and the parameter.

    Of a function that was there it is enough that both are named in code.
    """
    wanted, named = signatures(asked, bare=True), identifiers(asked)
    for path in world.product if wanted or named else ():
        before, after = world.was(path), world.now(path)
        if after is None:
            continue
        for name, parameter in sorted(unread_parameters(before, after, path)):
            stood = before is not None and has_word(name, before.decode("latin-1"))
            if stood and {name, parameter} <= named:
                return name, parameter
            written = wanted.get(name, "")
            if parameter not in re.findall(r"\w+", written.partition("(")[2]):
                continue
            # A new function may be handed what only its callers need: `handler(event, context)`.
            if stood or has_word(parameter, asked.replace(written, "")):
                return name, parameter
    return None


def unread_parameters(before: bytes | None, after: bytes, path: str) -> set[tuple[str, str]]:
    """Functions, by last name, with parameters that they only now have, and that no function of
    that name reads."""
    language = language_of(path)
    if language is None:
        family = lexical_family(path, after) or ""
        had, has = _in_text(before or b"", family), _in_text(after, family)
    else:
        old = parse(before, language)
        had = _in_tree(functions_of(old)) if old is not None else {}
        has = _in_tree(changed_functions(before, after, language, inner=True))
    return {one for one, is_read in has.items() if not is_read and one not in had}


def _in_tree(functions: Iterable[Function]) -> _Read:
    found: _Read = {}
    for one in functions:
        used = texts_within(one)
        for parameter in parameter_names(one):
            place = one.last_name, parameter
            found[place] = found.get(place, False) or parameter in used
    return found


def _in_text(source: bytes, family: str) -> _Read:
    found: _Read = {}
    for one in text_functions(source, family):
        for parameter in one.parameters:
            place = one.name, parameter
            found[place] = found.get(place, False) or parameter in one.read
    return found
