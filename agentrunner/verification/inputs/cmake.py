"""What CMake lists say about programs and tests; follows variables, loops and functions. Pure.

It covers common lists and is not CMake: if a condition is unknown, both branches are taken. It
never raises.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from msgspec import Struct, field

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.tree import Tree, folder_of, join

COMMENT = lazy_regex(r"#\[\[.*?\]\]|#[^\n]*", re.S)
CALL = lazy_regex(r"\b(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.S)
WORD = lazy_regex(r"\"[^\"]*\"|[^\s\"]+")
VARIABLE = lazy_regex(r"\$\{(\w+)\}")
TARGET_FILE = lazy_regex(r"\$<TARGET_FILE:([^>]+)>")
ENDS = {"foreach": "endforeach", "function": "endfunction", "macro": "endmacro", "if": "endif"}
HERE = ("CMAKE_CURRENT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR")
ROOT = ("CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR")
MOST_CALLS = 10_000
"""The most calls that are read; a larger project is read up to that point."""
DEEPEST = 12
MOST_WORDS = 1_000
"""The most words of a call, and values of a variable."""
LONGEST = 20_000
"""The most characters of one word with its variables expanded."""

_Raw = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Call:
    """One call with its words as CMake would see them."""

    name: str
    """In lower case."""
    words: tuple[str, ...]
    path: str
    """The list file that contains it, or that calls the function containing it."""

    @property
    def folder(self) -> str:
        """The folder that its paths are relative to."""
        return folder_of(self.path)


class _Reader(Struct):
    tree: Tree
    folder: str
    path: str = ""
    variables: dict[str, list[str]] = field(default_factory=dict)
    functions: dict[str, tuple[Sequence[str], Sequence[_Raw]]] = field(default_factory=dict)
    left: int = MOST_CALLS

    def define(self, calls: Sequence[_Raw]) -> None:
        """Record the functions and macros of a list file."""
        for at, (name, words) in enumerate(calls):
            if name in ("function", "macro") and words:
                body = calls[at + 1 : _closing(calls, at)]
                self.functions.setdefault(words[0].lower(), (words[1:], body))

    def run(self, calls: Sequence[_Raw], depth: int = 0) -> Iterator[Call]:
        """Yield the calls in the order in which they are made, without control flow."""
        at = 0
        while at < len(calls) and self.left > 0 and depth < DEEPEST:
            self.left -= 1
            name, raw = calls[at]
            end = _closing(calls, at) if name in ENDS else at
            if name in ("function", "macro"):
                at = end + 1
                continue
            if name == "foreach":
                yield from self._loop(raw, calls[at + 1 : end], depth)
            elif name == "if":
                yield from self._branches(calls[at : end + 1], depth)
            else:
                yield from self._call(name, self.words(raw), depth)
            at = end + 1

    def words(self, raw: Sequence[str]) -> tuple[str, ...]:
        """Return the words with variables expanded; an unquoted list becomes several words."""
        found: list[str] = []
        for word in raw:
            # Only once: values are already expanded, and one that names itself would grow forever.
            text = VARIABLE.sub(lambda hit: self._value(hit[1], hit[0]), word.strip('"'))
            text = TARGET_FILE.sub(r"\1", text[:LONGEST])
            bare = not word.startswith('"')
            found += [one for one in text.split(";") if one] if bare else [text]
            if len(found) > MOST_WORDS:
                break
        return tuple(found[:MOST_WORDS])

    def _value(self, name: str, otherwise: str) -> str:
        if name in HERE:
            return "."
        if name in ROOT:
            return posixpath.relpath(self.folder or ".", folder_of(self.path) or ".")
        # Variables that CMake itself sets are unknown here and left as they are.
        known = self.variables.get(name)
        return ";".join(known) if known is not None else otherwise

    def _call(self, name: str, words: tuple[str, ...], depth: int) -> Iterator[Call]:
        if name == "set" and words:
            values = words[1 : words.index("CACHE")] if "CACHE" in words else words[1:]
            self.variables[words[0]] = [one for one in values if one != "PARENT_SCOPE"]
        elif name == "list" and len(words) > 1 and words[0] in ("APPEND", "PREPEND"):
            self.variables[words[1]] = [*self.variables.get(words[1], []), *words[2:]][:MOST_WORDS]
        elif name == "file" and len(words) > 1 and words[0] in ("GLOB", "GLOB_RECURSE"):
            self.variables[words[1]] = self._globbed(words[2:], deep=words[0] != "GLOB")
        elif name == "cmake_parse_arguments" and len(words) > 3:
            self._parse_arguments(words)
        elif name in self.functions:
            given, body = self.functions[name]
            before = dict(self.variables)
            self.variables |= {
                **{key: [value] for key, value in zip(given, words, strict=False)},
                "ARGN": list(words[len(given) :]),
                "ARGV": list(words),
            }
            yield from self.run(body, depth + 1)
            self.variables = before
        else:
            yield Call(name, words, self.path)

    def _loop(self, raw: Sequence[str], body: Sequence[_Raw], depth: int) -> Iterator[Call]:
        values = list(self.words(raw[1:]))
        if values[:1] == ["IN"]:
            kind, values = values[1:2], values[2:]
            if kind == ["LISTS"]:
                values = [one for name in values for one in self.variables.get(name, [])]
        for value in values if raw and self.left > 0 else ():
            self.variables[raw[0]] = [value]
            yield from self.run(body, depth + 1)

    def _branches(self, calls: Sequence[_Raw], depth: int) -> Iterator[Call]:
        """Follow the branches that may be taken: all that no option of a function rules out."""
        marks, inner = [0], 0
        for at, (name, _) in enumerate(calls):
            inner += (name == "if") - (name == "endif")
            if inner == 1 and name in ("elseif", "else"):
                marks.append(at)
        marks.append(len(calls) - 1)
        for start, end in pairwise(marks):
            words = calls[start][1]
            known = self.variables.get(words[0]) if len(words) == 1 else None
            truth = known[0] if known is not None and known[:1] in (["TRUE"], ["FALSE"]) else ""
            if truth != "FALSE":
                yield from self.run(calls[start + 1 : end], depth + 1)
            if truth == "TRUE":
                break

    def _globbed(self, patterns: Sequence[str], *, deep: bool) -> list[str]:
        place = folder_of(self.path)
        found: list[str] = []
        for pattern in patterns:
            head, _, tail = pattern.rpartition("/")
            glob = join(place, f"{head}/**/{tail}" if deep else pattern)
            found += [posixpath.relpath(path, place or ".") for path in self.tree.matching(glob)]
        return found[:MOST_WORDS]

    def _parse_arguments(self, words: Sequence[str]) -> None:
        """Evaluate `cmake_parse_arguments(PREFIX "OPTIONS" "SINGLE" "SEVERAL" ${ARGN})`."""
        prefix, options, single, several = words[0], *(one.split(";") for one in words[1:4])
        given = self.variables.get("ARGN", [])
        found: dict[str, list[str]] = {name: ["FALSE"] for name in options if name}
        key = "UNPARSED_ARGUMENTS"
        for word in given:
            if word in options:
                found[word], key = ["TRUE"], "UNPARSED_ARGUMENTS"
            elif word in single or word in several:
                found[word] = []
                key = word
            else:
                found.setdefault(key, []).append(word)
                key = "UNPARSED_ARGUMENTS" if key in single else key
        found.setdefault("UNPARSED_ARGUMENTS", [])
        self.variables |= {f"{prefix}_{name}": value for name, value in found.items()}


def calls_of(tree: Tree, folder: str, lists: Sequence[str]) -> list[Call]:
    """Return all calls of a project's lists, in list order; functions are followed across lists."""
    reader = _Reader(tree, folder)
    texts = {path: _raw(tree.text(path) or "") for path in lists}
    for calls in texts.values():
        reader.define(calls)
    found: list[Call] = []
    for path, calls in texts.items():
        reader.path = path
        found += reader.run(calls)
    return found


def _raw(text: str) -> list[_Raw]:
    return [
        (hit[1].lower(), tuple(WORD.findall(hit[2])))
        for hit in CALL.finditer(COMMENT.sub("", text))
    ]


def _closing(calls: Sequence[_Raw], at: int) -> int:
    """Return the index where the block that begins here ends; the last call if nothing ends it."""
    opens, closes = calls[at][0], ENDS[calls[at][0]]
    deep = 0
    for number in range(at, len(calls)):
        deep += (calls[number][0] == opens) - (calls[number][0] == closes)
        if deep == 0:
            return number
    return len(calls) - 1
