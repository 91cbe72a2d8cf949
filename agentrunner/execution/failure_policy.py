"""What comes after a worker run that its model or its CLI kept from working. Pure.

Only a run that came to nothing for want of a provider is begun again without a new decision: it
is no round of work, and a planner that is told of it would order the same once more. Whatever is
wrong with a key or a model is a person's to fix, at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agentrunner.config.agents import WorkerRoleSpec
from agentrunner.errors.workers import (
    WorkerAuthRefused,
    WorkerModelRefused,
    WorkerQuotaSpent,
    WorkerServerFailed,
    WorkerUnreachable,
)
from agentrunner.execution.quota import QUOTA_BACKOFF_SEC, cooling_until, moment, next_try, stamp
from agentrunner.state.worker_runs import Outcome, Wait, WorkerOrder, WorkerRun

FAULT_BACKOFF_SEC = (10.0, 30.0, 90.0)
"""Waits for a provider that fails or cannot be reached; then a person is asked."""
PERSON_AT_ONCE = ("auth", "model")
FAULTS = ("server", "network")


@dataclass(frozen=True)
class FailureCause:
    """Why a worker could not work."""

    code: str
    """The reason of a run that ends with it."""
    words: str
    """What it means, for people."""


TROUBLES: Mapping[Outcome, FailureCause] = {
    "auth": FailureCause(code=WorkerAuthRefused.code, words="its credential is refused"),
    "model": FailureCause(code=WorkerModelRefused.code, words="its model is not to be had"),
    "rate_limit": FailureCause(code=WorkerQuotaSpent.code, words="its quota is spent"),
    "server": FailureCause(code=WorkerServerFailed.code, words="its provider fails"),
    "network": FailureCause(code=WorkerUnreachable.code, words="its provider cannot be reached"),
}
"""By the outcome that a run came to."""


@dataclass(frozen=True)
class FailureFacts:
    """What is decided from."""

    run: WorkerRun
    """The run that has just ended."""
    order: WorkerOrder
    """What it was to do."""
    earlier: Sequence[WorkerRun]
    """The runs before it, the latest last."""
    candidates: Sequence[str]
    """All who may work, in order of preference."""
    cooling: Mapping[str, str]
    profile: WorkerRoleSpec
    wait_sec: float
    """The longest wait that nobody is asked about."""
    now: datetime
    """UTC."""


@dataclass(frozen=True)
class Continue:
    """Look at what it did: `validate`, as after any run."""


@dataclass(frozen=True)
class StartAfresh:
    """The same order in a new session: the old one is gone."""


@dataclass(frozen=True)
class FailOver:
    """The same order by another candidate, in a session of its own."""

    member: str
    until: str
    """When the first one may be asked again."""


@dataclass(frozen=True)
class WaitUntil:
    """The same order when the wait is over, by `member`."""

    member: str
    wait: Wait


@dataclass(frozen=True)
class AskPerson:
    """A person fixes what is wrong, and has it tried again; or ends the run."""

    why: str
    """One sentence."""


NextStep = Continue | StartAfresh | FailOver | WaitUntil | AskPerson


def next_step(facts: FailureFacts) -> NextStep:
    """What comes after this run."""
    run = facts.run
    if run.session_lost and facts.order.mode == "resume":
        return StartAfresh()
    if run.outcome in PERSON_AT_ONCE:
        return AskPerson(_why(facts))
    if run.outcome == "rate_limit":
        return _after_spent_quota(facts)
    if run.outcome in FAULTS:
        return _after_fault(facts)
    return Continue()


def waits_in_a_row(facts: FailureFacts) -> int:
    """How often it was waited for the very same without anything that came of it."""
    before = facts.earlier[-1] if facts.earlier else None
    again = before is not None and before.outcome == facts.run.outcome
    return facts.order.waits if again and not facts.run.changed_files else 0


def _after_spent_quota(facts: FailureFacts) -> NextStep:
    own = next_try(waits_in_a_row(facts), facts.run.reset_at, facts.now)
    if facts.profile.fallback_on_rate_limit:
        others = [name for name in facts.candidates if name != facts.run.member]
        until = {name: cooling_until(facts.cooling, "worker", name, facts.now) for name in others}
        free = next((name for name in others if until[name] is None), None)
        if free is not None:
            return FailOver(free, stamp(cool_until(facts)))
        back = [(ends, name) for name, ends in until.items() if ends is not None]
        if back and min(back)[0] < own[0]:
            soonest, name = min(back)
            return _within_limit(facts, name, soonest, known=True)
    return _within_limit(facts, facts.run.member, *own)


def waited_so_far(facts: FailureFacts) -> float:
    """Seconds that were waited for this order since a try of it last came to something."""
    return 0 if facts.run.changed_files else facts.order.waited_sec


def cool_until(facts: FailureFacts) -> datetime:
    """How long the candidate of this run is left alone where another goes on.

    At first as was told, or as the task says. One that is spent again is left alone for ever
    longer: candidates whose quota is never there would follow each other in a tight circle.
    """
    reset = moment(facts.run.reset_at)
    if reset is None or reset <= facts.now:
        reset = facts.now + timedelta(seconds=facts.profile.cool_down_sec)
    again = sum(one.member == facts.run.member for one in facts.earlier)
    if not again or facts.run.changed_files:
        return reset
    grown = QUOTA_BACKOFF_SEC[min(again, len(QUOTA_BACKOFF_SEC) - 1)]
    return max(reset, facts.now + timedelta(seconds=grown))


def _after_fault(facts: FailureFacts) -> NextStep:
    waits = waits_in_a_row(facts)
    if waits >= len(FAULT_BACKOFF_SEC):
        return AskPerson(_why(facts))
    until = facts.now + timedelta(seconds=FAULT_BACKOFF_SEC[waits])
    return _within_limit(facts, facts.run.member, until, known=False)


def _within_limit(facts: FailureFacts, member: str, until: datetime, known: bool) -> NextStep:
    """The wait, or a person's word where it is longer than the task allows.

    Waits that nothing came of are added up: each may be short, and all of them must not last for
    ever.
    """
    seconds = (until - facts.now).total_seconds()
    if seconds + waited_so_far(facts) > facts.wait_sec:
        return AskPerson(
            f"{_why(facts)}. It would be tried again at {stamp(until)}, and "
            f"runner.budget.wait_sec allows waits of {facts.wait_sec:g} s"
        )
    wait = Wait(
        until=stamp(until),
        since=stamp(facts.now),
        reason=_why(facts)[:600],
        role="worker",
        candidate=member,
        back_to="run_worker",
        told=known,
    )
    return WaitUntil(member, wait)


def _why(facts: FailureFacts) -> str:
    run = facts.run
    error = f": {run.error}" if run.error else ""
    return (
        f"{run.member or run.worker} could not work, {TROUBLES[run.outcome].words}{error}".rstrip(
            ". "
        )
    )
