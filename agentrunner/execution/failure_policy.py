"""What follows a worker run that its model or its CLI kept from working. Pure.

Only a run without any result for lack of a provider is started again without a new decision. It is
no round of work, and a planner that saw it would order the same once more. So is one whose command
cannot work, by the next candidate; where there is none, and with a problem of a key or a model, a
person is asked, who has to fix it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from agentrunner.config.agents import WorkerRoleSpec
from agentrunner.errors.workers import (
    WorkerAuthRefused,
    WorkerCannotWork,
    WorkerModelRefused,
    WorkerQuotaSpent,
    WorkerServerFailed,
    WorkerUnreachable,
)
from agentrunner.execution.quota import (
    QUOTA_BACKOFF_SEC,
    cooling_until,
    free_workers,
    next_try,
)
from agentrunner.state.worker_runs import Outcome, Wait, WorkerOrder, WorkerRun
from agentrunner.text.times import moment, stamp

FAULT_BACKOFF_SEC = (10.0, 30.0, 90.0)
"""Waits for a provider that fails or cannot be reached; after them a person is asked."""
PERSON_AT_ONCE = ("auth", "model")
FAULTS = ("server", "network")


class FailureCause(Struct, frozen=True):
    """Why a worker could not work."""

    code: str
    """The reason of a run that ends with it."""
    words: str
    """What it means, for people."""


TROUBLES: Mapping[Outcome, FailureCause] = {
    "auth": FailureCause(code=WorkerAuthRefused.code, words="its credential is refused"),
    "model": FailureCause(code=WorkerModelRefused.code, words="its model is unavailable"),
    "rate_limit": FailureCause(code=WorkerQuotaSpent.code, words="its quota is spent"),
    "server": FailureCause(code=WorkerServerFailed.code, words="its provider fails"),
    "network": FailureCause(code=WorkerUnreachable.code, words="its provider cannot be reached"),
    "failed": FailureCause(code=WorkerCannotWork.code, words="its command fails"),
}
"""The cause by the outcome of the worker run."""
UNFIXED_SEC = 86_400.0
"""How long a candidate whose command cannot work is left alone where another one works: a person
has to fix it."""
NOT_STARTED = (126, 127)
"""Exit codes by which a shell, and what starts programs as one does, says that there is no program
or none that can be executed."""


class FailureFacts(Struct, frozen=True):
    """The facts that the decision is based on."""

    run: WorkerRun
    """The run that has just ended."""
    order: WorkerOrder
    """The order that the run was started for."""
    earlier: Sequence[WorkerRun]
    """Earlier tries of the order, the latest last."""
    latest: Mapping[str, WorkerRun]
    """The latest run of each candidate before this one, of whatever order."""
    candidates: Sequence[str]
    """All candidates for the worker, in order of preference."""
    cooling: Mapping[str, str]
    profile: WorkerRoleSpec
    wait_sec: float
    """The longest wait that no person is asked about."""
    now: datetime
    """UTC."""


class Continue(Struct, frozen=True):
    """Go on to `validate`, as after any run."""


class StartAfresh(Struct, frozen=True):
    """Give the same order in a new session: the old one is gone."""


class UseAnother(Struct, frozen=True):
    """Give the same order to another candidate, in a session of its own."""

    member: str
    until: str
    """When the first candidate may be used again."""


class WaitUntil(Struct, frozen=True):
    """Give the same order to `member` when the wait is over."""

    member: str
    wait: Wait


class AskPerson(Struct, frozen=True):
    """Ask a person, who fixes the problem and has it tried again, or ends the run."""

    why: str
    """One sentence."""


NextStep = Continue | StartAfresh | UseAnother | WaitUntil | AskPerson


def next_step(facts: FailureFacts) -> NextStep:
    """Return what follows this worker run."""
    run = facts.run
    if run.session_lost and facts.order.mode == "resume":
        return StartAfresh()
    if run.outcome in PERSON_AT_ONCE:
        return AskPerson(_why(facts))
    if run.outcome == "rate_limit":
        return _after_spent_quota(facts)
    if run.outcome in FAULTS:
        return _after_fault(facts)
    return _after_no_work(facts) if _cannot_work(facts) else Continue()


def _cannot_work(facts: FailureFacts) -> bool:
    """Whether the worker would fail in every further round, whatever it is told to do.

    It could not be started, or it did nothing and failed as the time before: with the same error,
    or, where it wrote none, with the same output, which may be empty.
    """
    run, before = facts.run, facts.latest.get(facts.run.member)
    if not _did_nothing(run):
        return False
    if run.exit_code in NOT_STARTED:
        return True
    return before is not None and _did_nothing(before) and _failure(run) == _failure(before)


def _did_nothing(run: WorkerRun) -> bool:
    return run.outcome == "failed" and not run.changed_files and not run.commands


def _failure(run: WorkerRun) -> tuple[object, ...]:
    wrote = run.errors or run.output
    return (run.exit_code, run.errors is None, wrote.sha256 if wrote else "")


def _after_no_work(facts: FailureFacts) -> NextStep:
    """Let the next candidate try the order; a person hears of all that cannot work."""
    free = _free_candidates(facts)
    if free:
        return UseAnother(free[0], stamp(facts.now + timedelta(seconds=UNFIXED_SEC)))
    unable = [name for name in facts.candidates if _is_unable(facts, name)]
    others = [_why_unable(name, facts.latest.get(name)) for name in unable]
    return AskPerson("; ".join([*others, _why(facts)]))


def _is_unable(facts: FailureFacts, name: str) -> bool:
    """Whether this other candidate is left alone because its command cannot work."""
    until = cooling_until(facts.cooling, "unable", name, facts.now)
    return name != facts.run.member and until is not None


def _why_unable(name: str, latest: WorkerRun | None) -> str:
    """Return why a candidate cannot work; of a run long ago no more is known than that."""
    if latest is not None and latest.outcome == "failed":
        return _why_of(latest)
    return f"{name} could not work, {TROUBLES['failed'].words}"


def _free_candidates(facts: FailureFacts) -> list[str]:
    """Return the other candidates that are not left alone, in order of preference."""
    others = [name for name in facts.candidates if name != facts.run.member]
    return free_workers(facts.cooling, others, facts.now)


def waits_in_a_row(facts: FailureFacts) -> int:
    """Return how often the run waited for the same problem without any result in between."""
    previous = facts.earlier[-1] if facts.earlier else None
    repeated = previous is not None and previous.outcome == facts.run.outcome
    return facts.order.waits if repeated and not facts.run.changed_files else 0


def _after_spent_quota(facts: FailureFacts) -> NextStep:
    own = next_try(waits_in_a_row(facts), facts.run.reset_at, facts.now)
    if facts.profile.fallback_on_rate_limit:
        if free := _free_candidates(facts):
            return UseAnother(free[0], stamp(cool_until(facts)))
        others = [
            name
            for name in facts.candidates
            if name != facts.run.member and not _is_unable(facts, name)
        ]
        until = {name: cooling_until(facts.cooling, "worker", name, facts.now) for name in others}
        returning = [(ends, name) for name, ends in until.items() if ends is not None]
        if returning and min(returning)[0] < own[0]:
            soonest, name = min(returning)
            return _within_limit(facts, name, soonest, known=True)
    return _within_limit(facts, facts.run.member, *own)


def waited_so_far(facts: FailureFacts) -> float:
    """Return the seconds waited for this order since a try of it last changed a file."""
    return 0 if facts.run.changed_files else facts.order.waited_sec


def cool_until(facts: FailureFacts) -> datetime:
    """Return until when this run's candidate is not used where another takes over.

    At first that is the reset time the provider gave, or the task's cool-down. It grows each time
    the quota is spent again: candidates whose quota is never there would follow each other in a
    tight loop.
    """
    reset = moment(facts.run.reset_at)
    if reset is None or reset <= facts.now:
        reset = facts.now + timedelta(seconds=facts.profile.cool_down_sec)
    repeats = sum(earlier.member == facts.run.member for earlier in facts.earlier)
    if not repeats or facts.run.changed_files:
        return reset
    grown = QUOTA_BACKOFF_SEC[min(repeats, len(QUOTA_BACKOFF_SEC) - 1)]
    return max(reset, facts.now + timedelta(seconds=grown))


def _after_fault(facts: FailureFacts) -> NextStep:
    waits = waits_in_a_row(facts)
    if waits >= len(FAULT_BACKOFF_SEC):
        return AskPerson(_why(facts))
    until = facts.now + timedelta(seconds=FAULT_BACKOFF_SEC[waits])
    return _within_limit(facts, facts.run.member, until, known=False)


def _within_limit(facts: FailureFacts, member: str, until: datetime, known: bool) -> NextStep:
    """Return the wait, or the question to a person where it is longer than the task allows.

    Waits without a result are added up: each may be short, but together they must not last forever.
    """
    seconds = (until - facts.now).total_seconds()
    if seconds + waited_so_far(facts) > facts.wait_sec:
        return AskPerson(
            f"{_why(facts)}. It would be tried again at {until:%Y-%m-%d %H:%M:%S} UTC, and "
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
    return _why_of(facts.run)


def _why_of(run: WorkerRun) -> str:
    return f"{run.member or run.worker} could not work, {trouble_of(run)}"


def trouble_of(run: WorkerRun) -> str:
    """Return why a run could not work, for people, without a full stop."""
    error = f": {run.error}" if run.error else ""
    return f"{TROUBLES[run.outcome].words}{error}".rstrip(". ")
