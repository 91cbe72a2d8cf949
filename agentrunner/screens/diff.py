"""A unified diff in colours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentrunner.screens.layout import Paint, cell, count, flat
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import cell_width

_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "old mode", "new mode",
          "similarity ", "rename ", "Binary ")  # fmt: skip
"""Beginnings of the lines before a file's first hunk."""


_OBJECTS = lazy_regex(r"^index ([0-9a-f]{8})[0-9a-f]*\.\.([0-9a-f]{8})[0-9a-f]*", re.MULTILINE)
"""Objects by their full ids, which tell people nothing."""


def coloured(text: str, paint: Paint) -> str:
    """Colour added lines green, removed ones red; file headers bold and hunk headers dim.

    A line is judged by its position: within a hunk, `--- x` is a removed line.
    """
    lines = []
    old = new = 0
    for line in text.split("\n"):
        if line.startswith("@@"):
            old, new = _counts(line)
            lines.append(paint.dim(line))
        elif old > 0 or new > 0:
            mark = line[:1]
            old -= mark in (" ", "-", "")
            new -= mark in (" ", "+", "")
            paints = {"+": paint.added, "-": paint.removed}
            lines.append(paints[mark](line) if mark in paints else line)
        else:
            line = with_short_ids(line)
            lines.append(paint.bold(line) if line.startswith(_HEADS) else line)
    return "\n".join(lines)


def with_short_ids(text: str) -> str:
    """Return a unified diff in which objects have the beginnings of their ids."""
    return _OBJECTS.sub(r"index \1..\2", text)


def _counts(head: str) -> tuple[int, int]:
    """Return the numbers of old and new lines in `@@ -1,4 +1,6 @@`; an omitted number is one."""
    found = []
    for word in head.split(" ")[1:3]:
        _, comma, number = word.partition(",")
        found.append(int(number) if comma and number.isdecimal() else 1)
    return (found[0], found[1]) if len(found) == 2 else (0, 0)


def stat_screen(files: Sequence[Mapping[str, Any]], width: int, paint: Paint) -> str:
    """Show each file with its counts as a bar, and the total."""
    if not files:
        return "No file was changed."
    names = max(cell_width(flat(str(one["path"]))) for one in files)
    digits = max(len(str(_count(one))) for one in files)
    names = min(names, width - digits - 16)
    room = width - names - digits - 6
    most = max(_count(one) for one in files) or 1
    lines = []
    for one in files:
        added, removed = int(one["added"] or 0), int(one["removed"] or 0)
        scale = min(1.0, room / most)
        bar = paint.added("+" * _cells(added, scale)) + paint.removed("-" * _cells(removed, scale))
        what = bar if one["added"] is not None else "binary"
        new = {"added": "new ", "deleted": "gone "}.get(str(one["kind"]), "")
        counted = f"{_count(one):>{digits}}"
        lines.append(f" {cell(str(one['path']), names)} | {counted} {new}{what}".rstrip())
    added = sum(int(one["added"] or 0) for one in files)
    removed = sum(int(one["removed"] or 0) for one in files)
    return "\n".join([*lines, f" {count(len(files), 'file')} changed, +{added} -{removed}"])


def _count(one: Mapping[str, Any]) -> int:
    return int(one["added"] or 0) + int(one["removed"] or 0)


def _cells(number: int, scale: float) -> int:
    return max(1, int(number * scale)) if number else 0
