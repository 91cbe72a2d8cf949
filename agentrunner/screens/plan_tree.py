"""A plan as people see it: its tree, what a change would make of it, one task of it.

Titles and all other texts are a model's or a person's: they are sanitised, and measured in cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentrunner.planning.diff import FieldChange, diff
from agentrunner.planning.plan import (
    AT_WORK,
    ROOT,
    Hint,
    NodeDesign,
    Plan,
    PlanTaskStatus,
    PotentialConflict,
)
from agentrunner.planning.proposal import Proposal
from agentrunner.planning.store import OpenQuestion, Standing
from agentrunner.screens.layout import PLAIN, Paint, count, flat, labelled, wrap
from agentrunner.text.terminal import cell_width, shorten

MOST_TASKS = 400
"""Lines of a tree; what is more is counted."""
NEAR = 1
"""Unchanged siblings that are shown on each side of a change."""
AT_WORK_ANEW = "it is being worked on: that is stopped, and it begins anew"
STAYS = "it is COMPLETE: what it did stays where it is, on the plan's branch"
ANEW = {PlanTaskStatus.COMPLETE: "it was COMPLETE, and is worked on again"}
NEW_CRITERIA = 3
"""Of a task that is created; how many more there are is told."""
SHOWN_CHARS = 200
"""Of a field's text before and after."""

_BRANCH, _LAST, _LINE, _GAP = "├─ ", "└─ ", "│  ", "   "


@dataclass(frozen=True)
class _Row:
    """A line of a tree."""

    lead: str
    text: str
    aside: str = ""
    mark: str = " "
    node_id: str = ""
    below: str = ""
    """Lead of lines that belong to this one."""


# -- the tree -------------------------------------------------------------------------------------


def plan_screen(
    plan: Plan,
    questions: Sequence[OpenQuestion] = (),
    *,
    width: int,
    paint: Paint = PLAIN,
    chat: bool = False,
) -> str:
    """The goal, the tree with how each task stands, and what waits for a person.

    In a chat things are said without a command.
    """
    if len(plan.nodes) == 1:
        say = "" if chat else ': agentrunner plan "make a page"'
        lines = wrap(f"There is no plan yet. Say what you want{say}.", width)
        return "\n".join(lines + _questions(questions, width, chat=chat))
    lines = wrap(_first_line(plan.goal) or "Plan", width)[:2]
    lines = [paint.bold(line) for line in lines]
    facts = wrap(f"version {plan.version}, {_counted(plan)}", width)
    lines += [*map(paint.dim, facts), ""]
    rows = list(_tree(plan))
    lines += [_drawn(row, width, paint) for row in rows[:MOST_TASKS]]
    if len(rows) > MOST_TASKS:
        lines.append(f"… {len(rows) - MOST_TASKS} more; agentrunner plan show TASK has each")
    lines += _conflicts(plan.conflicts, width)
    lines += _questions(questions, width, chat=chat)
    return "\n".join(lines)


def _counted(plan: Plan) -> str:
    by_status: dict[PlanTaskStatus, int] = {}
    for task_id in plan.tasks:
        status = plan.shown_status(task_id)
        by_status[status] = by_status.get(status, 0) + 1
    told = [
        f"{by_status[status]} {status.value}" for status in PlanTaskStatus if status in by_status
    ]
    return f"{count(len(plan.tasks), 'task')}: {', '.join(told)}" if told else "no tasks"


def _tree(plan: Plan) -> Iterator[_Row]:
    todo = [(child, "", place) for child, place in _reversed(plan.nodes[ROOT].children)]
    while todo:
        node_id, lead, last = todo.pop()
        below = lead + (_GAP if last else _LINE)
        yield _Row(
            lead + (_LAST if last else _BRANCH), _named(plan, node_id), _aside(plan, node_id)
        )
        todo += [(c, below, place) for c, place in _reversed(plan.nodes[node_id].children)]


def _reversed(children: Sequence[str]) -> list[tuple[str, bool]]:
    """Each with whether it is the last one, in reverse order."""
    return [(child, place == 0) for place, child in enumerate(reversed(children))]


def _named(plan: Plan, node_id: str) -> str:
    """`TASK-0001  Title` for a task, the title alone for a phase."""
    task_id = plan.nodes[node_id].task_id
    title = plan.designs[node_id].title
    return f"{task_id}  {title}" if task_id else title


def _aside(plan: Plan, node_id: str) -> str:
    task_id = plan.nodes[node_id].task_id
    if task_id is None:
        return ""
    status = plan.shown_status(task_id)
    waits = plan.waits_for(task_id) if status == PlanTaskStatus.BLOCKED else ()
    return f"{status.value} by {few(waits)}" if waits else status.value


def few(ids: Sequence[str], most: int = 2) -> str:
    """The first of some ids, and how many more there are."""
    more = f" +{len(ids) - most}" if len(ids) > most else ""
    return ", ".join(ids[:most]) + more


def _drawn(row: _Row, width: int, paint: Paint) -> str:
    aside = flat(row.aside)
    room = max(width - cell_width(row.lead) - (cell_width(aside) + 2 if aside else 0), 12)
    text = shorten(flat(row.text), room)
    gap = " " * (room - cell_width(text) + 2) if aside else ""
    return f"{row.lead}{text}{gap}{_coloured(aside, paint)}".rstrip()


def _coloured(aside: str, paint: Paint) -> str:
    word = aside.partition(" ")[0]
    if word == PlanTaskStatus.COMPLETE:
        return paint.good(aside)
    if word == PlanTaskStatus.FAILED:
        return paint.bad(aside)
    if word in AT_WORK or word in (PlanTaskStatus.NEEDS_REVIEW, PlanTaskStatus.RETRY_WAIT):
        return paint.warn(aside)
    return paint.dim(aside) if aside else ""


def _first_line(text: str) -> str:
    return next((flat(line) for line in text.splitlines() if line.strip()), "")


# -- a change -------------------------------------------------------------------------------------


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
    lines += _conflicts(proposal.conflicts, width)
    lines += _questions(questions, width, chat=chat)
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

    def rows(self) -> Iterator[_Row]:
        """The touched nodes with those above them, and their nearest siblings."""
        todo: list[tuple[str | int, str, bool]] = list(reversed(self._below(ROOT, "")))
        while todo:
            here, lead, last = todo.pop()
            below = lead + (_GAP if last else _LINE)
            start = lead + (_LAST if last else _BRANCH)
            if isinstance(here, int):
                yield _Row(start, f"… {here} unchanged")
                continue
            plan = self.plan_of(here)
            mark = self.marks.get(here, " ")
            yield _Row(start, _named(plan, here), self._why(here), mark, here, below)
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


def _marked(row: _Row, change: _Change, width: int, paint: Paint) -> Iterator[str]:
    line = f"{row.mark} {_drawn(row, width - 2, PLAIN)}"
    colours = {"+": paint.good, "-": paint.bad, ">": paint.warn, "~": paint.warn}
    yield colours[row.mark](line) if row.mark in colours else line.rstrip()
    for field in change.fields.get(row.node_id, ()):
        lead = f"~ {row.below}    "
        yield paint.dim(f"{lead}{field.name}:")
        for sign, value in (("-", field.before), ("+", field.after)):
            for text in _values(value):
                yield shorten(f"{lead}{sign} {flat(text)[:SHOWN_CHARS]}", width)
    if told := change.what_becomes(row.node_id):
        mark = "-" if row.mark == "-" else "~"
        yield paint.warn(shorten(f"{mark} {row.below}    {told}", width))
    if row.mark == "+" and (asides := _of_new(change.after, row.node_id)):
        for text in asides:
            yield paint.dim(shorten(f"+ {row.below}    {flat(text)}", width))


def _of_new(plan: Plan, node_id: str) -> list[str]:
    """What else is worth knowing of a task that is created."""
    if plan.nodes[node_id].task_id is None:
        return []
    design = plan.designs[node_id]
    told = [f"after {few(design.dependencies, 6)}"] if design.dependencies else []
    hint = design.suggested_impl
    told += [f"files {few(hint.file_paths, 4)}"] if hint and hint.file_paths else []
    told += [f"• {text}" for text in design.acceptance_criteria[:NEW_CRITERIA]]
    left = len(design.acceptance_criteria) - NEW_CRITERIA
    return told + ([f"… {count(left, 'more criterion', 'more criteria')}"] if left > 0 else [])


def _values(value: object) -> list[str]:
    """A field as lines; nothing for one that is empty."""
    if isinstance(value, Hint):
        parts = [value.language, *value.file_paths, *value.constraints]
        return [part for part in parts if part]
    if isinstance(value, tuple):
        return [str(item) for item in value]
    return [str(value)] if value not in ("", None) else []


def _conflicts(conflicts: Sequence[PotentialConflict], width: int) -> list[str]:
    if not conflicts:
        return []
    head = "Files that several tasks may change; they do not run at the same time:"
    lines = ["", *wrap(head, width)]
    for one in conflicts:
        tasks = f" ({few(one.tasks, 6)})" if one.tasks else ""
        warning = f": {flat(one.warning)}" if one.warning else ""
        lines += wrap(f"{flat(one.file) or 'a file'}{tasks}{warning}", width, "  ")
    return lines


def _questions(questions: Sequence[OpenQuestion], width: int, *, chat: bool) -> list[str]:
    if not questions:
        return []
    command = "/answer" if chat else "agentrunner plan answer"
    lines = ["", *wrap(f"Questions for you ({command} N TEXT):", width)]
    for one in questions:
        about = f"{one.task_id}: " if one.task_id else ""
        first, *rest = wrap(about + one.text, width, "      ")
        lines += [f"{one.id:>4}  {first.strip()}", *rest]
    return lines


# -- one task -------------------------------------------------------------------------------------


def task_screen(
    plan: Plan,
    task_id: str,
    standings: Mapping[str, Standing],
    *,
    width: int,
    paint: Paint = PLAIN,
) -> str:
    """All that the plan says of a living task."""
    design = plan.design_of(task_id)
    standing = standings.get(task_id, Standing(task_id, PlanTaskStatus.PENDING))
    status = plan.shown_status(task_id).value
    lines = [paint.bold(line) for line in wrap(f"{task_id}  {design.title}", width)]
    facts = {
        "status": f"{status}: {standing.detail}" if standing.detail else status,
        "run": standing.run_id,
        "phase": " · ".join(part for part in (design.phase_name, design.milestone) if part),
        "effort": design.estimated_effort,
        "after": ", ".join(design.dependencies),
        **_hint_facts(design),
    }
    for label, text in facts.items():
        if text:
            lines += labelled(label, flat(text), width, label_width=12)
    if design.description:
        lines += ["", *wrap(design.description, width)]
    if design.acceptance_criteria:
        lines.append("")
        for text in design.acceptance_criteria:
            first, *rest = wrap(text, width, "    ")
            lines += [f"  - {first.strip()}", *rest]
    return "\n".join(lines)


def _hint_facts(design: NodeDesign) -> dict[str, str]:
    hint = design.suggested_impl or Hint()
    return {
        "files": ", ".join(hint.file_paths),
        "language": hint.language,
        "constraints": "; ".join(hint.constraints),
    }
