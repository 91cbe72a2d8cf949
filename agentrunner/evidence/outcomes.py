"""What a run of the test command or of a check says, and what is not believed of it."""

from __future__ import annotations

from typing import Literal

from agentrunner.evidence.box import TIMED_OUT, Ran
from agentrunner.evidence.checks import Command
from agentrunner.evidence.counts import Counts, disbelief
from agentrunner.task.context import CheckOutcome, Criterion, TestOutcome
from agentrunner.task.spec import TestSpec

Colour = Literal["green", "red", "unknown"]


def check_outcome(
    criterion: Criterion,
    command: Command,
    what: str,
    ran: Ran,
    why: str,
    before: Colour = "unknown",
) -> CheckOutcome:
    """What a run of a criterion's check says; `why` is why it never started, "" where it did."""
    passed = ran.exit_code == command.expect_exit and not ran.timed_out
    doubt = disbelief(ran.exit_code, ran.counts, None) if passed else ""
    detail = why or doubt or (f"timed out after {command.timeout_sec:g} s" * ran.timed_out)
    if not (passed or detail) and ran.tail.strip():
        detail = f"exit {ran.exit_code}: {ran.tail.strip().splitlines()[-1][:200]}"
    unsure = bool(why) and criterion.check_origin == "model"
    return CheckOutcome(
        criterion_id=criterion.id,
        what=what,
        outcome="not_run" if unsure else "passed" if passed and not doubt else "failed",
        exit_code=TIMED_OUT if ran.timed_out else ran.exit_code,
        before=before,
        detail=detail,
        output=ran.output,
    )


def outcome_of(
    test: TestSpec, ran: Ran, before: TestOutcome | None, *, fewer_is_wanted: bool = False
) -> TestOutcome:
    """What a run of the test command says, disbelieved where its counts tell otherwise.

    `before` is the same command's outcome on the tree to compare with.
    """
    counts = ran.counts
    finding = disbelief(ran.exit_code, counts, counts_of(before), fewer_is_wanted=fewer_is_wanted)
    if ran.timed_out:
        finding = f"timed out after {test.timeout_sec:g} s"
    return TestOutcome(
        command=test.command,
        exit_code=ran.exit_code,
        passed=counts.passed if counts else None,
        failed=counts.failed if counts else None,
        skipped=counts.skipped if counts else None,
        errors=counts.errors if counts else 0,
        failing=counts.failing if counts else [],
        finding=finding,
        output=ran.output,
        tail=ran.tail,
        duration_sec=ran.duration_sec,
    )


def counts_of(outcome: TestOutcome | None) -> Counts | None:
    """How many tests an outcome is of; None where its output does not tell."""
    if outcome is None or outcome.passed is None:
        return None
    return Counts(outcome.passed, outcome.failed or 0, outcome.skipped or 0, errors=outcome.errors)
