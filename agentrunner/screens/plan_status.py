"""The status of a plan during its execution: its tree with progress, cost and time."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from agentrunner.plans.execution.status import PlanStatus, TaskStatus
from agentrunner.plans.plan import PlanTaskStatus, status_word
from agentrunner.screens.layout import (
    PLAIN,
    Paint,
    apart_from_command,
    clock,
    count,
    fit,
    flat,
    labelled,
    pasteable,
    thousands,
    wrap,
)
from agentrunner.screens.plan_events import local
from agentrunner.screens.plan_tree import few, no_plan_text
from agentrunner.screens.states import coloured
from agentrunner.text.terminal import cell_width, shorten

if TYPE_CHECKING:
    from agentrunner.results import PlanResult

_WAITS = 3
"""Most lines of what a task waits for."""
_DONE = frozenset({PlanTaskStatus.COMPLETE})
_HIDDEN = (
    frozenset[PlanTaskStatus](),
    _DONE,
    _DONE | {PlanTaskStatus.PENDING, PlanTaskStatus.BLOCKED},
)
"""States to hide, in steps, until the rest fits."""


def status_screen(
    look: PlanStatus,
    *,
    width: int,
    height: int = 0,
    paint: Paint = PLAIN,
    chat: bool = False,
    result: PlanResult | None = None,
    doing: Mapping[str, str] | None = None,
    asked: Collection[int] = (),
    way: str = "",
) -> str:
    """Show the tree, pending questions, and next steps; `chat`: with a chat's commands.

    `result` is that of a just finished execution and says where the work is. `doing` says by task
    who works on it and what they do. `asked` are questions that were just shown whole in the same
    terminal. If the screen exceeds `height` lines, finished tasks are hidden, then those not begun;
    0 is any height. `way` is the command by which there will be a plan, where there is none.
    """
    if not look.plan.tasks:
        return no_plan_text(way)
    for hidden in _HIDDEN:
        lines = _screen(look, hidden, width, paint, doing, asked, chat=chat)
        if not height or len(lines) <= height:
            break
    return "\n".join([*lines, *_handed_over(look, result)])


def _screen(
    look: PlanStatus,
    hidden: Collection[PlanTaskStatus],
    width: int,
    paint: Paint,
    doing: Mapping[str, str] | None,
    asked: Collection[int],
    *,
    chat: bool,
) -> list[str]:
    lines = [paint.bold(line) for line in wrap(look.plan.goal.partition("\n")[0], width)[:2]]
    lines += [*map(paint.dim, wrap(_summary(look), width)), ""]
    lines += _tree(look, hidden, width, paint, doing or {})
    lines += _question_lines(look, width, asked)
    after = _next(look, width, chat=chat, followed=doing is not None)
    return [*lines, "", *after] if after else lines


def _summary(look: PlanStatus) -> str:
    statuses = [task.status for task in look.tasks.values()]
    done = statuses.count(PlanTaskStatus.COMPLETE)
    parts = [f"{done} of {count(len(statuses), 'task')} complete"]
    begun = [task for task in look.tasks.values() if task.begun]
    at_work = sum(task.at_work and look.driven for task in begun)
    for number, word in ((at_work, "at work"), (len(begun) - at_work, "stopped")):
        if number:
            parts.append(f"{number} {word}")
    if look.spent.tokens:
        parts.append(f"{thousands(look.spent.tokens)} tokens")
    if look.spent.usd:
        parts.append(f"${look.spent.usd:.2f}")
    if look.branch:
        parts.append(f"branch {flat(look.branch)}")
    return " · ".join(parts)


def _tree(
    look: PlanStatus,
    hidden: Collection[PlanTaskStatus],
    width: int,
    paint: Paint,
    doing: Mapping[str, str],
) -> list[str]:
    plan, lines = look.plan, []
    left_out = [
        status_word(task.status, driven=look.driven)
        for task in look.tasks.values()
        if task.status in hidden
    ]
    asides = {task_id: _aside(look, task_id, width // 2) for task_id in look.tasks}
    questioned = {question.task_id for question in look.questions}
    aside_width = max(map(cell_width, asides.values()), default=0)
    room = max(width - aside_width - 2, 12)
    phases: list[tuple[int, str]] = []  # phases above whose titles are not yet shown
    for node_id, depth in plan.outline():
        node, lead, title = plan.nodes[node_id], "  " * depth, flat(plan.designs[node_id].title)
        phases = [phase for phase in phases if phase[0] < depth]
        if node.task_id is None:
            phases.append((depth, shorten(f"{lead}{title}", width)))
            continue
        task = look.tasks[node.task_id]
        if task.status in hidden:
            continue
        lines += [line for _, line in phases]
        phases.clear()
        text = fit(f"{lead}{node.task_id}  {title}", room)
        aside = coloured(asides[node.task_id], paint)
        lines.append(f"{text}  {aside}".rstrip())
        if node.task_id not in questioned:  # its question says it, below
            lines += _detail_lines(task, lead, width, paint, driven=look.driven)
        if task.at_work and (words := doing.get(node.task_id)):
            lines.append(paint.dim(shorten(f"{lead}           {flat(words)}", width)))
    if left_out:
        counts = [f"{left_out.count(word)} {word}" for word in dict.fromkeys(left_out)]
        lines.append(paint.dim(f"… {', '.join(counts)}"))
    return lines


def _aside(look: PlanStatus, task_id: str, room: int) -> str:
    """Return a task's state in words; with more room also its round, its time and its cost."""
    task = look.tasks[task_id]
    behind = few(look.plan.waits_for(task_id))
    parts = [status_word(task.status, behind, driven=look.driven)]
    if task.begun and task.rounds:
        most = f"/{task.rounds_at_most}" if task.rounds_at_most else ""
        parts.append(f"round {task.rounds}{most}")
    if task.seconds:
        parts.append(clock(task.seconds))
    if task.spent.usd:
        parts.append(f"${task.spent.usd:.2f}")
    while len(parts) > 1 and cell_width("  ".join(parts)) > room:
        parts.pop()
    return shorten("  ".join(parts), room)


def _detail_lines(
    task: TaskStatus, lead: str, width: int, paint: Paint, *, driven: bool
) -> list[str]:
    """Return a line for a task that is blocked, waiting, or merged with a doubt."""
    detail = flat(task.detail)
    if not detail:
        return []
    if not task.retry_at:
        return [paint.dim(shorten(f"{lead}           {detail}", width))]
    if driven:
        detail = f"again at {local(task.retry_at):%H:%M}: {detail}"
    return [paint.dim(line) for line in wrap(detail, width, f"{lead}           ")[:_WAITS]]


def _asked(who: str, text: str, width: int, label: int) -> list[str]:
    """Format a question; a command at its end that would be broken stands below, to be copied."""
    words, command = apart_from_command(text, width - label - 2)
    lines = labelled(who, words, width, label_width=label)
    return [*lines, *pasteable(command, width, "    ")] if command else lines


def _question_lines(look: PlanStatus, width: int, asked: Collection[int]) -> list[str]:
    if not look.questions:
        return []
    label = max(cell_width(q.task_id or "the plan") for q in look.questions) + 6
    lines = ["", "Waits for you"]
    for question in look.questions:
        who = f"{question.id}  {question.task_id or 'the plan'}"
        text = question.text
        if question.id in asked:
            text = shorten(flat(text.strip().partition("\n")[0]), width - label - 2)
        lines += _asked(who, text, width, label)
    return lines


def _handed_over(look: PlanStatus, result: PlanResult | None) -> list[str]:
    """Return where the work of a COMPLETE plan is, or how to take it over."""
    unfinished = any(task.status != PlanTaskStatus.COMPLETE for task in look.tasks.values())
    if unfinished or result is None:
        return []
    if result.exit_code:  # a branch that could not be moved lacks its last commits
        return ["", "  Not all of it is in your repository: agentrunner plan run brings it there"]
    if result.request:
        return ["", f"  Request: {flat(result.request)}"]
    if result.onto:
        return ["", f"  It is part of {flat(result.onto)}."]
    if result.branch:
        return ["", f"  git merge {shlex.quote(result.branch)}   takes it over"]
    return []


def _next(look: PlanStatus, width: int, *, chat: bool, followed: bool) -> list[str]:
    lines, lead = [], "/" if chat else "agentrunner plan "
    if look.questions:
        lines.append((f"{lead}answer ID TEXT", "ID is the number or the task"))
    unfinished = any(t.status != PlanTaskStatus.COMPLETE for t in look.tasks.values())
    if look.driven and not chat:
        lines += [] if followed else [(f"{lead}status -f", "follows it")]
    elif unfinished and not look.driven:
        asked = any(question.task_id for question in look.questions)
        begun = any(task.begun for task in look.tasks.values())
        what = "then continues it" if asked else "continues it" if begun else "carries it out"
        lines.append((f"{lead}run", what))
    rows = [(f"  {command}", f"  {command:<{len(lead) + 16}} {what}") for command, what in lines]
    return [whole if len(whole) <= width else short for short, whole in rows]
