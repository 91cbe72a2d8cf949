"""How the runs of a plan's tasks ended, for readers of the pull or merge request."""

from __future__ import annotations

import contextlib
from pathlib import Path

from agentrunner.engine import attempts
from agentrunner.errors import AgentRunnerError
from agentrunner.plans.execution.forge.request_body import TaskReport
from agentrunner.plans.execution.task_runs import TaskRunStore
from agentrunner.plans.plan import Plan, PlanTaskStatus
from agentrunner.storage.run_folder import RunFolder


async def reports_of(state_dir: Path, task_runs: TaskRunStore, plan: Plan) -> dict[str, TaskReport]:
    """Return the reports of COMPLETE tasks, by task; of a run that is gone only its id."""
    found = {}
    for task_id in plan.task_order():
        task_run = task_runs.latest(task_id)
        if task_run is None or plan.tasks[task_id].status != PlanTaskStatus.COMPLETE:
            continue
        found[task_id] = TaskReport(task_run.run_id)
        with contextlib.suppress(AgentRunnerError, OSError):
            found[task_id] = await _report(state_dir, task_run.run_id)
    return found


async def _report(state_dir: Path, run_id: str) -> TaskReport:
    state = await attempts.latest(RunFolder.open(state_dir, run_id))
    verdict, evidence = state.get("verdict"), state.get("evidence")
    return TaskReport(
        run_id,
        verdict.text if verdict else "",
        tuple(evidence.proof) if evidence else (),
        len(evidence.changed_files) if evidence else 0,
    )
