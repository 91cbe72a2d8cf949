"""Asking the candidates of a planner role in a run: what it waits for, and whom it asks then."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Awaitable, Callable

from agentrunner.errors.planners import PlannerQuotaSpent
from agentrunner.execution.deps import Deps
from agentrunner.execution.failover import AllAway, Answered, FailOver
from agentrunner.execution.outages import is_too_long
from agentrunner.execution.quota import MustWait
from agentrunner.money.counters import Accounting
from agentrunner.planners.base import PlannerClient, PlannerUnavailable
from agentrunner.planners.panel import RoleCandidates, role_of
from agentrunner.protocol.message import MessageType
from agentrunner.state.run_state import TaskContext
from agentrunner.state.worker_runs import Wait

PARKED = "meta-quota"
"""Code of the warning that a run stopped because a wait would be too long."""


async def ask_candidates(
    state: TaskContext,
    deps: Deps,
    message: MessageType,
    accounting: Accounting,
    ask: Callable[[PlannerClient], Awaitable[Answered]],
    *,
    vote: int = 0,
) -> Answered:
    """Return what `ask` gets from the first candidate of the role that answers; see `FailOver`.

    Raises MustWait where all are unavailable for a while. Where that is longer than the task may
    wait, or for another reason, raises the last error, PlannerUnavailable or PlannerUnusable; or
    InfraError (`meta-quota`) where a quota is spent for too long and no person is asked.
    """
    role = role_of(message)
    candidates = FailOver(
        deps.panel,
        role,
        clock=deps.clock,
        cooling=ChainMap(deps.cooled, state.get("cooling", {})),
        salt=state["run"].salt,
        warn=lambda sentence: deps.warn(state, "fail-over", sentence),
        waits=lambda: _waits(deps),
    )
    try:
        return await candidates.ask(ask, lambda: accounting.counters.meta_calls, vote=vote)
    except AllAway as found:
        away = found
    before, limit = _waits(deps), deps.spec.runner.budget.wait_sec
    if not is_too_long(away.wait, before, limit):
        raise MustWait(away.wait, accounting.counters)
    why = f"The planner {away.wait.candidate} could not answer, {away.trouble}. It would be asked "
    why += f"again at {away.wait.until}, and runner.budget.wait_sec allows waits of {limit:g} s."
    # Under a new key each time: later waits are counted from here.
    deps.record(state, "warning", f"{PARKED}-{away.wait.since}", {"code": PARKED, "message": why})
    spent = isinstance(away.failure, PlannerUnavailable) and away.failure.kind == "rate_limit"
    if asks(deps, deps.panel.role_candidates(role)) or not spent:
        candidates.release(away.failed)
        raise away.failure
    raise PlannerQuotaSpent(
        why, remedy=f"agentrunner resume {state['run'].run_id}, after that time"
    )


def _waits(deps: Deps) -> list[Wait]:
    """Return the waits for the planner since it last answered or a person resumed the run."""
    found: list[Wait] = []
    for record in reversed(deps.log.records()):
        answered = record.kind == "meta_call" and not record.data.get("error")
        if answered or (record.kind == "warning" and record.data.get("code") == PARKED):
            break
        if record.kind == "wait" and record.data.get("role") == "meta":
            found.append(Wait.model_validate(record.data))
    return found


def asks(deps: Deps, role_candidates: RoleCandidates) -> bool:
    """Whether a person is asked where no candidate of this role answers.

    Programs answer the same however often they are asked, and so does a replayed planner.
    """
    by_code = role_candidates.by_code
    wanted = deps.spec.runner.meta.on_unusable == "ask"
    return wanted and not by_code and deps.cassette.replay is None
