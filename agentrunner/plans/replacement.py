"""Replacing the present plan by one from files. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from msgspec import Struct

from agentrunner.errors import UsageError
from agentrunner.errors.plans import BadPlanFiles, PlanAtWork
from agentrunner.plans.diff import designs_deleted_by
from agentrunner.plans.plan import AT_WORK, ROOT, Plan, PlannedTask, PlanTaskStatus
from agentrunner.text.lazy_regex import lazy_regex

_TASK_ID, _NODE_ID = lazy_regex(r"TASK-(\d{4,9})"), lazy_regex(r"node-(\d{4,9})")


class Replacement(Struct, frozen=True):
    """A plan from elsewhere as the next version of the present one."""

    plan: Plan
    anew: tuple[str, ...]
    """Tasks that differ from those here, also from a deleted one with the same id: they start over,
    whatever is known of that id."""


def take_over(current: Plan, found: Plan) -> Replacement:
    """Return the plan that was found as the next version; ids continue after the higher of both
    counters.

    A task that is the same in both keeps its present status, and any other one starts PENDING,
    whatever its file says: only what was proven here is COMPLETE. Raises UsageError
    (`plan-at-work`, `plan-files`).
    """
    at_work = [task_id for task_id, task in current.tasks.items() if task.status in AT_WORK]
    if at_work:
        raise PlanAtWork(
            f"{', '.join(at_work[:5])} is being worked on, so the plan cannot be exchanged.",
            remedy="wait until it ends: agentrunner plan status",
        )
    _check(found)
    same = [task_id for task_id in found.tasks if found.asks_as(current, task_id)]
    plan = replace(
        found,
        version=current.version + 1,
        designs={**designs_deleted_by(found, current), **found.designs},
        tasks={
            task_id: PlannedTask(
                task.node_id,
                current.tasks[task_id].status if task_id in same else PlanTaskStatus.PENDING,
            )
            for task_id, task in found.tasks.items()
        },
        tasks_made=max(current.tasks_made, found.tasks_made, _highest(_TASK_ID, found.tasks)),
        nodes_made=max(current.nodes_made, found.nodes_made, _highest(_NODE_ID, found.designs)),
    )
    return Replacement(plan, tuple(task_id for task_id in found.tasks if task_id not in same))


def _check(plan: Plan) -> None:
    """Refuse ids that are not ours, as they name files, and cycles, which would never start."""
    named = [*plan.nodes, *plan.designs]
    odd = [name for name in named if name != ROOT and not _NODE_ID.fullmatch(name)]
    odd += [name for name in plan.tasks if not _TASK_ID.fullmatch(name)]
    if odd:
        raise _bad(f"{odd[0]!r} is no id of a task or node")
    waits = {task_id: plan.design_of(task_id).dependencies for task_id in plan.tasks}
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        raise _bad(f"tasks wait for each other: {' → '.join(error.args[1])}") from error


def _highest(form: re.Pattern[str], names: Iterable[str]) -> int:
    return max((int(match[1]) for name in names if (match := form.fullmatch(name))), default=0)


def _bad(why: str) -> UsageError:
    return BadPlanFiles(
        f"The files hold no plan: {why}.",
        remedy="agentrunner plan export FOLDER writes such files",
    )
