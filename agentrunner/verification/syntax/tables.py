"""Find tables that a program loops over row by row, by patterns, in any language. Pure.

A table is a list of rows that a loop gets: in the program, in a here-document of a shell script, or
in a file of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.word_tests import changed_value

QUOTED = lazy_regex(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
VALUE = lazy_regex(r"""'[^'\\\n]+'|"[^"\\\n]+"|(?<![\w.$@])-?\d+(?:\.\d+)?(?![\w.])""")
WORD = lazy_regex(r"-?\d+|\w+")
NAMED = lazy_regex(r"(?<!\w)(\w++)\s*(?::[^=\n]*|\[\])?=\s*$")
LOOPED = lazy_regex(r"\b(?:in|of|foreach|for)\s*\(?\s*$")
LOOPS = r"\b(?:for|foreach|while|until|each|forEach|each_with_index|map)\b"
DOCUMENT = lazy_regex(r"<<-?[ \t]*(['\"]?)(\w+)\1[^\n]*\n")
YIELD = lazy_regex(r"(?m)^[ \t]*yield[ \t]+(?!from\b)(?P<row>[^\n]+?);?[ \t]*$")
YIELDS = lazy_regex(
    rf"(?m)(?:{YIELD.pattern.removeprefix('(?m)').replace('?P<row>', '?:')}\n?){{2,}}"
)
CLOSES = {"[": "]", "(": ")", "{": "}"}
MOST_ROWS = 200


class Row(Struct, frozen=True):
    """A row, and the same row with another value."""

    start: int
    end: int
    text: str
    changed: str

    @property
    def edit(self) -> Edit:
        """The edit that makes it expect another value in its place."""
        return Edit(self.start, self.end, self.changed)


class Table(Struct, frozen=True):
    """The rows that a loop runs over."""

    line: int
    """The line on which it begins, counted from 1."""
    rows: tuple[Row, ...]

    def first(self, row: Row, *, changed: bool) -> list[Edit]:
        """Return the edits that move a row to the top by swapping it with the first row."""
        top = self.rows[0]
        text = row.changed if changed else row.text
        return [Edit(top.start, top.end, text), Edit(row.start, row.end, top.text)]


def tables_in(source: bytes, language: str, *, alone: bool = False) -> list[Table]:
    """Return the tables that a program loops over; `alone`: all tables of a file of tables."""
    text = source.decode("latin-1")  # one character per byte, so offsets are those of the source
    if language == "sh":
        found = list(_here_documents(text))
    else:
        found = [*_literal_lists(text, alone=alone), *_yielded(text)]
    return [table for table in found if len(table.rows) > 1]


def table_of_lines(source: bytes) -> Table | None:
    """Return a file of lines as a table, None if it has fewer than two rows."""
    text = source.decode("latin-1")
    rows = tuple(_lines(text, 0, len(text)))
    return Table(1, rows) if len(rows) > 1 else None


def _here_documents(text: str) -> Iterator[Table]:
    for hit in DOCUMENT.finditer(text):
        loops = re.search(r"\b(?:done|read)\b", text[text.rfind("\n", 0, hit.start()) + 1 :][:200])
        end = re.compile(rf"^\t*{hit[2]}$", re.MULTILINE).search(text, hit.end())
        if loops and end:
            rows = tuple(_lines(text, hit.end(), end.start()))
            yield Table(text.count("\n", 0, hit.end()) + 1, rows)


def _lines(text: str, start: int, end: int) -> Iterator[Row]:
    """Yield lines that contain a number; the last word of a line is the expected value."""
    at = start
    for line in text[start:end].split("\n")[:MOST_ROWS]:
        values = list(WORD.finditer(line))
        if values and not line.lstrip().startswith("#"):
            last = values[-1]
            numbers = any(one[0].lstrip("-").isdigit() for one in values)
            other = str(int(last[0]) + 1) if last[0].lstrip("-").isdigit() else "agentrunner"
            if numbers:
                yield Row(
                    at, at + len(line), line, f"{line[: last.start()]}{other}{line[last.end() :]}"
                )
        at += len(line) + 1


def _literal_lists(text: str, *, alone: bool) -> Iterator[Table]:
    blank = QUOTED.sub(lambda one: f'"{"_" * (len(one[0]) - 2)}"', text)
    at = 0
    for hit in re.finditer(r"[\[({]", blank):
        before = blank[max(0, hit.start() - 80) : hit.start()]
        named = NAMED.search(before.rpartition("\n")[2])
        if hit.start() < at or not (named or LOOPED.search(before)):
            continue
        if named and not alone and not _is_looped(named[1], blank):
            continue
        end = _closing(blank, hit.end())
        if end is None:
            continue
        rows = tuple(_rows(text, blank, list(_elements(blank, hit.end(), end))))
        if rows:
            at = end
            yield Table(text.count("\n", 0, hit.start()) + 1, rows)


def _yielded(text: str) -> Iterator[Table]:
    """Yield the rows that a generator yields one by one, one per line."""
    blank = QUOTED.sub(lambda one: f'"{"_" * (len(one[0]) - 2)}"', text)
    for hit in YIELDS.finditer(blank):
        given = YIELD.finditer(blank, hit.start(), hit.end())
        rows = tuple(_rows(text, blank, [one.span("row") for one in given]))
        if rows:
            yield Table(text.count("\n", 0, hit.start()) + 1, rows)


def _is_looped(name: str, text: str) -> bool:
    word = rf"(?<!\w){re.escape(name)}(?!\w)"
    return bool(re.search(rf"(?m){LOOPS}[^\n]*{word}|{word}[^\n]*{LOOPS}", text))


def _closing(blank: str, start: int) -> int | None:
    """Return the offset at which the bracket before `start` closes, None if it does not."""
    stack = [CLOSES[blank[start - 1]]]
    for at in range(start, min(len(blank), start + 100_000)):
        if blank[at] in CLOSES:
            stack.append(CLOSES[blank[at]])
        elif blank[at] in CLOSES.values():
            if stack.pop() != blank[at]:
                return None
            if not stack:
                return at
    return None


def _rows(text: str, blank: str, places: Sequence[tuple[int, int]]) -> Iterator[Row]:
    """Yield the elements of a list, if each contains others and none contains a call."""
    spans = [_trimmed(blank, *span) for span in places]
    spans = [(left, right) for left, right in spans if right > left][:MOST_ROWS]
    if not all(
        re.search(r"[\[({]", blank[left:right]) and not re.search(r"[\w\])]\(", blank[left:right])
        for left, right in spans
    ):
        return
    for left, right in spans:
        values = list(VALUE.finditer(text, left, right))
        if values:
            last = values[-1]
            changed = text[left : last.start()] + changed_value(last[0]) + text[last.end() : right]
            yield Row(left, right, text[left:right], changed)


def _elements(blank: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    depth, left = 0, start
    for at in range(start, end):
        if blank[at] in CLOSES:
            depth += 1
        elif blank[at] in CLOSES.values():
            depth -= 1
        elif blank[at] == "," and depth == 0:
            yield left, at
            left = at + 1
    yield left, end


def _trimmed(text: str, left: int, right: int) -> tuple[int, int]:
    part = text[left:right]
    left += len(part) - len(part.lstrip())
    return left, left + len(part.strip())
