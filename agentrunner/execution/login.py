"""A worker's login that was refused: the token in question, and the order that tries another."""

from __future__ import annotations

from agentrunner.execution.deps import Deps
from agentrunner.execution.tries import after_refused_login
from agentrunner.execution.worker_record import seen_before
from agentrunner.state.run_state import TaskContext
from agentrunner.state.worker_runs import WorkerOrder, WorkerRun


def refused_login(state: TaskContext, deps: Deps, order: WorkerOrder) -> str:
    """Return the fingerprint of the token that its latest run was refused with; "" for none."""
    runs = [run for run in state.get("recent", []) if run.member == order.member]
    latest = runs[-1] if runs else None
    if latest is None or not _ended_by_auth(latest):
        return ""
    return str(seen_before(deps, latest.worker_run_id).get("login", ""))


def again_with_login(deps: Deps, order: WorkerOrder, run: WorkerRun) -> WorkerOrder | None:
    """Return the same order, continued with a fresh token; None where that is of no use."""
    member = deps.member(order.member)
    if member.spec.runner.worker.auth == "key" or not _ended_by_auth(run):
        return None
    again = after_refused_login(order.worker_run_id)
    if again is None:
        return None
    mode = "resume" if run.session_id else order.mode
    return order.model_copy(update={"worker_run_id": again, "mode": mode})


def _ended_by_auth(run: WorkerRun) -> bool:
    return run.outcome == "auth"
