"""Split a shell text into simple commands: who runs, where, and where the output goes. Pure.

It covers common scripts and is not a full shell: plain variables, `for` over a list, `cd`, pipes,
redirections, groups and command substitutions are followed, everything else is skipped. It never
raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from msgspec import Struct, field

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.tree import join

COMPARES = frozenset("diff cmp comm colordiff sdiff".split())
"""For these, the other file that they get decides."""
LOOKS = frozenset("grep egrep fgrep rg test [ [[ jq wc ls stat cat head tail file md5sum".split())
ALSO_LOOK = frozenset(
    """! : cd echo printf true false exit find xargs cut awk git od xxd hexdump strings
    basename dirname sha256sum sha1sum cksum paste nl seq""".split()
)
"""Programs that combine or pass on what others look at, and shell words between them."""

OPERATOR = lazy_regex(r"&&|\|\||\|&|;;|[;|&()\n]")
REDIRECT = lazy_regex(r"(\d*|&)(<<<|<<-?|>>|>\||>&|<&|<>|>|<)")
VARIABLE = lazy_regex(r"\$(?:\{(\w+)([:#%/^,-][^}]*)?\}|(\w+|[@*#?$!]))")
MARK = lazy_regex(r"\0([@*\w]+)([^\0]*)\0")
"""Stands in a word for a variable with several values."""
ASSIGNMENT = lazy_regex(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
OPENING = frozenset({"if", "then", "elif", "else", "do", "while", "until", "!", "{", "time"})
CLOSING = frozenset({"done", "fi", "esac", "}"})
PASSES_ON = frozenset("tee cat head tail sed tr sort less column uniq wc ts".split())
"""Programs that decide nothing about their input: the nearest other one before them does."""
MOST_STEPS = 2_000
MOST_VALUES = 200

Expand = Callable[[str, str], list[str]]


@dataclass(frozen=True)
class Step:
    """One simple command."""

    words: tuple[str, ...]
    folder: str
    feeds: bool = False
    """Its output is what something else decides about: a comparison, a variable, a file."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    into: str = ""
    """The program that gets its output through a pipe."""
    fed: bool = False
    """It gets through a pipe the output of a program that does more than look at files."""
    globs: tuple[str, ...] = ()
    """Its words with the glob in place of what a loop over a glob chose; () without such a loop."""

    @property
    def program(self) -> str:
        """The name of the program that it runs."""
        return self.words[0].rpartition("/")[2]


class _Reader(Struct):
    text: str
    folder: str
    expand: Expand | None
    variables: dict[str, list[str]]
    script_folder: str
    looped: dict[str, str] = field(default_factory=dict)
    """By variable of a loop over a glob: the glob as written."""
    used: set[str] = field(default_factory=set)
    """Those of these variables that the words read since the last command use."""
    steps: list[Step] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)

    def tokens(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of kind (word, op, redirect, raw) and text."""
        at = 0
        while at < len(self.text):
            text = self.text  # shorter if a here-document was skipped
            char = text[at]
            if char in " \t\r":
                at += 1
            elif text.startswith("\\\n", at):
                at += 2
            elif char == "#":
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
            elif (found := REDIRECT.match(text, at)) and (found[1] in ("", "&", "1", "2", "0")):
                at = found.end()
                if found[2].startswith("<<") and found[2] != "<<<":
                    at = self._past_here_document(at)
                else:
                    yield "redirect", found[1] + found[2]
            elif found := OPERATOR.match(text, at):
                at = found.end()
                yield "op", found[0]
            else:
                word, at, quoted = self._word(at)
                yield "raw" if quoted else "word", word

    def _past_here_document(self, at: int) -> int:
        found = re.compile(r"\s*(['\"]?)(\w+)\1").match(self.text, at)
        if not found:
            return at
        end = re.compile(rf"^\s*{found[2]}\s*$", re.MULTILINE).search(self.text, found.end())
        line = self.text.find("\n", found.end())
        if end is None or line < 0 or end.start() < line:
            return found.end()
        # The rest of the line still belongs to the command.
        rest = self.text[found.end() : line]
        self.text = self.text[: found.end()] + rest + "\n" + self.text[end.end() :]
        return found.end()

    def _word(self, at: int) -> tuple[str, int, bool]:
        """Return a word, the offset after it, and whether it is quoted: no glob, not split.

        A word of which only a part is in quotes is a glob where another part is: `"$here"/*.sh`.
        """
        text, size, out, quoted, wild = self.text, len(self.text), [], False, False
        start = at
        while at < size:
            char = text[at]
            if char == "'":
                end = text.find("'", at + 1)
                end = size if end < 0 else end
                out.append(text[at + 1 : end])
                at, quoted = end + 1, True
            elif char == '"':
                inner, at = self._double(at + 1)
                out.append(inner)
                quoted = True
            elif char == "\\" and at + 1 < size:
                out.append("" if text[at + 1] == "\n" else text[at + 1])
                at += 2
            elif char == "`" or text.startswith("$(", at):
                value, at = self._substitution(at)
                out.append(value)
            elif char == "$" and (found := VARIABLE.match(text, at)):
                out.append(self._value(found))
                at = found.end()
            elif char in " \t\r\n;|&()<>":
                break
            else:
                wild = wild or char in "*?"
                out.append(char)
                at += 1
        if at == start:
            at += 1
        return "".join(out), at, quoted and not wild

    def _double(self, at: int) -> tuple[str, int]:
        text, size, out = self.text, len(self.text), []
        while at < size and text[at] != '"':
            if text[at] == "\\" and at + 1 < size:
                out.append(text[at + 1] if text[at + 1] in '"\\$`' else text[at : at + 2])
                at += 2
            elif text[at] == "`" or text.startswith("$(", at):
                value, at = self._substitution(at)
                out.append(value)
            elif text[at] == "$" and (found := VARIABLE.match(text, at)):
                out.append(self._value(found))
                at = found.end()
            else:
                out.append(text[at])
                at += 1
        return "".join(out), at + 1

    def _value(self, found: re.Match[str]) -> str:
        name, change = found[1] or found[3], found[2] or ""
        values = self.variables.get(name)
        if name in self.looped:
            self.used.add(name)
        if values is None:
            return {"PWD": "."}.get(name, found[0])
        return _cut(values[0], change) if len(values) == 1 else f"\0{name}{change}\0"

    def _substitution(self, at: int) -> tuple[str, int]:
        """Return the value of a command substitution and the offset after it.

        The value is known only if the substitution just says where a script is.
        """
        text = self.text
        if text[at] == "`":
            end = text.find("`", at + 1)
            end = len(text) if end < 0 else end
            inner, at = text[at + 1 : end], end + 1
        else:
            inner, at = _balanced(text, at + 2)
        if "dirname" in inner:
            up = ".." if re.search(r"/\.\.|\.\./?['\"]?\s*(&&|\))", inner) else ""
            return join(self.script_folder, up) or ".", at
        if re.search(r"\bpwd\b|show-toplevel", inner):
            return ".", at
        self.nested.append(inner)
        return "\1", at


SHELL = lazy_regex(r"\s*(?:ba|da|z|k)?sh\s+(?:-\w+\s+)*-\w*c\s+'([^']*)'\s*$")
"""A shell that gets its text in plain quotes."""
BEFORE = lazy_regex(r"\s*(?:(?:!|if|elif|while|until|then|do|else|time|\{|\w+=[^\s$(]*)\s+)*")
"""What can precede the program of a simple command."""
READERS = LOOKS | ALSO_LOOK | PASSES_ON | COMPARES | {"git", "cd", "read", "sed", "awk", "jq"}
Span = tuple[int, int]
MOST = 12


def _cut(value: str, change: str) -> str:
    """Apply `${x%.in}` or `${x##*/}`, the two ways in which scripts cut paths."""
    cut = change.lstrip("%#")
    if change.startswith("#") and cut == "*/":
        return value.rpartition("/")[2]
    if change.startswith("%") and cut and "*" not in cut:
        return value.removesuffix(cut)
    return value


def _balanced(text: str, at: int) -> tuple[str, int]:
    start, depth, quote = at, 1, ""
    while at < len(text):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char == "\\":
            at += 1
        elif char in "'\"":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return text[start:at], at + 1
        at += 1
    return text[start:], len(text)


def steps_of(
    text: str,
    folder: str = "",
    *,
    expand: Expand | None = None,
    script_folder: str = "",
    arguments: tuple[str, ...] = (),
    depth: int = 0,
) -> list[Step]:
    """Return the simple commands of a shell text in order, followed by those in substitutions."""
    variables = {str(index): [value] for index, value in enumerate(arguments, 1)}
    if arguments:
        variables["@"] = variables["*"] = list(arguments)
    reader = _Reader(text, folder, expand, variables, script_folder)
    walk = _Walk(reader)
    for kind, token in reader.tokens():
        walk.take(kind, token)
        if len(walk.steps) > MOST_STEPS:
            break
    walk.end()
    steps = walk.finished()
    if depth < 3:
        for inner in reader.nested[:100]:
            nested = steps_of(
                inner, folder, expand=expand, script_folder=script_folder, depth=depth + 1
            )
            steps += [replace(step, feeds=True) for step in nested]
    return steps


class _Part(Struct):
    step: Step
    pipe: int
    """Steps of the same pipeline have the same number."""
    turn: int = 0
    """The iteration of a loop."""


class _Walk:
    """Assembles tokens into steps."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.folder = reader.folder
        self.steps: list[_Part] = []
        self.words: list[str] = []
        self.glob = ""
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.redirect = ""
        self.pipe = 0
        self.groups: list[tuple[int, str]] = []
        self.closed: int | None = None

    def take(self, kind: str, token: str) -> None:
        """Process one more token."""
        if kind == "redirect":
            self.redirect = token
        elif self.redirect and kind != "op":
            self._redirected(token)
        elif kind == "op":
            self.redirect = ""
            self._operator(token)
        elif kind == "word" and not self.words and token in OPENING:
            if token == "{":
                self.groups.append((len(self.steps), self.folder))
        elif kind == "word" and not self.words and token in CLOSING:
            self.closed = self.groups.pop()[0] if token == "}" and self.groups else None
        else:
            self.words += self._words(token, quoted=kind == "raw")

    def _words(self, token: str, *, quoted: bool) -> list[str]:
        several = MARK.fullmatch(token)
        if several and not quoted and self.words:
            return [_cut(one, several[2]) for one in self.reader.variables[several[1]]]
        plain = not quoted and self.words and not token.startswith("-")
        if plain and self.reader.expand and ("*" in token or "?" in token):
            found = self.reader.expand(self.folder, token)
            self.glob = token
            if found and found != [join(self.folder, token)]:
                prefix = f"{self.folder}/" if self.folder else ""
                return [path.removeprefix(prefix) for path in found]
        return [token]

    def _redirected(self, token: str) -> None:
        if "<" in self.redirect and self.redirect != "<<<":
            self.reads.append(join(self.folder, token))
        elif ">" in self.redirect and not (
            self.redirect.startswith("2") or token == "/dev/null" or token.isdigit()
        ):
            self.writes.append(join(self.folder, token))
        self.redirect = ""

    def _operator(self, token: str) -> None:
        self.end()
        if token == "(":
            self.groups.append((len(self.steps), self.folder))
            self.closed = None
        elif token == ")":
            if self.groups:
                self.closed, self.folder = self.groups.pop()
        elif token in ("|", "|&"):
            if self.closed is not None:
                for part in self.steps[self.closed :]:
                    part.pipe = self.pipe
            self.closed = None
            return
        else:
            self.closed = None
        if token != ")":
            self.pipe += 1

    def end(self) -> None:
        """Complete the current simple command."""
        words, self.words = self.words, []
        reads, self.reads = tuple(self.reads), []
        writes, self.writes = tuple(self.writes), []
        used, glob = sorted(self.reader.used), self.glob
        self.reader.used, self.glob = set(), ""
        env: list[tuple[str, str]] = []
        while words and (found := ASSIGNMENT.fullmatch(words[0])):
            env.append((found[1], found[2]))
            words.pop(0)
        if words[:1] in (["export"], ["local"], ["readonly"], ["declare"]):
            for word in words[1:]:
                if found := ASSIGNMENT.fullmatch(word):
                    self._assign(found[1], found[2])
            return
        if not words:
            for name, value in env:
                self._assign(name, value)
            if reads:  # `done < cases.txt`: a loop reads it
                self._add(["read"], reads, (), ())
            if writes and self.closed is not None:
                for part in self.steps[self.closed :]:
                    part.step = replace(part.step, writes=writes)
            return
        if words[0] == "for" and len(words) > 2 and words[2] == "in":
            self.reader.variables[words[1]] = words[3 : 3 + MOST_VALUES] or [""]
            self.reader.looped.pop(words[1], None)
            if glob:
                self.reader.looped[words[1]] = glob
        elif words[0] in ("cd", "pushd"):
            target = next((word for word in words[1:] if not word.startswith("-")), "")
            known = not re.search(r"[$\0\1]", target)  # elsewhere it goes to a scratch folder
            self.folder = join(self.folder, target) if known else self.folder
        else:
            self._add(words, reads, writes, tuple(env), used[0] if used else "")

    def _assign(self, name: str, value: str) -> None:
        if "\0" not in value and "\1" not in value:
            self.reader.variables[name] = value.split() if " " in value else [value]

    def _add(
        self,
        words: list[str],
        reads: tuple[str, ...],
        writes: tuple[str, ...],
        env: tuple[tuple[str, str], ...],
        looped: str = "",
    ) -> None:
        texts = [*words, *reads, *writes]
        names = [found[1] for word in texts for found in MARK.finditer(word)]
        values = self.reader.variables[names[0]] if names else [""]
        for index, value in enumerate(values):

            def plain(word: str, value: str = value) -> str:
                return MARK.sub(lambda found: _cut(value, found[2]), word)

            step = Step(
                tuple(map(plain, words)),
                self.folder,
                reads=tuple(map(plain, reads)),
                writes=tuple(map(plain, writes)),
                env=env,
            )
            if looped:
                step = replace(step, globs=self._with_glob(step.words, looped, index))
            self.steps.append(_Part(step, self.pipe, index))

    def _with_glob(self, words: tuple[str, ...], variable: str, index: int) -> tuple[str, ...]:
        """Return the words with the glob that a loop goes over instead of the loop's value."""
        values, glob = self.reader.variables[variable], self.reader.looped[variable]
        value = values[index if index < len(values) else 0]
        return tuple(word.replace(value, glob) for word in words) if value else words

    def finished(self) -> list[Step]:
        """Return the steps, marking those that only feed a later one of their pipeline."""
        last: dict[tuple[int, int], int] = {}
        used: set[str] = set()
        for index, part in enumerate(self.steps):
            step = part.step
            if step.program not in PASSES_ON:
                last[part.pipe, part.turn] = index
            used.update(step.reads, (join(step.folder, word) for word in step.words))
        for earlier, later in pairwise(self.steps):
            if (earlier.pipe, earlier.turn) == (later.pipe, later.turn):
                earlier.step = replace(earlier.step, into=later.step.program)
                makes = earlier.step.program not in LOOKS | ALSO_LOOK | PASSES_ON
                later.step = replace(later.step, fed=earlier.step.fed or makes)
        return [
            replace(part.step, feeds=True)
            if index < last.get((part.pipe, part.turn), 0) or not used.isdisjoint(part.step.writes)
            else part.step
            for index, part in enumerate(self.steps)
        ]


def piped_commands(shell: str) -> list[Span]:
    """Return the spans of such commands, each including what is piped into it, in order.

    `! report | grep -v EUR`, `test -z "$(report)"` and `diff <(report) <(report --sorted)` pass if
    the report prints nothing at all. It covers common checks and is not a full shell.
    """
    whole = SHELL.match(shell)
    start, end = whole.span(1) if whole else (0, len(shell))
    return sorted(set(_in_commands(shell, start, end, asked=False)))[:MOST]


def _in_commands(text: str, start: int, end: int, *, asked: bool) -> Iterator[Span]:
    """Yield the spans in a command list; `asked`: something reads the list's own output."""
    for stages in _pipelines(text, start, end):
        makers = [
            index
            for index, (left, right) in enumerate(stages[: None if asked else -1])
            if _program(text[left:right]) not in READERS
        ]
        if makers:
            left = stages[0][0]
            left += len(BEFORE.match(text[left:])[0])  # type: ignore[index]
            yield left, stages[makers[-1]][1]
        else:
            for left, right in stages:
                for inner in _substitutions(text, left, right):
                    yield from _in_commands(text, *inner, asked=True)


def _program(command: str) -> str:
    bare = command[len(BEFORE.match(command)[0]) :]  # type: ignore[index]
    word = re.match(r"[^\s;|&()<>\"'$]+", bare)
    return word[0].rpartition("/")[2] if word else "" if bare.strip() else "true"


def _pipelines(text: str, start: int, end: int) -> Iterator[list[Span]]:
    """Yield each pipeline as the spans of its stages."""
    stages: list[Span] = []
    left = at = start
    while at < end:
        char = text[at]
        if char == "\\":
            at += 2
        elif char in "'\"(" or text.startswith("$(", at):
            at = _past(text, at, end)
        elif char == "|" and text[at : at + 2] != "||" and text[at - 1 : at] != ">":
            stages.append((left, at))
            left = at = at + (2 if text[at : at + 2] == "|&" else 1)
        elif char in ";\n" or text[at : at + 2] in ("&&", "||"):
            yield [*stages, _trimmed(text, left, at)]
            stages = []
            left = at = at + (2 if text[at : at + 2] in ("&&", "||") else 1)
        else:
            at += 1
    if text[left:end].strip():
        yield [*stages, _trimmed(text, left, end)]


def _substitutions(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the spans in `$(…)` and `<(…)`, also within double quotes."""
    at = start
    while at < end:
        if text[at] == "\\":
            at += 2
        elif text[at] == "'":
            at = _past(text, at, end)
        elif text[at : at + 2] in ("$(", "<(") and text[at : at + 3] != "$((":
            past = _past(text, at + 1, end)
            yield at + 2, past - 1
            at = past
        else:
            at += 1


def _past(text: str, at: int, end: int) -> int:
    """Return the offset after the quoted or bracketed text that begins here."""
    if text[at] == "$":
        at += 1
    if text[at] == "'":
        found = text.find("'", at + 1, end)
        return end if found < 0 else found + 1
    closing = {'"': '"', "(": ")"}[text[at]]
    at += 1
    while at < end:
        if text[at] == "\\":
            at += 2
        elif text[at] == closing:
            return at + 1
        elif text.startswith("$(", at) or (closing == ")" and text[at] in "'\"("):
            at = _past(text, at, end)
        else:
            at += 1
    return end


def _trimmed(text: str, left: int, right: int) -> Span:
    return left, left + len(text[left:right].rstrip())
