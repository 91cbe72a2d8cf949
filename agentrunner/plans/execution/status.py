"""The status of a plan, read from the disk: also while another process executes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from agentrunner.money.amount import NOTHING, Amount, total
from agentrunner.money.bill import spent_by
from agentrunner.plans.execution.published import published
from agentrunner.plans.execution.task_runs import TaskRunStore
from agentrunner.plans.execution.waiting_questions import waiting_questions
from agentrunner.plans.plan import AT_WORK, BEGUN, Plan, PlanTaskStatus
from agentrunner.plans.store import OpenQuestion, PlanStore, StoredTask
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.plan_folder import PlanFolder


@dataclass(frozen=True)
class TaskStatus:
    """The status of one task."""

    status: PlanTaskStatus
    """As people see it."""
    run_id: str = ""
    detail: str = ""
    """One sentence."""
    retry_at: str = ""
    """UTC, ISO 8601, where it waits to be tried again."""
    rounds: int = 0
    """Worker runs of its latest run."""
    rounds_at_most: int = 0
    """0 where that is not known."""
    seconds: float = 0.0
    """Seconds that its runs worked, without waits and pauses."""
    spent: Amount = NOTHING

    @property
    def at_work(self) -> bool:
        return self.status in AT_WORK

    @property
    def begun(self) -> bool:
        """Whether it has a run that has not ended."""
        return self.status in BEGUN


@dataclass(frozen=True)
class PlanStatus:
    """The status of a plan."""

    plan: Plan
    tasks: dict[str, TaskStatus]
    """In the order of the tree."""
    questions: list[OpenQuestion]
    """Open questions, of the plan and of tasks that are in it."""
    driven: bool
    """Whether a process executes it now."""
    branch: str
    """Its name in the user's repository; "" before anything was merged."""

    @property
    def spent(self) -> Amount:
        return total(task.spent for task in self.tasks.values())

    def as_dict(self) -> dict[str, object]:
        """Return the values for `plan status --json`."""
        tasks = {
            task_id: {
                "title": self.plan.design_of(task_id).title,
                "status": str(task.status),
                "run_id": task.run_id or None,
                "detail": task.detail,
                "retry_at": task.retry_at or None,
                "rounds": task.rounds,
                "rounds_at_most": task.rounds_at_most or None,
                "elapsed_sec": round(task.seconds, 1),
                "tokens": task.spent.tokens,
                "usd": round(task.spent.usd, 6),
            }
            for task_id, task in self.tasks.items()
        }
        asked = [{"id": q.id, "task_id": q.task_id, "text": q.text} for q in self.questions]
        return {
            "version": self.plan.version,
            "goal": self.plan.goal,
            "running": self.driven,
            "branch": self.branch or None,
            "tasks": tasks,
            "questions": asked,
            "usage": {"tokens": self.spent.tokens, "usd": round(self.spent.usd, 6)},
        }


def look(state_dir: Path, folder: PlanFolder, now: datetime) -> PlanStatus:
    """Return the status of the plan in a folder.

    Raises OSError, sqlite3.Error, CheckpointCorrupt.
    """
    store = PlanStore(folder.plan)
    plan, standings = store.load(), store.standings()
    rows = {row.run_id: row for row in RunIndex(state_dir).runs()}
    runs = TaskRunStore(folder).begun()
    tasks = {}
    driven = folder.driven
    for task_id in plan.task_order():
        run_ids = runs.get(task_id, [])
        spent = total(spent_by(state_dir, run_id) for run_id in run_ids)
        known = [rows[run_id] for run_id in run_ids if run_id in rows]
        standing = standings.get(task_id) or StoredTask(task_id, PlanTaskStatus.PENDING)
        tasks[task_id] = _task(
            plan.shown_status(task_id), standing, known, spent, now if driven else None
        )
    branch = published(folder)
    asked = waiting_questions(store)
    return PlanStatus(plan, tasks, asked, driven, branch.name if branch else "")


def _task(
    status: PlanTaskStatus,
    standing: StoredTask,
    rows: list[RunRow],
    spent: Amount,
    now: datetime | None,
) -> TaskStatus:
    """Return a task's status. `now` is None where no process executes the plan: no run works."""
    known = TaskStatus(status, standing.run_id, standing.detail, standing.retry_at, spent=spent)
    if not rows:
        return known
    last = rows[-1]
    worked = sum(row.worked_sec for row in rows)
    if now is not None and last.driven_at and not last.finished_at:
        worked += max((now - datetime.fromisoformat(last.driven_at)).total_seconds(), 0)
    most = last.rounds_at_most or 0
    return replace(known, rounds=last.rounds, rounds_at_most=most, seconds=worked)
