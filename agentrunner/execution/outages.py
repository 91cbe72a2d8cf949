"""A planner that is away: whether that ends by itself, when it is asked again, for how long.

Shared by runs, whose wait is a step of the graph, and by conversations about a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from agentrunner.config.kinds import planner_kind
from agentrunner.config.origins import origin_of
from agentrunner.config.spec import TaskSpec
from agentrunner.execution.deps import Clock
from agentrunner.execution.quota import next_try, seconds_of
from agentrunner.planners.base import (
    PlannerClient,
    PlannerUnavailable,
    PlannerUnusable,
    answers_by_code,
)
from agentrunner.planners.faults import is_outage
from agentrunner.planners.panel import Candidate, Role
from agentrunner.protocol.message import MessageType
from agentrunner.state.worker_runs import Wait

ADDRESS = "runner.meta.base_url"
OUTAGE_BACKOFF_SEC = (10.0, 30.0, 90.0, 300.0)
"""Waits for a planner that is unavailable. The last one repeats, within budget.wait_sec."""
LOOK_SEC = 5.0
"""How often the time of day is checked, so that a machine that slept continues soon after it
wakes."""
ASKED_FOR: Mapping[MessageType, str] = {
    "plan_task": "the plan",
    "next_action": "the next step",
    "completion_assessment": "a judgement of the work",
    "decompose": "a plan",
    "plan_patch": "a change of the plan",
}
"""What a planner is asked for, in words."""


def ends_by_itself(client: PlannerClient, failure: PlannerUnavailable | PlannerUnusable) -> bool:
    """Whether this client's trouble ends without a person after a while."""
    if not is_outage(failure):
        return False
    spent = isinstance(failure, PlannerUnavailable) and failure.kind == "rate_limit"
    return spent or not answers_by_code(client)


def asked_again_at(failure: PlannerUnavailable, waits: int, now: datetime) -> tuple[datetime, bool]:
    """Return when a planner that is away is asked again, and whether its provider gave that time.

    `waits` is the number of waits in a row.
    """
    if failure.kind == "rate_limit":
        return next_try(waits, failure.reset_at, now)
    seconds = OUTAGE_BACKOFF_SEC[min(waits, len(OUTAGE_BACKOFF_SEC) - 1)]
    return now + timedelta(seconds=seconds), False


def waited_sec(waits: Sequence[Wait]) -> float:
    """Return the length of these waits together, in seconds."""
    return sum(map(seconds_of, waits))


def is_too_long(wait: Wait, before: Sequence[Wait], limit: float) -> bool:
    """Whether a wait and those before it are together longer than the seconds in `limit`.

    Waits without an answer between them are added up: together they must not last forever.
    """
    return waited_sec([*before, wait]) > limit


def remedy_of(
    reason: str,
    failed: Candidate,
    spec: TaskSpec,
    environ: Mapping[str, str],
    *,
    verb: str,
    model: str,
    again: str,
    role: Role = "meta",
) -> str:
    """Return what a person may do, in a sentence without capital and full stop.

    `verb` and `model` are how they name another model, `again` is how they ask once more.
    """
    kind = planner_kind(failed.name.partition(":")[0])
    key = str(getattr(failed.client, "key_name", ""))
    place = _with_origin(f"runner.{'assess' if role == 'assess' else 'meta'}.model", spec, environ)
    address = _with_origin(ADDRESS, spec, environ)
    if reason == "auth":
        if key:
            return f"set {key} to a key that is good, and {again} from a shell that has it"
        return f"log in again, or give it a key that is good, then {again}"
    if reason == "model":
        where = f"; its address is {address}" if address != ADDRESS else ""
        return f"{verb} {model} with one that the provider has ({place}){where}"
    if reason in ("context", "filter", "cut", "unusable"):
        return f"another model may do better: {model} ({place})"
    if reason in ("quota", "rate_limit"):
        return f"raise the quota or wait, then {again}"
    if kind.url_variable and reason in ("network", "server", "overload"):
        return f"see whether its server is up ({address}), then {again}"
    return f"see what `agentrunner doctor --planner` finds, then {again}"


def _with_origin(name: str, spec: TaskSpec, environ: Mapping[str, str]) -> str:
    """Return the setting, with the place or variable that its value comes from."""
    origin = origin_of(name, spec.runner, spec.places, environ)
    return f"{name}, from {origin}" if origin else name


async def sleep_until(until: datetime, clock: Clock) -> None:
    """Sleep until a time, but not longer than it is away now, should the clock be set back."""
    longest = clock.monotonic() + (until - clock.now()).total_seconds()
    while (
        remaining := min((until - clock.now()).total_seconds(), longest - clock.monotonic())
    ) > 0:
        await clock.sleep(min(remaining, LOOK_SEC))
