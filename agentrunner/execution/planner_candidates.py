"""The candidates of a role of the meta-agent, asked in turn until one of them answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from datetime import datetime, timedelta
from typing import TypeVar

from agentrunner.errors import InfraError
from agentrunner.execution.accounting import Accounting
from agentrunner.execution.deps import Deps
from agentrunner.execution.quota import MustWait, cooling_until, next_try, seconds_of, stamp
from agentrunner.planners.base import MessageType, MetaClient, MetaRequest, MetaUnavailable, Reply
from agentrunner.planners.panel import Candidate, Panel, RoleCandidates, pick, role_of
from agentrunner.state.run_state import TaskContext, Wait

MENDED_BY_A_PERSON = ("auth", "model")
UNMENDED_SEC = 86_400.0
"""For so long a candidate is left alone whose key or model is refused, where another answers."""

PARKED = "meta-quota"
"""Of the warning that a run stopped because a wait would be too long."""

Answered = TypeVar("Answered")


class Chosen:
    """One candidate as a client; its name is on what it answers."""

    kind = "candidate"

    def __init__(self, panel: Panel, candidate: Candidate) -> None:
        self._panel = panel
        self._candidate = candidate

    def describe(self) -> str:
        """As the client itself."""
        return self._candidate.client.describe()

    async def complete(self, request: MetaRequest) -> Reply:
        """One attempt of this candidate; raises as its client."""
        return await self._panel.complete_by(self._candidate, request)

    async def close(self) -> None:
        """The panel closes its clients."""


async def ask_in_turn(
    state: TaskContext,
    deps: Deps,
    message: MessageType,
    tally: Accounting,
    ask: Callable[[MetaClient], Awaitable[Answered]],
    *,
    turn: int = 0,
) -> Answered:
    """What `ask` gets from the first candidate of the role that answers; of several votes on one
    thing, the one of `turn` n begins with the n-th.

    Raises MustWait where the quota of each is spent, Surroundings (`meta-quota`) where that is
    for longer than the task may wait, and the last one's error where it is of another kind.
    """
    seat = deps.meta.seat(role_of(message))
    failed: set[str] = set()  # by name; a short cool-down must not bring them back in a circle
    while True:
        chosen = _choice(state, deps, seat, tally, turn, failed)
        if chosen is None:
            raise _must_wait(state, deps, seat, tally)
        try:
            return await ask(Chosen(deps.meta, chosen))
        except MetaUnavailable as failure:
            failed.add(chosen.name)
            deps.cooled[f"meta:{chosen.name}"] = stamp(_until(deps, seat, failure))
            following = _choice(state, deps, seat, tally, turn, failed)
            if following is not None:
                said = f"{chosen.name} does not answer, {following.name} does: {failure.message}"
                deps.warn(state, "fail-over", said[:500])
            elif failure.kind != "rate_limit":
                del deps.cooled[f"meta:{chosen.name}"]
                raise


def _choice(
    state: TaskContext,
    deps: Deps,
    seat: RoleCandidates,
    tally: Accounting,
    turn: int,
    failed: Set[str],
) -> Candidate | None:
    """Who is asked now, of those that have not `failed`; None where that must wait."""
    now, salt, number = deps.clock.now(), state["run"].salt, tally.counters.meta_calls
    cooling = _cooling(state, deps)
    if seat.fallback_on_rate_limit:
        left = [one for one in seat.candidates if one.name not in failed]
        return pick(left, cooling, now, salt, number, turn=turn)
    chosen = pick(seat.candidates, {}, now, salt, number, turn=turn)
    if chosen is None or chosen.name in failed:
        return None
    return None if cooling_until(cooling, "meta", chosen.name, now) else chosen


def _cooling(state: TaskContext, deps: Deps) -> dict[str, str]:
    return {**state.get("cooling", {}), **deps.cooled}


def _until(deps: Deps, seat: RoleCandidates, failure: MetaUnavailable) -> datetime:
    """How long one is left alone that did not answer."""
    now = deps.clock.now()
    if failure.kind == "rate_limit":
        alone = len(seat.candidates) == 1 or not seat.fallback_on_rate_limit
        until, told = next_try(len(_waits(deps)), failure.reset_at, now)
        cool = now + timedelta(seconds=seat.cool_down_sec)
        return until if told or alone else max(until, cool)
    mended = failure.kind in MENDED_BY_A_PERSON
    return now + timedelta(seconds=UNMENDED_SEC if mended else seat.cool_down_sec)


def _waits(deps: Deps) -> list[Wait]:
    """What was waited for the planner since it last answered, or a person resumed the run."""
    found: list[Wait] = []
    for record in reversed(deps.log.records()):
        answered = record.kind == "meta_call" and not record.data.get("error")
        if answered or (record.kind == "warning" and record.data.get("code") == PARKED):
            break
        if record.kind == "wait" and record.data.get("role") == "meta":
            found.append(Wait.model_validate(record.data))
    return found


def _must_wait(
    state: TaskContext, deps: Deps, seat: RoleCandidates, tally: Accounting
) -> Exception:
    """The wait for the first of them to be back; an error where the task does not allow it.

    Waits without an answer between them are added up: together they must not last for ever.
    """
    now, cooling, number = deps.clock.now(), _cooling(state, deps), tally.counters.meta_calls
    asked: Sequence[Candidate] = seat.candidates
    if not seat.fallback_on_rate_limit:
        only = pick(seat.candidates, {}, now, state["run"].salt, number)
        asked = [only] if only else asked
    ends = {one.name: cooling_until(cooling, "meta", one.name, now) for one in asked}
    until, name = min((at, name) for name, at in ends.items() if at is not None)
    wait = Wait(
        until=stamp(until),
        since=stamp(now),
        reason=f"the planner {name} could not answer, its quota is spent",
        role="meta",
        candidate=name,
    )
    waited = sum(map(seconds_of, _waits(deps)))
    limit = deps.spec.runner.budget.wait_sec
    if waited + seconds_of(wait) > limit:
        why = f"The planner's quota is spent until {wait.until}, and runner.budget.wait_sec allows "
        why += f"waits of {limit:g} s."
        # Under a key of its own each time: the waits that come later are counted from here.
        deps.record(state, "warning", f"{PARKED}-{wait.since}", {"code": PARKED, "message": why})
        return InfraError(
            why,
            code="meta-quota",
            remedy=f"agentrunner resume {state['run'].run_id}, after that time",
        )
    return MustWait(wait, tally.counters)
