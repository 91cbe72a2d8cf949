"""Changes of a source, and what is made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tree_sitter import Node

from agentrunner.verification.syntax.languages import Parsed


@dataclass(frozen=True, order=True)
class Edit:
    """Bytes `start` to `end` become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Canary:
    """A source with a test that has to fail."""

    source: bytes
    name: str
    """Of the test, as it stands in the file: its parts, joined as its language does."""
    kind: str
    """"end", "literal", "outcome", "assert", "equality" or "exception"."""
    description: str
    """For messages: what was changed, with the line."""
    line: int
    """Counted from 1."""
    edits: tuple[Edit, ...] = ()


def applied(source: bytes, edits: Iterable[Edit]) -> bytes:
    """The source after all edits; of two that overlap the later one is left out."""
    done, at, parts = 0, 0, []
    for edit in sorted(edits):
        if edit.start < at:
            continue
        parts += [source[done : edit.start], edit.text.encode()]
        done = edit.end
        at = max(at, edit.end)
    return b"".join([*parts, source[done:]])


def combined(source: bytes, canaries: Iterable[Canary]) -> bytes:
    """One source with all of several canaries that were made of it."""
    return applied(source, (edit for canary in canaries for edit in canary.edits))


def replaced(node: Node, text: str) -> Edit:
    """The edit that puts a text in the place of a node."""
    return Edit(node.start_byte, node.end_byte, text)


def line_of(node: Node) -> int:
    """The line that a node begins on, counted from 1."""
    return node.start_point[0] + 1


def newline(source: bytes) -> str:
    """How the lines of a source end."""
    return "\r\n" if b"\r\n" in source[:10_000] else "\n"


def indent_of(parsed: Parsed, node: Node) -> str | None:
    """The white space before a node on its line; None where something else stands there."""
    before = parsed.source[: node.start_byte].rpartition(b"\n")[2].decode("utf-8", "replace")
    before = before.lstrip("\ufeff")
    return before if re.fullmatch(r"[ \t\f]*", before) else None


def line_indent(parsed: Parsed, node: Node) -> str:
    """The white space that the line of a node begins with."""
    before = parsed.source[: node.start_byte].rpartition(b"\n")[2].decode("utf-8", "replace")
    return before[: len(before) - len(before.lstrip(" \t"))]
