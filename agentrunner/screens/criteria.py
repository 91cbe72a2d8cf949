"""A row per criterion: its status, what it rests on, and its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agentrunner.screens.layout import PLAIN, Paint, cell, flat
from agentrunner.text.terminal import cell_width, shorten

if TYPE_CHECKING:  # looking at runs must not load the models
    from agentrunner.results import CriterionResult

ROWS = 9
"""Criteria shown before the rest is summed up, so that the screen stays within 24 lines."""
_NARROW = 60
"""Width in cells below which a criterion takes several lines."""


def open_where_not_shown(
    criteria: Sequence[CriterionResult], completion: str | None, *, proven: bool
) -> list[CriterionResult]:
    """Return the criteria; one that a planner calls passed and code calls not shown is open.

    `completion` is the mode in force; `proven` is whether anything of the run is proven.
    """
    weak = completion == "strict" or (completion == "evidence" and not proven)
    return [
        one.model_copy(update={"status": "unknown"})
        if weak and one.critical and (one.status, one.evidence) == ("passed", "judged")
        else one
        for one in criteria
    ]


def criteria_rows(
    criteria: Sequence[CriterionResult], width: int, paint: Paint = PLAIN, room: int = ROWS
) -> list[str]:
    """Return a row per criterion; if there are too many, the settled ones are summed up."""
    shown = list(criteria)
    if len(shown) > room:
        order = sorted(range(len(criteria)), key=lambda index: _settled_rank(criteria[index]))
        shown = [criteria[index] for index in sorted(order[: room - 1])]
    rows = [_cell_texts(criterion) for criterion in shown]
    left_out = len(criteria) - len(shown)
    more = [f"  and {left_out} more: agentrunner show"] * bool(left_out)
    if width < _NARROW:
        pairs = zip(rows, shown, strict=True)
        return [line for row, one in pairs for line in _stacked(row, one, width, paint)] + more
    id_width = min(max((cell_width(row[0]) for row in rows), default=4), 16)
    rest = width - id_width - 22  # what the other columns and the gaps leave
    details = min(max((cell_width(row[4]) for row in rows), default=0), rest * 2 // 5)
    words = min(max((cell_width(row[3]) for row in rows), default=0), rest - details - 2)
    details = rest - words - 2
    lines = []
    for (name, status, evidence, text, detail), criterion in zip(rows, shown, strict=True):
        colour = _colour(criterion, paint)
        lead = f"  {cell(name, id_width)}  {colour(cell(status, 6))}  {cell(evidence, 8)}  "
        lines.append(f"{lead}{cell(text, words)}  {cell(detail, details)}".rstrip())
    return lines + more


def _stacked(
    row: tuple[str, str, str, str, str], criterion: CriterionResult, width: int, paint: Paint
) -> list[str]:
    """Format a criterion in a narrow window: its texts are below its id and status."""
    name, status, evidence, text, detail = row
    below = [shorten(f"    {words}", width) for words in (text, detail) if words]
    return [f"  {name}  {_colour(criterion, paint)(status)}  {evidence}", *below]


def _settled_rank(criterion: CriterionResult) -> int:
    """Sort key: what needs a look comes first."""
    if criterion.status == "passed":
        return 2 if criterion.evidence in ("checked", "tested", "accepted") else 1
    return 0 if criterion.critical else 1


def _cell_texts(criterion: CriterionResult) -> tuple[str, str, str, str, str]:
    status = "open" if criterion.status == "unknown" else criterion.status
    judged = criterion.grade == "none" and criterion.evidence == "judged"
    grade = "judged" if judged else "-" if criterion.grade == "none" else criterion.grade
    text = ("" if criterion.critical else "(optional) ") + criterion.description
    detail = criterion.detail or _words(criterion)
    return flat(criterion.id), status, grade, flat(text), flat(detail)


def _colour(criterion: CriterionResult, paint: Paint) -> Callable[[str], str]:
    if criterion.status == "failed":
        return paint.bad
    proven = criterion.status == "passed" and criterion.evidence != "judged"
    return paint.good if proven else paint.warn


def _words(criterion: CriterionResult) -> str:
    if criterion.evidence == "judged":
        return "the planner's word"
    return "no evidence" if criterion.status == "unknown" else ""
