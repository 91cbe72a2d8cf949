"""The tokens of a source in any of the usual languages, found by patterns. Pure.

A source is read as Latin-1, one character per byte, so that offsets are those of its bytes.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from agentrunner.verification.syntax.edits import only_new

LARGEST = 1_000_000
"""The largest source that is read, in bytes."""
Kind = Literal["name", "number", "string", "regex", "op"]
Value = tuple[Literal["number", "string"], str]
"""What a literal stands for, whatever way it is written."""

_FAMILIES = {
    "python": ".py .pyi",
    "ruby": ".rb .rake",
    "shell": ".sh .bash .bats",
    "perl": ".pl .pm .t",
    "php": ".php",
    "script": ".js .jsx .mjs .cjs .ts .mts .cts .tsx",
    "rust": ".rs",
    "c": ".c .h .cc .cpp .cxx .hpp .hh .hxx .java .kt .scala .cs .swift .dart .m",
    "go": ".go",
    "lua": ".lua",
}
_BY_SUFFIX = {suffix: name for name, all_of in _FAMILIES.items() for suffix in all_of.split()}
_HASH = r"(?:(?<=\s)|(?<=;)|\A)\#[^\n]*"
_SLASH = r"//[^\n]*|/\*.*?\*/"
_COMMENTS = {
    "python": r"\#[^\n]*",
    "ruby": rf"{_HASH}|^=begin\b.*?^=end\b",
    "shell": _HASH,
    "perl": rf"{_HASH}|^=\w.*?^=cut\b",
    "php": rf"{_SLASH}|{_HASH}",
    "lua": r"--\[\[.*?\]\]|--[^\n]*",
}
_DOUBLE = r'"(?:[^"\\\n]|\\.)*"'
_SINGLE = r"'(?:[^'\\\n]|\\.)*'"
_CHARACTER = r"'(?:\\[^\n']{1,10}|[^\\'\x80-\xff\n]|[\x80-\xff]{2,4})'"
_BACK = r"`(?:[^`\\]|\\.)*`"
_STRINGS = {
    "python": r'[rRbBuUfF]{0,2}(?:"""(?:[^\\]|\\.)*?"""|'
    rf"'''(?:[^\\]|\\.)*?'''|{_DOUBLE}|{_SINGLE})",
    "script": rf"{_DOUBLE}|{_SINGLE}|{_BACK}",
    "rust": rf'b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:[^"\\]|\\.)*"|b?{_CHARACTER}',
    "c": rf'@?{_DOUBLE}|"""(?:[^\\]|\\.)*?"""|{_CHARACTER}',
    "go": rf"{_DOUBLE}|`[^`]*`|{_CHARACTER}",
    "shell": r'"(?:[^"\\]|\\.)*"|' + r"\$?'[^']*'",
}
_NUMBER = (
    r"0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+"
    r"|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?"
)
_SUFFIX = r"(?:[uUlLfFdDnm]{1,3}\b|_?[iuf](?:8|16|32|64|128|size)\b)?"
_LETTER, _MORE = r"[A-Za-z_\x80-\xff]", r"[\w\x80-\xff]"
_NAME = rf"[$@]{{0,2}}{_LETTER}{_MORE}*(?:[?!](?![?!=]))?"
_OP = (
    r"===|!==|<=>|\*\*=|==|!=|<>|~=|=~|<=|>=|=>|->|\?\.|::|&&|\|\||\*\*|<<|>>|\+\+|--"
    r"|[+\-*/%|&^]=|."
)
_REGEX = r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*"
_BEFORE_REGEX = frozenset(
    "( , = : [ ! & | ? { } ; && || => == =~ != ~ return when and or not if unless".split()
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b"}


class Token(Struct, frozen=True):
    """A word, a literal or a sign of a source. Comments are none."""

    kind: Kind
    text: str
    start: int
    end: int
    line: int
    """Counted from 1."""


def lexical_family(path: str, source: bytes = b"") -> str | None:
    """Return how a file's tokens look ("python", "c", "shell", …), None if that is not known."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix or not source.startswith(b"#!"):
        return _BY_SUFFIX.get(suffix)
    first = source.split(b"\n", 1)[0].decode("latin-1")
    for word, family in (
        ("python", "python"),
        ("node", "script"),
        ("ruby", "ruby"),
        ("perl", "perl"),
        ("php", "php"),
    ):
        if word in first:
            return family
    return "shell" if re.search(r"sh\b", first) else None


@lru_cache(maxsize=32)
def tokens(source: bytes, family: str) -> tuple[Token, ...]:
    """Return the tokens of a source, none if it is too large."""
    if len(source) > LARGEST:
        return ()
    text = source.decode("latin-1")
    found: list[Token] = []
    line, seen, at = 1, 0, 0
    pattern, regex = _pattern(family), re.compile(_REGEX)
    while at < len(text):
        hit = pattern.match(text, at)
        if hit is None:
            at += 1
            continue
        kind = hit.lastgroup if hit.lastgroup != "hashes" else "string"
        if kind == "op" and hit[0] == "/" and family in ("script", "ruby", "perl"):
            before = found[-1] if found else None
            if before is None or before.text in _BEFORE_REGEX:
                as_regex = regex.match(text, at)
                if as_regex is not None:
                    hit, kind = as_regex, "regex"
        line += text.count("\n", seen, hit.start())
        seen, at = hit.start(), max(hit.end(), at + 1)
        if kind in ("name", "number", "string", "regex", "op"):
            found.append(Token(kind, hit[0], hit.start(), hit.end(), line))  # type: ignore[arg-type]
    return tuple(found)


def comments(source: bytes, family: str) -> list[tuple[int, str]]:
    """Return where each comment of a source begins, in bytes, and its text, one character a byte.

    A source that is larger than `LARGEST` has none.
    """
    if len(source) > LARGEST:
        return []
    text, at = source.decode("latin-1"), 0
    pattern = re.compile(_COMMENTS.get(family, _SLASH), re.DOTALL | re.MULTILINE)
    found: list[tuple[int, str]] = []
    for token in (*tokens(source, family), None):
        end = token.start if token is not None else len(text)
        found += [(at + hit.start(), hit[0]) for hit in pattern.finditer(text[at:end])]
        at = token.end if token is not None else end
    return found


def added_comments(path: str, before: bytes, after: bytes) -> list[tuple[int, str]]:
    """Return the comments that only the new text of a file has, with where they begin.

    None where it is not known how the file's comments look.
    """
    family = lexical_family(path, after)
    if family is None:
        return []
    return only_new(comments(before, family), comments(after, family), lambda one: one[1])


@cache
def _pattern(family: str) -> re.Pattern[str]:
    comments = _COMMENTS.get(family, _SLASH)
    strings = _STRINGS.get(family, rf"{_DOUBLE}|{_SINGLE}")
    return re.compile(
        rf"(?P<space>\s+)|(?P<comment>{comments})|(?P<string>{strings})"
        rf"|(?P<number>(?<![\w\x80-\xff])(?:{_NUMBER}){_SUFFIX})|(?P<name>{_NAME})|(?P<op>{_OP})",
        re.DOTALL | re.MULTILINE,
    )


def value_of(token: Token) -> Value | None:
    """Return what a literal stands for: 100.0 is 100, and 'a' is "a". None for other tokens."""
    if token.kind == "number":
        return number(token.text)
    if token.kind != "string":
        return None
    return "string", content(token.text)


def number(text: str) -> Value | None:
    """Return the value of a number as sources write it, None where it is none."""
    bare = text.replace("_", "")
    if not text.lower().startswith("0x"):
        bare = re.sub(rf"{_SUFFIX}$", "", bare)
    try:
        if re.match(r"0[xXbBoO]", bare):
            return "number", str(int(bare, 0))
        value = float(bare)
    except ValueError:
        return None
    return "number", str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def content(text: str) -> str:
    """Return what stands in a string, with the usual escapes read."""
    hit = re.match(r"[\w$@]{0,2}?(?:r?(\#*)(?=\"))?(\"\"\"|'''|\"|'|`)", text)
    if hit is None:
        return text
    inner = text[hit.end() : len(text) - len(hit[2]) - len(hit[1] or "")]
    inner = re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), inner, flags=re.DOTALL)
    return inner.encode("latin-1", "replace").decode("utf-8", "replace")


def without_comments(path: str, source: bytes) -> bytes:
    """Return a source with blanks in place of its comments; as it is in an unknown language.

    Its lines stay.
    """
    family = lexical_family(path, source)
    code = bytearray(source)
    for start, comment in comments(source, family) if family is not None else []:
        code[start : start + len(comment)] = re.sub(
            rb"[^\n]", b" ", bytes(code[start : start + len(comment)])
        )
    return bytes(code)
