"""The questions of a plan that wait for a person."""

from __future__ import annotations

from agentrunner.plans.execution.task_runs import TaskRunStore, accepted_apart
from agentrunner.plans.store import BUDGET, OpenQuestion, PlanStore
from agentrunner.storage.index import RunIndex
from agentrunner.storage.plan_folder import PlanFolder


def waiting_questions(store: PlanStore) -> list[OpenQuestion]:
    """Return the questions that wait for a person, in order: about the plan, its budget, or a task
    that is in it.

    One about a run that a person accepted by hand since waits no more. Blocks. Raises OSError,
    sqlite3.Error, CheckpointCorrupt.
    """
    plan, folder = store.load(), PlanFolder(store.path.parent)
    about = {"", BUDGET, *plan.tasks}
    asked = [q for q in store.questions() if q.answer is None and q.task_id in about]
    if not any(q.task_id in plan.tasks for q in asked):
        return asked
    accepted = accepted_apart(TaskRunStore(folder).all(), RunIndex(folder.state_dir))
    return [q for q in asked if q.id not in accepted]
