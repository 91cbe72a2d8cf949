"""What will happen to a plan's tasks, before any is started."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentrunner.plans.execution.task_runner import asked_for
from agentrunner.plans.execution.task_runs import ALLOWANCE, LANDING, UNFIT, TaskRun
from agentrunner.plans.plan import FELL_SHORT, Plan, PlanTaskStatus
from agentrunner.plans.schedule import Schedule
from agentrunner.plans.store import PlanStore
from agentrunner.storage.index import RunIndex


@dataclass(frozen=True)
class Forecast:
    """Tasks that are wanted and will not be worked on now, each list in order."""

    done: list[str]
    waiting: list[str]
    """A person has to answer first."""
    behind: list[str]
    """They depend on one that waits."""


def forecast_of(
    state_dir: Path,
    store: PlanStore,
    runs: Iterable[TaskRun],
    tasks: Sequence[str],
    again: Collection[str],
) -> Forecast:
    """Return the forecast for these tasks before any is started.

    `runs` are those that can be continued, in order; tasks of `again` that ended are tried again.
    Blocks.
    """
    plan = store.load()
    done = [task for task in tasks if plan.tasks[task].status == PlanTaskStatus.COMPLETE]
    asked = {question.id for question in store.questions() if question.answer is None}
    latest = {task_run.task_id: task_run for task_run in runs}
    open_ones = {
        task: latest[task]
        for task in tasks
        if task in latest
        and task not in done
        and latest[task].question in asked
        and latest[task].asked != UNFIT  # it is tried again without an answer
        # A run for a task that was changed since is dropped, and another one starts.
        and latest[task].asked_for in ("", asked_for(plan, task))
    }
    settled = _settled(state_dir) if open_ones else set()
    waiting = [
        task
        for task, task_run in open_ones.items()
        if not _goes_on(task_run, settled) and not (task in again and _ended(plan, task))
    ]
    behind = Schedule(plan, only=tasks).stopped_by(waiting)
    return Forecast(done, waiting, [task for task in behind if task not in waiting])


def _goes_on(task_run: TaskRun, settled: Collection[str]) -> bool:
    """Whether its run needs no answer any more; questions about merges come after the run."""
    return task_run.run_id in settled and task_run.asked not in (LANDING, ALLOWANCE)


def _ended(plan: Plan, task: str) -> bool:
    return plan.tasks[task].status in FELL_SHORT


def _settled(state_dir: Path) -> set[str]:
    """Return runs of which a person has settled what they asked, by a command for the run itself:
    they accepted it, so that it is COMPLETE, or answered it, so that it has not ended and waits for
    nobody."""
    return {
        row.run_id
        for row in RunIndex(state_dir).runs()
        if row.state == PlanTaskStatus.COMPLETE or not (row.finished_at or row.waiting)
    }


def waves(plan: Plan, only: Collection[str], parallel: int) -> list[list[str]]:
    """Return the tasks that would start together if all took equally long."""
    schedule = Schedule(plan, only=only or None)
    found: list[list[str]] = []
    while started := schedule.start(parallel):
        found.append(started)
        for task_id in started:
            schedule.complete(task_id)
    return found
