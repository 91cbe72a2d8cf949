"""A plan as people see it: its tree, and single tasks.

Titles and all other texts come from a model or a person: they are sanitised, and measured in cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from agentrunner.plans.plan import (
    ROOT,
    Hint,
    NodeDesign,
    Plan,
    PlanTaskStatus,
    PotentialConflict,
    status_word,
)
from agentrunner.plans.store import OpenQuestion, StoredTask
from agentrunner.screens.layout import (
    PLAIN,
    Paint,
    apart_from_command,
    count,
    flat,
    labelled,
    pasteable,
    wrap,
)
from agentrunner.screens.states import coloured
from agentrunner.text.terminal import cell_width, shorten

MOST_TASKS = 400
"""Most lines of a tree; the rest is counted."""
BRANCH, LAST, LINE, GAP = "├─ ", "└─ ", "│  ", "   "


class TreeRow(Struct, frozen=True):
    """A line of a tree."""

    lead: str
    text: str
    aside: str = ""
    mark: str = " "
    node_id: str = ""
    below: str = ""
    """Prefix of further lines that belong to this one."""


# -- the tree -------------------------------------------------------------------------------------


_NO_PLAN = "There is no plan yet."


def no_plan_text(way: str) -> str:
    """Return that there is no plan, and the command by which there will be one."""
    return f"{_NO_PLAN}\nNext:  {way}" if way else _NO_PLAN


def plan_screen(
    plan: Plan,
    questions: Sequence[OpenQuestion] = (),
    *,
    driven: bool,
    width: int,
    paint: Paint = PLAIN,
    chat: bool = False,
    way: str = "",
) -> str:
    """Show the goal, the tree with the state of each task, and pending questions.

    `way` is the command by which there will be a plan, where there is none.

    `driven` is whether a process executes it now. In a chat, commands are not needed and not shown.
    """
    if len(plan.nodes) == 1:
        lines = no_plan_text(way).split("\n") if way else [f"{_NO_PLAN} Say what you want."]
        return "\n".join(lines + question_lines(questions, width, chat=chat))
    lines = wrap(_first_line(plan.goal) or "Plan", width)[:2]
    lines = [paint.bold(line) for line in lines]
    facts = wrap(f"version {plan.version}, {_task_counts(plan, driven=driven)}", width)
    lines += [*map(paint.dim, facts), ""]
    rows = list(_tree(plan, driven=driven))
    lines += [drawn(row, width, paint) for row in rows[:MOST_TASKS]]
    if len(rows) > MOST_TASKS:
        lines.append(f"… {len(rows) - MOST_TASKS} more; agentrunner plan show TASK has each")
    lines += conflict_lines(plan.conflicts, width)
    lines += question_lines(questions, width, chat=chat)
    return "\n".join(lines)


def _task_counts(plan: Plan, *, driven: bool) -> str:
    shown = sorted(map(plan.shown_status, plan.tasks), key=list(PlanTaskStatus).index)
    words = [status_word(status, driven=driven) for status in shown]
    counts = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
    return f"{count(len(plan.tasks), 'task')}: {', '.join(counts)}" if counts else "no tasks"


def _tree(plan: Plan, *, driven: bool) -> Iterator[TreeRow]:
    todo = [(child, "", place) for child, place in in_reverse(plan.nodes[ROOT].children)]
    while todo:
        node_id, lead, last = todo.pop()
        below = lead + (GAP if last else LINE)
        aside = _aside(plan, node_id, driven=driven)
        yield TreeRow(lead + (LAST if last else BRANCH), named(plan, node_id), aside)
        todo += [(c, below, place) for c, place in in_reverse(plan.nodes[node_id].children)]


def in_reverse(children: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the children in reverse order, each with whether it is the last one."""
    return [(child, place == 0) for place, child in enumerate(reversed(children))]


def named(plan: Plan, node_id: str) -> str:
    """Return `TASK-0001  Title` for a task, the title alone for a phase."""
    task_id = plan.nodes[node_id].task_id
    title = plan.designs[node_id].title
    return f"{task_id}  {title}" if task_id else title


def _aside(plan: Plan, node_id: str, *, driven: bool) -> str:
    task_id = plan.nodes[node_id].task_id
    if task_id is None:
        return ""
    return task_word(plan, task_id, driven=driven)


def task_word(plan: Plan, task_id: str, *, driven: bool) -> str:
    """Return the status of a task as people read it, with the tasks that it waits for."""
    return status_word(plan.shown_status(task_id), few(plan.waits_for(task_id)), driven=driven)


def few(ids: Sequence[str], most: int = 2) -> str:
    """Return the first of some ids, and how many more there are."""
    more = f" +{len(ids) - most}" if len(ids) > most else ""
    return ", ".join(ids[:most]) + more


def drawn(row: TreeRow, width: int, paint: Paint) -> str:
    """Format the row as a line of at most `width` cells."""
    aside = flat(row.aside)
    room = max(width - cell_width(row.lead) - (cell_width(aside) + 2 if aside else 0), 12)
    text = shorten(flat(row.text), room)
    gap = " " * (room - cell_width(text) + 2) if aside else ""
    return f"{row.lead}{text}{gap}{coloured(aside, paint)}".rstrip()


def _first_line(text: str) -> str:
    return next((flat(line) for line in text.splitlines() if line.strip()), "")


def conflict_lines(conflicts: Sequence[PotentialConflict], width: int) -> list[str]:
    """Return files that keep tasks apart, and why; [] for none."""
    if not conflicts:
        return []
    head = "Files that several tasks may change; they do not run at the same time:"
    lines = ["", *wrap(head, width)]
    for one in conflicts:
        tasks = f" ({few(one.tasks, 6)})" if one.tasks else ""
        warning = f": {flat(one.warning)}" if one.warning else ""
        lines += wrap(f"{flat(one.file) or 'a file'}{tasks}{warning}", width, "  ")
    return lines


def question_lines(questions: Sequence[OpenQuestion], width: int, *, chat: bool) -> list[str]:
    """Return questions that wait for an answer, and how to give it; [] for none."""
    if not questions:
        return []
    command = "/answer" if chat else "agentrunner plan answer"
    head = f"Questions for you ({command} N TEXT):"
    below = ["Questions for you:", f"  {command} N TEXT"]
    lines = ["", *([head] if len(head) <= width else below)]
    for one in questions:
        about = f"{one.task_id}: " if one.task_id else ""
        text, last = apart_from_command(about + one.text, width - 6)
        first, *rest = wrap(text, width, "      ")
        lines += [f"{one.id:>4}  {first.strip()}", *rest]
        lines += pasteable(last, width, "    ") if last else []
    return lines


# -- one task -------------------------------------------------------------------------------------


def task_screen(
    plan: Plan,
    task_id: str,
    standings: Mapping[str, StoredTask],
    answered: Sequence[OpenQuestion] = (),
    *,
    driven: bool,
    width: int,
    paint: Paint = PLAIN,
) -> str:
    """Show everything that the plan says about an existing task, and what people have answered."""
    design = plan.design_of(task_id)
    standing = standings.get(task_id, StoredTask(task_id, PlanTaskStatus.PENDING))
    status = task_word(plan, task_id, driven=driven)
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
        lines += ["", *_items(design.acceptance_criteria, width)]
    if answered:
        decisions = [flat(f"“{one.text}” answered: {one.answer}") for one in answered]
        lines += ["", "Decisions of people:", *_items(decisions, width)]
    return "\n".join(lines)


def _items(texts: Iterable[str], width: int) -> Iterator[str]:
    for text in texts:
        first, *rest = wrap(text, width, "    ")
        yield from (f"  - {first.strip()}", *rest)


def _hint_facts(design: NodeDesign) -> dict[str, str]:
    hint = design.suggested_impl or Hint()
    return {
        "files": ", ".join(hint.file_paths),
        "language": hint.language,
        "constraints": "; ".join(hint.constraints),
    }
