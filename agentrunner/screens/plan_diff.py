"""A proposed change of a plan, as a diff of its tree.

Titles and all other texts come from a model or a person: they are sanitised, and measured in cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentrunner.plans.diff import FieldChange, diff
from agentrunner.plans.plan import AT_WORK, ROOT, Hint, Plan, PlanTaskStatus
from agentrunner.plans.proposal import Proposal
from agentrunner.plans.store import OpenQuestion
from agentrunner.screens.layout import PLAIN, Paint, count, flat, wrap
from agentrunner.screens.plan_tree import (
    BRANCH,
    GAP,
    LAST,
    LINE,
    TreeRow,
    conflict_lines,
    drawn,
    few,
    named,
    question_lines,
)
from agentrunner.text.terminal import shorten

NEAR = 1
"""Unchanged siblings shown on each side of a change."""
AT_WORK_ANEW = "it is being worked on: that is stopped, and it begins anew"
STAYS = "it is COMPLETE: what it did stays where it is, on the plan's branch"
ANEW = {
    PlanTaskStatus.COMPLETE: "it was COMPLETE, and is worked on again",
    PlanTaskStatus.STOPPED: "it was stopped on the way: that is dropped, and it begins anew",
}
NEW_CRITERIA = 3
"""Most criteria shown of a new task; the rest is counted."""
SHOWN_CHARS = 200
"""Most characters shown of a field's text before and after."""


def proposal_screen(
    proposal: Proposal,
    questions: Sequence[OpenQuestion] = (),
    *,
    width: int,
    paint: Paint = PLAIN,
    chat: bool = False,
) -> str:
    """Show the planner's understanding, the tree's diff, conflicts and questions."""
    lines = wrap(proposal.understanding, width)
    lines += ["", *diff_lines(proposal.before, proposal.after, width=width, paint=paint)]
    lines += conflict_lines(proposal.conflicts, width)
    lines += question_lines(questions, width, chat=chat)
    return "\n".join(lines)


def diff_lines(before: Plan, after: Plan, *, width: int, paint: Paint = PLAIN) -> list[str]:
    """The tree with marks for what is created (+), deleted (-), moved (>) and changed (~)."""
    change = _Change(before, after)
    if not change.marks:
        return ["Nothing in the tree changes."]
    lines: list[str] = []
    for row in change.rows():
        lines += _marked_lines(row, change, width, paint)
    return [change.summary(), "", *lines]


class _Change:
    """The difference of two plans."""

    def __init__(self, before: Plan, after: Plan) -> None:
        self.before, self.after = before, after
        self.diff = diff(before, after)
        self.fields: dict[str, tuple[FieldChange, ...]] = dict(self.diff.changed)
        self.marks = {
            **dict.fromkeys(self.fields, "~"),
            **dict.fromkeys(self.diff.moved, ">"),
            **dict.fromkeys(self.diff.deleted, "-"),
            **dict.fromkeys(self.diff.created, "+"),
        }
        self._deleted = set(self.diff.deleted)
        self._touched = self._with_ancestors()

    def summary(self) -> str:
        """Return `3 created, 1 deleted, 2 moved`."""
        parts = {
            "created": self.diff.created,
            "deleted": self.diff.deleted,
            "moved": self.diff.moved,
            "changed": self.diff.changed,
        }
        return ", ".join(f"{len(nodes)} {what}" for what, nodes in parts.items() if nodes)

    def plan_of(self, node_id: str) -> Plan:
        """Return the plan that has the node: deleted nodes are only in the earlier one."""
        return self.before if node_id in self._deleted else self.after

    def _with_ancestors(self) -> set[str]:
        touched = set()
        for node_id in self.marks:
            here: str | None = node_id
            while here is not None and here not in touched:
                touched.add(here)
                here = self.plan_of(here).nodes[here].parent_id
        return touched

    def children(self, node_id: str) -> list[str]:
        """Return the children in both plans, deleted ones at their former position."""
        if node_id in self._deleted:
            return [c for c in self.before.nodes[node_id].children if c in self._deleted]
        if node_id not in self.before.nodes:
            return list(self.after.nodes[node_id].children)
        children = list(self.after.nodes[node_id].children)
        previous: str | None = None
        for old in self.before.nodes[node_id].children:
            if old in self._deleted:
                place = children.index(previous) + 1 if previous in children else 0
                children.insert(place, old)
            if old in children:
                previous = old
        return children

    def rows(self) -> Iterator[TreeRow]:
        """Yield the touched nodes with their ancestors, and their nearest siblings."""
        todo: list[tuple[str | int, str, bool]] = list(reversed(self._below(ROOT, "")))
        while todo:
            here, lead, last = todo.pop()
            below = lead + (GAP if last else LINE)
            start = lead + (LAST if last else BRANCH)
            if isinstance(here, int):
                yield TreeRow(start, f"… {here} unchanged")
                continue
            plan = self.plan_of(here)
            mark = self.marks.get(here, " ")
            yield TreeRow(start, named(plan, here), self._why(here), mark, here, below)
            todo += reversed(self._below(here, below) if here in self._touched else [])

    def _below(self, node_id: str, lead: str) -> list[tuple[str | int, str, bool]]:
        """Return children to show, and counts in place of the hidden ones."""
        children = self.children(node_id)
        near: set[int] = set()
        for place, child in enumerate(children):
            if child in self._touched:
                near.update(range(place - NEAR, place + NEAR + 1))
        shown: list[str | int] = []
        for place, child in enumerate(children):
            if place in near:
                shown.append(child)
            elif shown and isinstance(shown[-1], int):
                shown[-1] += 1
            else:
                shown.append(1)
        return [(one, lead, place == len(shown) - 1) for place, one in enumerate(shown)]

    def what_becomes(self, node_id: str) -> str:
        """Return what happens to the existing work of a task that is deleted or redefined."""
        gone = self.marks.get(node_id) == "-"
        changed = gone or node_id in self.fields
        task_id = self.before.nodes[node_id].task_id if changed else None
        if task_id is None:
            return ""
        status = self.before.tasks[task_id].status
        if gone:
            return STAYS if status == PlanTaskStatus.COMPLETE else ""
        if self.after.asks_as(self.before, task_id):
            return ""
        return AT_WORK_ANEW if status in AT_WORK else ANEW.get(status, "")

    def _why(self, node_id: str) -> str:
        if self.marks.get(node_id) != ">":
            return ""
        old = self.before.nodes[node_id].parent_id
        if old == self.after.nodes[node_id].parent_id or old is None:
            return "moved"
        title = self.before.designs[old].title if old in self.before.designs else "the top"
        return f"from {shorten(flat(title), 30)}"


def _marked_lines(row: TreeRow, change: _Change, width: int, paint: Paint) -> Iterator[str]:
    line = f"{row.mark} {drawn(row, width - 2, PLAIN)}"
    colours = {"+": paint.good, "-": paint.bad, ">": paint.warn, "~": paint.warn}
    yield colours[row.mark](line) if row.mark in colours else line.rstrip()
    for field in change.fields.get(row.node_id, ()):
        lead = f"~ {row.below}    "
        yield paint.dim(f"{lead}{field.name}:")
        for sign, value in (("-", field.before), ("+", field.after)):
            for text in _values(value):
                yield shorten(f"{lead}{sign} {flat(text)[:SHOWN_CHARS]}", width)
    if notice := change.what_becomes(row.node_id):
        mark = "-" if row.mark == "-" else "~"
        yield paint.warn(shorten(f"{mark} {row.below}    {notice}", width))
    if row.mark == "+" and (asides := _new_task_facts(change.after, row.node_id)):
        for text in asides:
            yield paint.dim(shorten(f"+ {row.below}    {flat(text)}", width))


def _new_task_facts(plan: Plan, node_id: str) -> list[str]:
    """Return further facts worth showing of a new task."""
    if plan.nodes[node_id].task_id is None:
        return []
    design = plan.designs[node_id]
    lines = [f"after {few(design.dependencies, 6)}"] if design.dependencies else []
    hint = design.suggested_impl
    lines += [f"files {few(hint.file_paths, 4)}"] if hint and hint.file_paths else []
    lines += [f"• {text}" for text in design.acceptance_criteria[:NEW_CRITERIA]]
    left = len(design.acceptance_criteria) - NEW_CRITERIA
    return lines + ([f"… {count(left, 'more criterion', 'more criteria')}"] if left > 0 else [])


def _values(value: object) -> list[str]:
    """Return a field's value as lines; [] if it is empty."""
    if isinstance(value, Hint):
        parts = [value.language, *value.file_paths, *value.constraints]
        return [part for part in parts if part]
    if isinstance(value, tuple):
        return [str(item) for item in value]
    return [str(value)] if value not in ("", None) else []
