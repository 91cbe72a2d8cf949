"""Functions in languages that are read by patterns: Ruby, PHP, C and Perl. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.tokens import LARGEST, Token, tokens

HEADS = {
    "ruby": rb"^(?P<indent>[ \t]*)def (?:self\.)?(?P<name>\w+[?!]?)"
    rb"(?:\((?P<of>[^()]*(?:\([^()]*\)[^()]*)*)\)|(?P<bare>[ \t]+[^\n;(=]+))?",
    "php": rb"^(?P<indent>[ \t]*+)(?:\w++[ \t]++)*?function (?P<name>\w+)\s*"
    rb"\((?P<of>[^()]*(?:\([^()]*\)[^()]*)*)\)[^{;]*\{",
    "c": rb"^(?P<indent>[ \t]*+)(?:[A-Za-z_][\w:<>]*+[ \t*&]++)*?[A-Za-z_][\w:<>]*+"
    rb"(?:[ \t*&]*+\n|[ \t*&]++)(?P<name>[A-Za-z_]\w*+)[ \t]*"
    rb"\((?P<of>[^(){};]*)\)\s*(?:const\s*)?\{",
    "perl": rb"^(?P<indent>[ \t]*)sub (?P<name>\w+)\s*(?:\((?P<of>[^()]*)\)\s*)?\{",
}
RUBY_END = rb"(?m)^%send\b"
PARAMETERS = {
    "ruby": lazy_regex(rb"[*&]{0,2}(?P<name>[A-Za-z_]\w*)"),
    "php": lazy_regex(rb"[^$]*\$(?P<name>\w+)"),
    "perl": lazy_regex(rb"[^$]*\$(?P<name>\w+)"),
    "c": lazy_regex(rb"[^=]*?(?<!\w)(?P<name>[A-Za-z_]\w*+)\s*(?:\[[^\]]*\]\s*)*(?:=|$)"),
}
OBJECTS = frozenset({"$this", "self", "this"})
NO_FUNCTIONS = frozenset({"if", "while", "for", "switch", "else", "return", "sizeof", "do"})


class TextFunction(Struct, frozen=True, dict=True):
    """A function with its parameters, and its body as text."""

    name: str
    parameters: tuple[str, ...]
    head: bytes
    """What stands before its body, from the beginning of the line on."""
    body: bytes
    start: int
    """Where the body begins, as the offset of a byte."""
    line: int
    """The same, counted from 1."""
    family: str

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens of the body, with their places in the file."""
        return [
            Token(
                one.kind, one.text, one.start + self.start, one.end + self.start,
                one.line + self.line - 1,
            )
            for one in tokens(self.body, self.family)
        ]  # fmt: skip

    @cached_property
    def read(self) -> set[str]:
        """The parameters that it reads. A text may hold one: "#{sign}", "$sign"."""
        words = set(re.findall(r"\w+", " ".join(one.text for one in self.tokens)))
        return words.intersection(self.parameters)

    @property
    def reads_object(self) -> bool:
        return any(one.text in OBJECTS or one.text[:1] == "@" for one in self.tokens)


def text_functions(source: bytes, family: str) -> Iterator[TextFunction]:
    """Yield the functions of a source, in source order; none of a language that is not known."""
    if family not in HEADS or len(source) > LARGEST:
        return
    ends = {} if family == "ruby" else _blocks(source, family)
    for hit in re.finditer(HEADS[family], source, re.MULTILINE):
        name = hit["name"].decode()
        if name in NO_FUNCTIONS:
            continue
        start = hit.end()
        end = _end_in_ruby(source, hit) if family == "ruby" else ends.get(start, len(source))
        handed = hit["of"] if family != "ruby" else hit["of"] or hit["bare"]
        parts = [one.strip() for one in (handed or b"").split(b",")]
        found = [PARAMETERS[family].match(one) for one in parts]
        names = tuple(one["name"].decode() for one in found if one)
        body = source[start:end]
        line = source.count(b"\n", 0, start) + 1
        yield TextFunction(name, names, hit[0], body, start, line, family)


def _end_in_ruby(source: bytes, head: re.Match[bytes]) -> int:
    rest = source[head.end() : head.end() + 200]
    if re.match(rb"[ \t]*=[^=]", rest):  # def name(of) = …
        line = source.find(b"\n", head.end())
        return line if line >= 0 else len(source)
    end = re.compile(RUBY_END % re.escape(head["indent"])).search(source, head.end())
    return end.start() if end else len(source)


def _blocks(source: bytes, family: str) -> dict[int, int]:
    """Where each block ends, by the place behind the bracket that opens it."""
    opened: list[int] = []
    ends: dict[int, int] = {}
    for one in tokens(source, family):
        if one.text == "{":
            opened.append(one.end)
        elif one.text == "}" and opened:
            ends[opened.pop()] = one.start
    return ends
