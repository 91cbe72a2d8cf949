"""`doctor` and `init`: what was found on this machine, one fact per line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentrunner.screens.layout import (
    LEAST_BESIDE,
    PLAIN,
    WIDTH,
    Paint,
    cell,
    flat,
    hanging,
    hung,
    sentence_lines,
    ways_lines,
    wrap,
)
from agentrunner.text.terminal import cell_width

Mark = Literal["ok", "--", "WARN", "FAIL", ""]
"""`--` is absent but not needed; "" is a neutral fact."""


_NARROW = 60
"""Width in cells below which what is fine has one line."""
_SHORTEST, _LONGEST = 12, 28
"""Limits for the width of the column of names, in cells."""


@dataclass(frozen=True)
class DoctorItem:
    """One fact, and its remedy if it needs one."""

    mark: Mark
    name: str
    text: str
    cure: str = ""


@dataclass
class DoctorReport:
    """All results of `doctor`."""

    head: str
    sections: list[tuple[str, list[DoctorItem]]] = field(default_factory=list)
    verdict: str = ""
    ready: bool = True
    worker: str = ""
    """The default worker."""
    next: str = ""
    """The next command, and what it does."""
    fixes: list[dict[str, object]] = field(default_factory=list)
    """What `--fix` offered: `what`, whether it was `done`, and a sentence `text`."""


def doctor_screen(
    report: DoctorReport, width: int = WIDTH, paint: Paint = PLAIN, columns: int = 0
) -> str:
    """Format the report: sections one below the other, the verdict last.

    `columns` are the terminal's; 0 without one, where no remedy is broken. In a narrow one only
    what needs a person is told in full.
    """
    lines = [*hanging("", report.head, columns), ""]
    for title, findings in report.sections:
        lines.append(paint.bold(flat(title)))
        longest = max((len(finding.name) for finding in findings), default=0)
        column = min(max(longest, _SHORTEST), _LONGEST)
        for finding in findings:
            lines += _finding(finding, column, width, paint, columns)
    after = ways_lines("Next:  ", report.next, columns) if report.next else []
    if width < _NARROW:
        after += sentence_lines("All of it:  agentrunner doctor | less", width)
    return "\n".join([*lines, "", *wrap(report.verdict, width), *after])


def _finding(finding: DoctorItem, column: int, width: int, paint: Paint, columns: int) -> list[str]:
    colour = {"ok": paint.good, "WARN": paint.warn, "FAIL": paint.bad}.get(finding.mark, str)
    lead = f"  {colour(f'{finding.mark:<4}')}  {cell(finding.name, column)}  "
    indent = " " * (column + 10)
    room = width - len(indent)
    brief = width < _NARROW and finding.mark not in ("WARN", "FAIL")
    first, *rest = [cell(finding.text, room).rstrip()] if brief else wrap(finding.text, room)
    lines = [lead + first, *(indent + more for more in rest)]
    if finding.cure:
        beside = not columns or columns - len(indent) >= 2 * LEAST_BESIDE
        lines += ways_lines(f"{indent if beside else ' ' * 8}cure: ", finding.cure, columns)
    return lines


def init_screen(facts: Sequence[tuple[str, str, str]], name: str, width: int = WIDTH) -> str:
    """Format what `init` found (label, value, where) and the next two commands."""
    value_width = min(max((len(value) for _, value, _ in facts), default=0) + 2, 34)
    label_width = max((len(label) for label, _, _ in facts), default=0)
    lines = []
    for label, value, where in facts:
        lead = f"  {cell(label, min(max(label_width, 10), 16))}  "
        if width - cell_width(lead) - value_width - 2 >= LEAST_BESIDE:
            lines += hung(f"{lead}{cell(value, value_width)}  ", where, width)
        else:
            lines += hung(lead, ", ".join(filter(None, (flat(value), flat(where)))), width)
    steps = [
        (f"agentrunner validate {name}", "shows what will be checked"),
        (f"agentrunner run {name}", ""),
    ]
    column = max(len(command) for command, _ in steps)
    lines += ["", *wrap(f"Wrote {name}. Write what you want and how to check it, then:", width)]
    for command, meaning in steps:
        lines += hung(f"  {command:<{column}}  ", meaning, width)
    return "\n".join(lines)
