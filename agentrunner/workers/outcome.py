"""The outcome of a worker run, from all its witnesses: supervisor, CLI, gateway and snapshots.

No exit code and no "success" is trusted alone. The supervisor knows how the process ended, the
gateway whether the model answered, the snapshots whether anything was changed; the CLI's own stream
decides only if none of them contradicts it.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from agentrunner.gateway.usage import ErrorClass, ModelCall
from agentrunner.state.worker_runs import Outcome
from agentrunner.workers.base import Ended, FailureKind, Reports, WorkerReading
from agentrunner.workers.streams import clip, ended_by

GATEWAY_KINDS: dict[ErrorClass, FailureKind] = {
    "auth": "auth",
    "model": "model",
    "quota": "rate_limit",
    "overload": "rate_limit",
    "context": "context",
    "request": "protocol",
    "server": "server",
    "network": "network",
    "budget": "budget",
    "replay": "protocol",
}
"""The outcome of a run whose last model call failed."""

STUCK_AT_MODEL = ("retry_storm", "idle_timeout")
"""Ends of a worker that may have been waiting for its model, whose error is then the cause."""


class WorkerOutcome(NamedTuple):
    """The outcome of a run."""

    outcome: Outcome
    error: str = ""
    """At most 600 characters; "" for a completed run."""
    reset_at: str = ""
    """When a spent quota is available again, if known: UTC, ISO 8601."""


def outcome_of(
    ended: Ended,
    reading: WorkerReading,
    *,
    gateway_error: ModelCall | None,
    changed: int,
    reports: Reports,
) -> WorkerOutcome:
    """Return the outcome of the run.

    `gateway_error` is its last model call, if that failed; `changed` counts the files that differ
    by snapshot. A run that was ended is never completed, whatever it printed, except one that had
    printed everything and only did not exit.
    """
    if not ended.by_itself:
        return _stopped(ended, reading, gateway_error)
    if gateway_error is not None:
        return _failed_call(gateway_error, reading)
    if reading.failure is not None and not reading.completed:
        failure = reading.failure
        return WorkerOutcome(failure.kind, reading.error or failure.message, failure.reset_at)
    if reading.denied:
        return WorkerOutcome(
            "denied", clip(f"it was not allowed to use: {', '.join(reading.denied)}")
        )
    if not reading.completed:
        # Exit 0 without its last word: something other than us has stopped it.
        cut = reading.cut_off and ended.exit_code == 0
        return WorkerOutcome("interrupted" if cut else "failed", reading.error)
    if reports.actions and reading.actions == 0 and not changed:
        return WorkerOutcome("no_op", "it used no tool and changed nothing")
    return WorkerOutcome("completed")


def _stopped(
    ended: Ended, reading: WorkerReading, gateway_error: ModelCall | None
) -> WorkerOutcome:
    how = ended_by(ended.outcome)
    if ended.outcome == "login_prompt":
        return WorkerOutcome("auth", how)
    if ended.outcome in STUCK_AT_MODEL and gateway_error is not None:
        outcome = _failed_call(gateway_error, reading)
        return outcome._replace(error=clip(f"{how}: {outcome.error}"))
    if ended.outcome == "retry_storm":
        failure = reading.failure
        if failure is None:
            return WorkerOutcome("server", how)
        return WorkerOutcome(failure.kind, clip(f"{how}: {failure.message}"), failure.reset_at)
    error = reading.error or how
    if gateway_error is not None:
        error = clip(f"{error}; {_words(gateway_error)}")
    return WorkerOutcome(cast("Outcome", ended.outcome), error)


def _failed_call(call: ModelCall, reading: WorkerReading) -> WorkerOutcome:
    """Return the outcome of a failed model call; the gateway overrides the CLI's own words."""
    assert call.error is not None
    kind, error, reset_at = GATEWAY_KINDS[call.error], _words(call), ""
    if kind == "rate_limit":
        reset_at = call.reset_at or (reading.failure.reset_at if reading.failure else "")
        error += f"; again from {reset_at}" if reset_at else ""
    return WorkerOutcome(kind, clip(error), reset_at)


def _words(call: ModelCall) -> str:
    return f"its model calls failed ({call.error}): {call.detail}"
