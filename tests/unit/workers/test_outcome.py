"""Rules 1-7 of outcome truth: what a run came to, whatever its CLI says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from agentrunner.gateway.usage import ErrorClass, ModelCall
from agentrunner.state.worker_runs import Outcome
from agentrunner.workers.base import (
    CommandRun,
    Ended,
    Failure,
    FailureKind,
    ProcessOutcome,
    Reports,
    WorkerReading,
)
from agentrunner.workers.outcome import GATEWAY_KINDS, WorkerOutcome, outcome_of

NONE = Path("/nonexistent")
RESET = "2026-11-21T15:00:00Z"
TELLS_ALL = Reports(actions=True)
DONE = WorkerReading(completed=True, actions=3)
NOTHING_DONE = WorkerReading(completed=True, actions=0)
DENIED = WorkerReading(completed=True, actions=2, denied=("Bash", "Write"))
CUT_OFF = WorkerReading(completed=False, cut_off=True, error="exit code 0 without the end")


def ended(outcome: ProcessOutcome = "exited", exit_code: int | None = 0) -> Ended:
    return Ended(exit_code, outcome, NONE, NONE)


def failed(kind: FailureKind, reset_at: str = "") -> WorkerReading:
    failure = Failure(kind, "no", reset_at)
    return WorkerReading(completed=False, actions=0, failure=failure, error="it said no")


def refused_call(error: ErrorClass, reset_at: str | None = None) -> ModelCall:
    return ModelCall(
        ts=RESET, label="w1", n=1, path="/v1/responses", model="m", status=400, duration_ms=1,
        input_tokens=None, cached_tokens=None, output_tokens=None, usd=0, error=error,
        reset_at=reset_at, detail="said the provider",
    )  # fmt: skip


def came(
    end: Ended,
    reading: WorkerReading,
    gateway: ModelCall | None = None,
    changed: int = 0,
    reports: Reports = TELLS_ALL,
) -> WorkerOutcome:
    return outcome_of(end, reading, gateway_error=gateway, changed=changed, reports=reports)


@pytest.mark.parametrize(
    ("end", "reading", "gateway", "changed", "outcome"),
    [
        # What was done is done, by a tool or by a file that differs.
        (ended(), DONE, None, 0, "completed"),
        (ended(), NOTHING_DONE, None, 1, "completed"),
        (ended(), NOTHING_DONE, None, 0, "no_op"),
        (ended(), replace(NOTHING_DONE, actions=None), None, 0, "completed"),
        (ended("lingered", None), DONE, None, 1, "completed"),
        (ended("lingered", -15), failed("auth"), None, 1, "auth"),
        # Not what a CLI calls a success.
        (ended(), DENIED, None, 4, "denied"),
        (ended(), CUT_OFF, None, 4, "interrupted"),
        (ended(exit_code=1), CUT_OFF, None, 4, "failed"),
        (ended(exit_code=1), WorkerReading(completed=False), None, 0, "failed"),
        (ended(), failed("auth"), None, 0, "auth"),
        (ended(exit_code=1), failed("context"), None, 2, "context"),
        # The gateway has seen it, whatever the CLI says or hides.
        (ended(), DONE, refused_call("quota"), 3, "rate_limit"),
        (ended(), DENIED, refused_call("auth"), 3, "auth"),
        (ended(exit_code=1), failed("server"), refused_call("auth"), 0, "auth"),
        (ended(exit_code=1), failed("network"), refused_call("budget"), 0, "budget"),
        (ended(exit_code=1), failed("auth"), refused_call("request"), 0, "protocol"),
        # Whom we have stopped is stopped, whatever it printed.
        (ended("interrupted"), DONE, None, 3, "interrupted"),
        (ended("interrupted", 0), DONE, refused_call("auth"), 3, "interrupted"),
        (ended("timeout"), failed("server"), None, 0, "timeout"),
        (ended("timeout"), DONE, refused_call("quota"), 0, "timeout"),
        (ended("egress"), DONE, None, 0, "egress"),
        (ended("idle_timeout"), DONE, None, 0, "idle_timeout"),
        (ended("idle_timeout"), DONE, refused_call("overload"), 0, "rate_limit"),
        (ended("login_prompt"), DONE, None, 0, "auth"),
        (ended("retry_storm"), WorkerReading(completed=False), None, 0, "server"),
        (ended("retry_storm"), failed("rate_limit"), None, 0, "rate_limit"),
        (ended("retry_storm"), failed("rate_limit"), refused_call("auth"), 0, "auth"),
        (ended("lost", None), WorkerReading(completed=False), None, 0, "lost"),
        (ended("infra", None), WorkerReading(completed=False), None, 0, "infra"),
    ],
)
def test_what_a_run_came_to(
    end: Ended, reading: WorkerReading, gateway: ModelCall | None, changed: int, outcome: Outcome
) -> None:
    result = came(end, reading, gateway, changed)
    assert result.outcome == outcome
    assert bool(result.error) == (outcome != "completed") or not (reading.error or gateway)


def test_a_cli_that_does_not_tell_of_its_tools_is_not_called_idle() -> None:
    assert came(ended(), NOTHING_DONE, reports=Reports()).outcome == "completed"


def test_commands_that_a_worker_only_claims_are_no_actions() -> None:
    claims = replace(NOTHING_DONE, commands=(CommandRun("make test", status="passed"),))
    assert came(ended(), claims).outcome == "no_op"


@pytest.mark.parametrize("error", get_args(ErrorClass))
def test_every_error_of_the_gateway_is_an_outcome(error: ErrorClass) -> None:
    result = came(ended(), DONE, refused_call(error))
    assert result.outcome == GATEWAY_KINDS[error]
    assert result.outcome in get_args(Outcome)
    assert "said the provider" in result.error


@pytest.mark.parametrize("outcome", get_args(ProcessOutcome))
def test_every_end_of_a_process_is_an_outcome(outcome: ProcessOutcome) -> None:
    assert came(ended(outcome), DONE, None, 1).outcome in get_args(Outcome)


def test_the_reset_is_the_gateways_else_the_clis() -> None:
    told = failed("rate_limit", "2026-11-21T14:00:00Z")
    assert came(ended(), told, refused_call("quota", RESET)).reset_at == RESET
    assert came(ended(), told, refused_call("quota")).reset_at == "2026-11-21T14:00:00Z"
    assert came(ended(), told).reset_at == "2026-11-21T14:00:00Z"
    assert came(ended(), told, refused_call("server", RESET)).reset_at == ""


def test_what_was_denied_is_named() -> None:
    assert came(ended(), DENIED).error == "it was not allowed to use: Bash, Write"


def test_a_stopped_run_keeps_what_the_gateway_saw() -> None:
    error = came(ended("timeout"), WorkerReading(False), refused_call("server")).error
    assert error == "ended by timeout; its model calls failed (server): said the provider"
