"""What a change would make of a plan, as a diff of its tree.

Titles and all other texts are a model's or a person's: they are sanitised, and measured in cells.
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
"""Unchanged siblings that are shown on each side of a change."""
AT_WORK_ANEW = "it is being worked on: that is stopped, and it begins anew"
STAYS = "it is COMPLETE: what it did stays where it is, on the plan's branch"
ANEW = {PlanTaskStatus.COMPLETE: "it was COMPLETE, and is worked on again"}
NEW_CRITERIA = 3
"""Of a task that is created; how many more there are is told."""
SHOWN_CHARS = 200
"""Of a field's text before and after."""


def proposal_screen(
    proposal: Proposal,
    questions: Sequence[OpenQuestion] = (),
    *,
    width: int,
    paint: Paint = PLAIN,
    chat: bool = False,
) -> str:
    """What the planner understood, the change as a diff of the tree, conflicts and questions."""
    lines = wrap(proposal.understanding, width)
    lines += ["", *diff_lines(proposal.before, proposal.after, width=width, paint=paint)]
    lines += conflict_lines(proposal.conflicts, width)
    lines += question_lines(questions, width, chat=chat)
    return "\n".join(lines)


def diff_lines(before: Plan, after: Plan, *, width: int, paint: Paint = PLAIN) -> list[str]:
    """The tree with what is created (+), deleted (-), moved (>) and changed (~)."""
    change = _Change(before, after)
    if not change.marks:
        return ["Nothing in the tree changes."]
    lines: list[str] = []
    for row in change.rows():
        lines += _marked(row, change, width, paint)
    return [change.summary(), "", *lines]


class _Change:
    """Two plans laid over each other."""

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
        self._gone = set(self.diff.deleted)
        self._touched = self._with_ancestors()

    def summary(self) -> str:
        """`3 created, 1 deleted, 2 moved`."""
        parts = {
            "created": self.diff.created,
            "deleted": self.diff.deleted,
            "moved": self.diff.moved,
            "changed": self.diff.changed,
        }
        return ", ".join(f"{len(nodes)} {what}" for what, nodes in parts.items() if nodes)

    def plan_of(self, node_id: str) -> Plan:
        """Where it is: what is deleted is only in the earlier plan."""
        return self.before if node_id in self._gone else self.after

    def _with_ancestors(self) -> set[str]:
        touched = set()
        for node_id in self.marks:
            here: str | None = node_id
            while here is not None and here not in touched:
                touched.add(here)
                here = self.plan_of(here).nodes[here].parent_id
        return touched

    def children(self, node_id: str) -> list[str]:
        """Of both plans: what is deleted stands where it stood."""
        if node_id in self._gone:
            return [c for c in self.before.nodes[node_id].children if c in self._gone]
        if node_id not in self.before.nodes:
            return list(self.after.nodes[node_id].children)
        children = list(self.after.nodes[node_id].children)
        previous: str | None = None
        for old in self.before.nodes[node_id].children:
            if old in self._gone:
                place = children.index(previous) + 1 if previous in children else 0
                children.insert(place, old)
            if old in children:
                previous = old
        return children

    def rows(self) -> Iterator[TreeRow]:
        """The touched nodes with those above them, and their nearest siblings."""
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
        """Children that are shown, and in place of others how many they are."""
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
        """Of a task that was begun and is deleted, or is to do something else from now on."""
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


def _marked(row: TreeRow, change: _Change, width: int, paint: Paint) -> Iterator[str]:
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
    if row.mark == "+" and (asides := _of_new(change.after, row.node_id)):
        for text in asides:
            yield paint.dim(shorten(f"+ {row.below}    {flat(text)}", width))


def _of_new(plan: Plan, node_id: str) -> list[str]:
    """What else is worth knowing of a task that is created."""
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
    """A field as lines; nothing for one that is empty."""
    if isinstance(value, Hint):
        parts = [value.language, *value.file_paths, *value.constraints]
        return [part for part in parts if part]
    if isinstance(value, tuple):
        return [str(item) for item in value]
    return [str(value)] if value not in ("", None) else []
