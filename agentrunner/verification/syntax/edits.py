"""Edits of a source, canaries, which are sources with edits, and what a version has anew."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.syntax.languages import Parsed, parse

MOST_LINES = 20_000
"""The most lines of a file for a line-by-line diff."""
Element = TypeVar("Element")


@dataclass(frozen=True, order=True)
class Edit:
    """Replaces the bytes from `start` to `end` by `text`."""

    start: int
    end: int
    text: str


class Canary(Struct, frozen=True):
    """A source with a test that has to fail."""

    source: bytes
    name: str
    """The test's name within the file, its parts joined as its language does."""
    kind: str
    """"end", "literal", "outcome" or "case"."""
    description: str
    """What was changed and on which line, for messages."""
    line: int
    """Counted from 1."""
    edits: tuple[Edit, ...] = ()


def applied(source: bytes, edits: Iterable[Edit]) -> bytes:
    """Return the source after all edits; of two that overlap the later one is left out."""
    done, at, parts = 0, 0, []
    for edit in sorted(edits):
        if edit.start < at:
            continue
        parts += [source[done : edit.start], to_bytes(edit.text)]
        done = edit.end
        at = max(at, edit.end)
    return b"".join([*parts, source[done:]])


def still_parses(before: Parsed, after: bytes) -> bool:
    """Whether a changed source parses as well as it did before."""
    changed = parse(after, before.language)
    return changed is not None and (before.root.has_error or not changed.root.has_error)


def canary_of(
    parsed: Parsed, name: str, kind: str, edits: Sequence[Edit], description: str, line: int
) -> Canary | None:
    """Return the canary that edits make; None if they change nothing, or it cannot be parsed."""
    changed = applied(parsed.source, edits)
    if changed == parsed.source or not still_parses(parsed, changed):
        return None
    return Canary(changed, name, kind, description, line, tuple(edits))


def only_new(
    before: Iterable[Element], after: Iterable[Element], key: Callable[[Element], Hashable]
) -> list[Element]:
    """Return what stands in `after` more often than in `before`, compared by `key`."""
    old = Counter(map(key, before))
    found = []
    for one in after:
        if old[key(one)]:
            old[key(one)] -= 1
        else:
            found.append(one)
    return found


def changed_lines(before: bytes | None, after: bytes) -> set[int]:
    """Return the lines of `after` that are new or differ from `before`, counted from 1."""
    new = after.split(b"\n")
    if before is None:
        return set(range(1, len(new) + 1))
    old = before.split(b"\n")
    if max(len(old), len(new)) > MOST_LINES:
        known = set(old)
        return {index for index, line in enumerate(new, 1) if line not in known}
    found: set[int] = set()
    for kind, _, _, start, end in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if kind in ("insert", "replace"):
            found.update(range(start + 1, end + 1))
    return found


def replaced(node: Node, text: str) -> Edit:
    """Return the edit that replaces a node by a text."""
    return Edit(node.start_byte, node.end_byte, text)


def line_of(node: Node) -> int:
    """Return the line on which a node begins, counted from 1."""
    return node.start_point[0] + 1


def newline(source: bytes) -> str:
    """Return the line ending that a source uses."""
    return "\r\n" if b"\r\n" in source[:10_000] else "\n"


def indent_of(parsed: Parsed, node: Node) -> str | None:
    """Return the white space before a node on its line, None if anything else stands there."""
    before = parsed.source[: node.start_byte].rpartition(b"\n")[2].decode("utf-8", "replace")
    before = before.lstrip("\ufeff")
    return before if re.fullmatch(r"[ \t\f]*", before) else None


def line_indent(parsed: Parsed, node: Node) -> str:
    """Return the white space that the line of a node begins with."""
    before = parsed.source[: node.start_byte].rpartition(b"\n")[2].decode("utf-8", "replace")
    return before[: len(before) - len(before.lstrip(" \t"))]
