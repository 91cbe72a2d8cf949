"""Makes the assertions of programs without test names fail, each kind by itself.

A program that is made to end with a failure says nothing about its assertions: a product may have
turned these off, or what follows an exception. Here they fail in the way in which they would really
fail, and the command has to be red.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from time import monotonic

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.canaries.canary_trees import CommandOnTrees
from agentrunner.verification.canaries.script_canary import C_MAIN, program_is_known
from agentrunner.verification.canaries.table_rows import Passes
from agentrunner.verification.inputs.inline_programs import for_people
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.failing_assertions import Failing, failing_in_tree
from agentrunner.verification.syntax.languages import KILLS, WITH_TREES, parse, program_language
from agentrunner.verification.syntax.stated_literals import other_expectations
from agentrunner.verification.syntax.word_tests import end_of_arguments

PHP_KILL, RUBY_KILL, C_KILL = KILLS["php"], KILLS["ruby"], KILLS["c"]
_PHP_BLANK = lazy_regex(
    rb"""/\*.*?\*/|(?:\#(?!\[)|//)[^\n]*?(?=\?>|\n|\Z)|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|"""
    rb"""<<<\s*['"]?(\w+)['"]?\n.*?\n\s*\1\b|\?>.*?(?:<\?php|<\?=|\Z)""",
    re.DOTALL,
)
_RUBY_BLANK = lazy_regex(
    rb"""^=begin\b.*?^=end\b|^__END__$.*|\#[^\n]*|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|"""
    rb""""(?:\\.|\#\{[^{}]*\}|[^"\\])*"|<<[~-]?['"]?([A-Z]\w*)['"]?[^\n]*\n.*?^\s*\1$|"""
    rb"""(?<=[(,=~!|&{;])[ ]?/(?:\\.|[^/\\\n])+/|%[wWiIqQ]?(?:\[[^\]]*\]|\([^)]*\)|\{[^}]*\})|"""
    rb"""\?\w\b""",
    re.DOTALL | re.MULTILINE,
)
_C_BLANK = lazy_regex(
    rb"""/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*\"""", re.DOTALL
)
_PHP_ENDS = lazy_regex(r"\b(throw)\b|\b(exit|die)\s*\(\s*[1-9]")
_PHP_ELSE = lazy_regex(r"(\bor\b|\|\|)(\s*)(?=(?:exit|die)\s*\(\s*[1-9]|throw\b)")
_RUBY_MODIFIED = lazy_regex(
    r"^[ \t]*(raise|fail|abort|exit!?)\b[^;{}\n]*?\s(unless|if)[ (](.*)$", re.MULTILINE
)
_RUBY_ENDS = lazy_regex(r"\b(raise|fail|abort)\b|\b(exit)!?[ (]\s*(?:[1-9]|false)")
_RUBY_BLOCK = lazy_regex(r"^([ \t]*)(if|unless)[ ](.+?)(?:[ ]then)?[ \t]*$", re.MULTILINE)
_RUBY_ELSE = lazy_regex(r"[ ](or|\|\|)[ ](?=(?:raise|fail|abort|exit!?)\b)")
_COMPARED = lazy_regex(r"(?<![=!<>])(===|!==|==|!=)(?![=>~])")
_INVERSE = {"===": "!==", "!==": "===", "==": "!=", "!=": "=="}
_ZERO = lazy_regex(r"\bexit!?[ (]\s*(0|true)\b")

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
"""Languages without a grammar here whose assertions are known all the same."""
ALSO_ENDED = frozenset({"c"})
"""Those of them whose programs often compare in ways of their own, beside `assert`."""


def _failing(source: bytes, language: str) -> list[Failing]:
    """The assertions of a program, then other places where it expects something."""
    found: list[Failing] = []
    if language in WITH_TREES:
        found = failing_in_tree(source, language)
    elif language in WITHOUT_GRAMMAR:
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
    """The assertions of a program in "php", "ruby" or "c".

    Where none is known: inverted comparisons in PHP and Ruby, [] in C.

    There is no grammar for these languages here. Comments and strings are blanked first. A change
    is only made where the text stays well-formed whatever surrounds it, since a program that cannot
    be parsed is red for another reason.
    """
    blank, find = _LANGUAGES[language]
    # One character per byte: a position in the text is the same position in the source.
    text = blank.sub(_blank_out, source).decode("latin-1")
    found = sorted(find(text), key=lambda one: one.line)
    return found if found or language == "c" else list(_inverted_comparisons(text, language))


def _blank_out(hit: re.Match[bytes]) -> bytes:
    inner = re.sub(rb"[^\n]", b" ", hit[0])
    return b"_" + inner[1:-1] + b"_" if hit[0][:1] in b"'\"" and len(hit[0]) > 1 else inner


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _inserted(at: int, text: str) -> Edit:
    return Edit(at, at, text)


def _negated(start: int, end: int) -> tuple[Edit, ...]:
    return (_inserted(start, "!("), _inserted(end, ")"))


def _alternatives(text: str, pattern: re.Pattern[str], kind: str, kill: str) -> Iterator[Failing]:
    """`total() === 15 or exit(1)`, by a pattern whose first group is the `or`."""
    for hit in pattern.finditer(text):
        edit = Edit(*hit.span(1), "and" if hit[1] == "or" else "&&")
        killed = Edit(*hit.span(1), f"; {kill};")
        yield Failing(kind, True, _line(text, hit.start(1)), (edit,), (killed,))


# PHP ----------------------------------------------------------------------------------------------


def _php(text: str) -> Iterator[Failing]:
    edits: tuple[Edit, ...]
    kill: tuple[Edit, ...]
    for hit in re.finditer(r"(?<![\w>:$\\])\\?assert\s*\(", text):
        first, closes = end_of_arguments(text, hit.end()), end_of_arguments(text, hit.end(), 0)
        if closes < len(text) and not re.search(r"\bfunction\s+$", text[: hit.start()][-20:]):
            edits = _negated(hit.end(), first)
            kill = (_inserted(hit.start(), f"{PHP_KILL} and "),)
            yield Failing("assert", True, _line(text, hit.start()), edits, kill)
    for hit in re.finditer(r"(?<![\w$>:])(?:else)?if\s*\(", text):
        end = end_of_arguments(text, hit.end(), 0)
        ends = _PHP_ENDS.search(_php_branch(text, end + 1))
        if ends is None:
            continue
        condition = text[hit.end() : end]
        edits = _negated(hit.end(), end)
        kill = (_inserted(hit.end(), f"{PHP_KILL} && ("), _inserted(end, ")"))
        sure = bool(re.search(r"!==?|^\s*!", condition)) and not re.search(r"\+\+|--", condition)
        kind = f"if … {ends[1] or ends[2]}"
        yield Failing(kind, sure, _line(text, hit.start()), edits, kill)
    yield from _alternatives(text, _PHP_ELSE, "or exit", PHP_KILL)
    yield from _exits(text, PHP_KILL)


def _php_branch(text: str, at: int) -> str:
    """The statement or block after a condition."""
    rest = text[at:]
    if rest.lstrip().startswith("{"):
        start = at + rest.index("{") + 1
        end = end_of_arguments(text, start, 0)
        return text[start:end] if end < len(text) else ""
    return rest[: rest.find(";") + 1]


def _exits(text: str, kill: str) -> Iterator[Failing]:
    """`exit(total() === 15 ? 0 : 1)`, and Ruby's `exit(total == 15)`."""
    for hit in re.finditer(r"^[ \t]*exit!?\s*\(", text, re.MULTILINE):
        end = end_of_arguments(text, hit.end(), 0)
        if end < len(text):
            edits = tuple(
                Edit(hit.end() + one.start(), hit.end() + one.end(), _INVERSE[one[0]])
                for one in _COMPARED.finditer(text[hit.end() : end])
            )
            if edits:
                at = _line(text, hit.end())
                yield Failing("exit", True, at, edits, (_inserted(hit.start(), f"{kill}; "),))


# Ruby ---------------------------------------------------------------------------------------------


def _ruby(text: str) -> Iterator[Failing]:
    edits: tuple[Edit, ...]
    kill: tuple[Edit, ...]
    for hit in _RUBY_MODIFIED.finditer(text):
        if _ZERO.search(hit[0]):
            continue
        other = "if" if hit[2] == "unless" else "unless"
        sure = hit[2] == "unless" or bool(re.search(r"!=|^\s*(!|not\b)", hit[3]))
        edits = (Edit(hit.start(2), hit.end(2), other),)
        kill = (_inserted(hit.start(1), f"{RUBY_KILL}; "),)
        yield Failing(hit[1], sure, _line(text, hit.start(1)), edits, kill)
    for hit in _RUBY_BLOCK.finditer(text):
        then = re.match(rf"\n((?:(?:{hit[1]}[ \t]+[^\n]*)?\n)*)", text[hit.end() :])
        ends = _RUBY_ENDS.search(then[1]) if then else None
        condition = hit[3]
        if ends is None or _is_unfinished(condition):
            continue
        edits = _negated(*hit.span(3))
        sure = hit[2] == "unless" or bool(re.search(r"!=|^\s*(!|not\b)", condition))
        kill = (_inserted(hit.start(2), f"{RUBY_KILL}; "),)
        kind = f"if … {ends[1] or ends[2]}"
        yield Failing(kind, sure, _line(text, hit.start(2)), edits, kill)
    yield from _alternatives(text, _RUBY_ELSE, "or raise", RUBY_KILL)
    yield from _exits(text, RUBY_KILL)


def _is_unfinished(condition: str) -> bool:
    """Whether a condition continues in the next line, or is more than one condition."""
    if re.search(r"(&&|\|\||\band|\bor|\bnot|[,\\+*/.=<>!-])\s*$|;|\bdo\b", condition):
        return True
    return any(condition.count(one) != condition.count(other) for one, other in ("()", "[]", "{}"))


# C ------------------------------------------------------------------------------------------------


def _c(text: str) -> Iterator[Failing]:
    """Calls of the standard `assert`, which flags and headers can turn off."""
    if not re.search(r"^[ \t]*#[ \t]*include[ \t]*<(?:assert\.h|cassert)>", text, re.MULTILINE):
        return
    for hit in re.finditer(r"(?<![\w.>#])assert\s*\(", text):
        end = end_of_arguments(text, hit.end(), 0)
        if end < len(text):
            edits = _negated(hit.end(), end)
            kill = (_inserted(hit.start(), f"{C_KILL}, "),)
            yield Failing("assert", True, _line(text, hit.start()), edits, kill)


def _inverted_comparisons(text: str, language: str) -> Iterator[Failing]:
    """Every comparison inverted, for a program that has no known assertion."""
    for hit in _COMPARED.finditer(text):
        if language == "ruby" and len(hit[0]) == 3:
            continue
        edit = Edit(hit.start(), hit.end(), _INVERSE[hit[0]])
        yield Failing("comparison", False, _line(text, hit.start()), (edit,), ())


_LANGUAGES: dict[str, tuple[re.Pattern[bytes], Callable[[str], Iterator[Failing]]]] = {
    "php": (_PHP_BLANK, _php),
    "ruby": (_RUBY_BLANK, _ruby),
    "c": (_C_BLANK, _c),
}
