"""Asking the candidates of a planner role, one after the other, until one of them answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from agentrunner.errors.planners import PlannerQuotaSpent
from agentrunner.execution.deps import Deps
from agentrunner.execution.outages import asked_again_at, ends_by_itself
from agentrunner.execution.quota import MustWait, cooling_until, seconds_of
from agentrunner.money.counters import Accounting
from agentrunner.planners.base import (
    MessageType,
    PlannerClient,
    PlannerRequest,
    PlannerUnavailable,
    PlannerUnusable,
    Reply,
    answers_by_code,
)
from agentrunner.planners.faults import words_of_failure
from agentrunner.planners.panel import Candidate, Panel, RoleCandidates, pick, role_of
from agentrunner.state.run_state import TaskContext
from agentrunner.state.worker_runs import Wait
from agentrunner.text.times import stamp

Silence = PlannerUnavailable | PlannerUnusable
"""Why a candidate gave no usable answer."""
FIXED_BY_A_PERSON = ("auth", "model")
UNFIXED_SEC = 86_400.0
"""How long a candidate whose key or model is refused is not asked, where another one answers."""

PARKED = "meta-quota"
"""Code of the warning that a run stopped because a wait would be too long."""

Answered = TypeVar("Answered")


class Chosen:
    """One candidate as a planner client; its name is on what it answers."""

    kind = "candidate"

    def __init__(self, panel: Panel, candidate: Candidate) -> None:
        self._panel = panel
        self._candidate = candidate

    def describe(self) -> str:
        """Return the client's own description."""
        return self._candidate.client.describe()

    async def complete(self, request: PlannerRequest) -> Reply:
        """Ask this candidate once; raise what its client raises."""
        return await self._panel.complete_by(self._candidate, request)

    async def close(self) -> None:
        """Do nothing: the panel closes its clients."""


async def ask_candidates(
    state: TaskContext,
    deps: Deps,
    message: MessageType,
    accounting: Accounting,
    ask: Callable[[PlannerClient], Awaitable[Answered]],
    *,
    vote: int = 0,
) -> Answered:
    """Return what `ask` gets from the first candidate of the role that answers.

    Of several votes on one thing, vote number n begins with the n-th candidate.

    Raises MustWait where all are unavailable for a while. Where that is longer than the task may
    wait, or for another reason, raises the last error, PlannerUnavailable or PlannerUnusable; or
    InfraError (`meta-quota`) where a quota is spent for too long and no person is asked.
    """
    role_candidates = deps.panel.role_candidates(role_of(message))
    # By name, in order. These are not asked again in this call, however short their cool-down.
    failed: dict[str, Silence] = {}
    while True:
        chosen = _choice(state, deps, role_candidates, accounting, vote, failed)
        if chosen is None:
            raise _must_wait(state, deps, role_candidates, accounting, failed)
        try:
            return await ask(Chosen(deps.panel, chosen))
        except (PlannerUnavailable, PlannerUnusable) as failure:
            failed[chosen.name] = failure
            deps.cooled[f"meta:{chosen.name}"] = stamp(
                _cool_until(deps, role_candidates, chosen, failure)
            )
            following = _choice(state, deps, role_candidates, accounting, vote, failed)
            if following is not None:
                warning = f"{chosen.name} does not answer, {following.name} does: {failure.message}"
                deps.warn(state, "fail-over", warning[:500])
            elif not any(
                _recovers_by_itself(role_candidates, name, one) for name, one in failed.items()
            ):
                for name in failed:
                    deps.cooled.pop(
                        f"meta:{name}", None
                    )  # a person fixes it; then all are asked again
                raise


def _recovers_by_itself(role_candidates: RoleCandidates, name: str, failure: Silence) -> bool:
    """Whether this candidate's trouble ends without a person after a while."""
    named = [one.client for one in role_candidates.candidates if one.name == name]
    return all(ends_by_itself(client, failure) for client in named)


def _choice(
    state: TaskContext,
    deps: Deps,
    role_candidates: RoleCandidates,
    accounting: Accounting,
    vote: int,
    failed: Collection[str],
) -> Candidate | None:
    """Return the candidate to ask now, of those not in `failed`; None where all must wait."""
    now, salt, number = deps.clock.now(), state["run"].salt, accounting.counters.meta_calls
    cooling = _cooling(state, deps)
    if role_candidates.fallback_on_rate_limit:
        candidates = [one for one in role_candidates.candidates if one.name not in failed]
        return pick(candidates, cooling, now, salt, number, vote=vote)
    chosen = pick(role_candidates.candidates, {}, now, salt, number, vote=vote)
    if chosen is None or chosen.name in failed:
        return None
    return None if cooling_until(cooling, "meta", chosen.name, now) else chosen


def _cooling(state: TaskContext, deps: Deps) -> dict[str, str]:
    return {**state.get("cooling", {}), **deps.cooled}


def _cool_until(
    deps: Deps, role_candidates: RoleCandidates, chosen: Candidate, failure: Silence
) -> datetime:
    """Return until when a candidate that did not answer is not asked."""
    now = deps.clock.now()
    if not isinstance(failure, PlannerUnavailable):
        return now + timedelta(seconds=role_candidates.cool_down_sec)
    alone = len(role_candidates.candidates) == 1 or not role_candidates.fallback_on_rate_limit
    if _recovers_by_itself(role_candidates, chosen.name, failure):
        until, known = asked_again_at(failure, len(_waits(deps)), now)
        cooled = now + timedelta(seconds=role_candidates.cool_down_sec)
        return until if known or alone else max(until, cooled)
    fixed = failure.kind in FIXED_BY_A_PERSON
    return now + timedelta(seconds=UNFIXED_SEC if fixed else role_candidates.cool_down_sec)


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


def _must_wait(
    state: TaskContext,
    deps: Deps,
    role_candidates: RoleCandidates,
    accounting: Accounting,
    failed: Mapping[str, Silence],
) -> Exception:
    """Return the wait for the first candidate to be back; an error where the task does not allow
    it.

    Waits without an answer between them are added up: together they must not last forever.
    """
    now, cooling, number = deps.clock.now(), _cooling(state, deps), accounting.counters.meta_calls
    asked: Sequence[Candidate] = role_candidates.candidates
    if not role_candidates.fallback_on_rate_limit:
        only = pick(role_candidates.candidates, {}, now, state["run"].salt, number)
        asked = [only] if only else asked
    ends = {one.name: cooling_until(cooling, "meta", one.name, now) for one in asked}
    until, name = min((at, name) for name, at in ends.items() if at is not None)
    known = failed.get(name)
    trouble = words_of_failure(known) if known else "it is left alone for a while"
    last: Silence = known or next(reversed(list(failed.values())), None) or _cooling_error(name)
    wait = Wait(
        until=stamp(until),
        since=stamp(now),
        reason=f"the planner {name} could not answer, {trouble}",
        role="meta",
        candidate=name,
    )
    waited = sum(map(seconds_of, _waits(deps)))
    limit = deps.spec.runner.budget.wait_sec
    if waited + seconds_of(wait) > limit:
        why = f"The planner {name} could not answer, {trouble}. It would be asked again at "
        why += f"{wait.until}, and runner.budget.wait_sec allows waits of {limit:g} s."
        # Under a new key each time: later waits are counted from here.
        deps.record(state, "warning", f"{PARKED}-{wait.since}", {"code": PARKED, "message": why})
        spent = isinstance(last, PlannerUnavailable) and last.kind == "rate_limit"
        if asks(deps, role_candidates) or not spent:
            for one in failed:
                deps.cooled.pop(f"meta:{one}", None)
            return last
        return PlannerQuotaSpent(
            why,
            remedy=f"agentrunner resume {state['run'].run_id}, after that time",
        )
    return MustWait(wait, accounting.counters)


def _cooling_error(name: str) -> PlannerUnavailable:
    """Return the error of a candidate that was not asked, because its quota was spent before."""
    return PlannerUnavailable(
        f"{name} is left alone because its quota was spent.",
        retryable=False,
        kind="rate_limit",
        candidate=name,
    )


def asks(deps: Deps, role_candidates: RoleCandidates) -> bool:
    """Whether a person is asked where no candidate of this role answers.

    Programs answer the same however often they are asked, and so does a replayed planner.
    """
    by_code = all(answers_by_code(one.client) for one in role_candidates.candidates)
    wanted = deps.spec.runner.meta.on_unusable == "ask"
    return wanted and not by_code and deps.cassette.replay is None
