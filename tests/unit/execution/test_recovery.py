"""What comes after a worker run that could not work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from agentrunner.config.agents import WorkerRoleSpec
from agentrunner.execution.failure_policy import (
    FAULT_BACKOFF_SEC,
    UNFIXED_SEC,
    AskPerson,
    Continue,
    FailureFacts,
    StartAfresh,
    UseAnother,
    WaitUntil,
    next_step,
)
from agentrunner.execution.quota import (
    QUOTA_BACKOFF_SEC,
    SETTLE_SEC,
    cooled,
    cooling_until,
    seconds_of,
)
from agentrunner.state.state_model import FileRef
from agentrunner.state.worker_runs import Outcome, WorkerOrder, WorkerRun
from agentrunner.text.times import moment, stamp

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def at(seconds: float) -> str:
    return stamp(NOW + timedelta(seconds=seconds))


def ended(outcome: Outcome, member: str = "codex", **more: Any) -> WorkerRun:
    return WorkerRun(
        worker_run_id="1-001", worker="codex-cli", member=member, loop=0, outcome=outcome, **more
    )


def facts(
    run: WorkerRun,
    *,
    candidates: tuple[str, ...] = ("codex",),
    earlier: tuple[WorkerRun, ...] = (),
    cooling: dict[str, str] | None = None,
    wait_sec: float = 3600,
    profile: WorkerRoleSpec | None = None,
    before: WorkerRun | None = None,
    latest: dict[str, WorkerRun] | None = None,
    **order: Any,
) -> FailureFacts:
    fixed = {"worker_run_id": "1-001", "worker": "codex-cli", "member": run.member, **order}
    return FailureFacts(
        run=run,
        order=WorkerOrder(prompt=FileRef(path="p"), **fixed),
        earlier=earlier,
        latest=latest or ({before.member: before} if before else {}),
        candidates=candidates,
        cooling=cooling or {},
        profile=profile or WorkerRoleSpec(),
        wait_sec=wait_sec,
        now=NOW,
    )


def waited(step: object) -> tuple[str, float, bool]:
    assert isinstance(step, WaitUntil), step
    assert step.wait.candidate == step.member and step.wait.back_to == "run_worker"
    return step.member, seconds_of(step.wait), step.wait.told


HANDLED = {"auth", "model", "rate_limit", "server", "network"}


@pytest.mark.parametrize("outcome", sorted(set(get_args(Outcome)) - HANDLED))
def test_all_else_is_looked_at_as_ever(outcome: Outcome) -> None:
    assert next_step(facts(ended(outcome))) == Continue()


@pytest.mark.parametrize("outcome", ["auth", "model"])
def test_a_person_is_asked_at_once_also_with_another_candidate(outcome: Outcome) -> None:
    run = ended(outcome, error="401: no.")
    step = next_step(facts(run, candidates=("codex", "claude")))
    assert isinstance(step, AskPerson)
    assert step.why.startswith("codex could not work") and step.why.endswith("401: no")


@pytest.mark.parametrize("outcome", ["failed", "completed", "rate_limit"])
def test_a_lost_session_is_begun_afresh_once(outcome: Outcome) -> None:
    run = ended(outcome, session_lost=True)
    assert next_step(facts(run, mode="resume")) == StartAfresh()
    assert next_step(facts(run, mode="exec")) != StartAfresh()


# -- a spent quota ------------------------------------------------------------------------------


def test_what_was_told_is_waited_for() -> None:
    step = next_step(facts(ended("rate_limit", reset_at=at(5))))
    assert waited(step) == ("codex", 5 + SETTLE_SEC, True)


@pytest.mark.parametrize("told", ["", "soon", "9999-99-99T00:00:00Z"])
def test_without_a_time_the_waits_grow_to_a_limit(told: str) -> None:
    run, seconds = ended("rate_limit", reset_at=told), []
    for waits in range(8):
        step = next_step(facts(run, earlier=(run,), waits=waits))
        seconds.append(waited(step)[1])
    assert seconds == [*QUOTA_BACKOFF_SEC, 900, 900]


@pytest.mark.parametrize("reset", [-3600, 0, 1])
def test_a_reset_that_proves_false_is_not_believed_again(reset: float) -> None:
    """Or a provider that says "now" for ever would be asked for ever, without a breath."""
    run = ended("rate_limit", reset_at=at(reset))
    assert waited(next_step(facts(run)))[1] == max(reset, 0) + SETTLE_SEC
    assert waited(next_step(facts(run, earlier=(run,), waits=1)))[1:] == (60, False)


def test_a_try_that_got_somewhere_starts_the_count_anew() -> None:
    run, before = ended("rate_limit", changed_files=1), ended("rate_limit")
    assert waited(next_step(facts(run, earlier=(before,), waits=3)))[1] == QUOTA_BACKOFF_SEC[0]


def test_another_trouble_starts_the_count_anew() -> None:
    step = next_step(facts(ended("server"), earlier=(ended("rate_limit"),), waits=5))
    assert waited(step)[1] == FAULT_BACKOFF_SEC[0]


def test_the_next_candidate_takes_over() -> None:
    three = ("codex", "claude", "gemini")
    run = ended("rate_limit", reset_at=at(600))
    assert next_step(facts(run, candidates=three)) == UseAnother("claude", at(600))
    untold = next_step(facts(ended("rate_limit"), candidates=three))
    assert untold == UseAnother("claude", at(300))
    cooling = {"worker:claude": at(60), "meta:gemini": at(60)}
    step = next_step(facts(run, candidates=three, cooling=cooling))
    assert step == UseAnother("gemini", at(600))
    last = ended("rate_limit", member="gemini")
    assert next_step(facts(last, candidates=three)) == UseAnother("codex", at(300))


def test_no_candidate_takes_over_where_the_task_says_so() -> None:
    profile = WorkerRoleSpec(fallback_on_rate_limit=False)
    step = next_step(facts(ended("rate_limit"), candidates=("codex", "claude"), profile=profile))
    assert waited(step) == ("codex", 30, False)


def test_where_all_are_spent_the_first_to_be_back_goes_on() -> None:
    run = ended("rate_limit", member="claude", reset_at=at(900))
    both: dict[str, Any] = {"candidates": ("codex", "claude")}
    step = next_step(facts(run, cooling={"worker:codex": at(120)}, **both))
    assert waited(step) == ("codex", 120, True)
    step = next_step(facts(run, cooling={"worker:codex": at(1200)}, **both))
    assert waited(step) == ("claude", 901, True)


# -- limits -------------------------------------------------------------------------------------


def test_a_longer_wait_than_allowed_is_asked_about() -> None:
    run = ended("rate_limit", reset_at=at(3600))
    step = next_step(facts(run))
    assert isinstance(step, AskPerson)
    assert (
        "2026-11-21 13:00:01 UTC" in step.why
        and "runner.budget.wait_sec allows waits of 3600 s" in step.why
    )
    assert isinstance(next_step(facts(run, wait_sec=3601)), WaitUntil)
    assert isinstance(next_step(facts(ended("server"), wait_sec=0)), AskPerson)


def test_guesses_are_added_up_and_end() -> None:
    run, waits, total = ended("rate_limit"), 0, 0.0
    while isinstance(
        step := next_step(facts(run, earlier=(run,), waits=waits, waited_sec=total)), WaitUntil
    ):
        waits, total = waits + 1, total + seconds_of(step.wait)
    assert isinstance(step, AskPerson)
    assert (waits, total) == (7, 30 + 60 + 120 + 240 + 480 + 900 + 900)


def test_a_provider_that_fails_is_tried_thrice_then_a_person_is_asked() -> None:
    for outcome in ("server", "network"):
        run = ended(outcome)
        for waits, seconds in enumerate(FAULT_BACKOFF_SEC):
            step = next_step(facts(run, earlier=(run,) * waits, waits=waits))
            assert waited(step) == ("codex", seconds, False)
        assert isinstance(next_step(facts(run, earlier=(run,), waits=3)), AskPerson)


# -- the channel --------------------------------------------------------------------------------


def test_a_candidate_cools_until_its_time_and_is_then_forgotten() -> None:
    cooling = cooled({"worker:a": at(-1), "worker:b": at(9)}, "worker", "c", at(5), NOW)
    assert cooling == {"worker:b": at(9), "worker:c": at(5)}
    assert cooling_until(cooling, "worker", "c", NOW) == NOW + timedelta(seconds=5)
    assert cooling_until(cooling, "worker", "c", NOW + timedelta(seconds=5)) is None
    assert cooling_until(cooling, "meta", "c", NOW) is None


@pytest.mark.parametrize("text", ["", "now", "0001-01-01T00:00:00+14:00", "2026-13-01"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert moment(text) is None


def test_times_are_kept_in_utc() -> None:
    assert stamp(NOW) == "2026-11-21T12:00:00.000Z"
    assert moment("2026-11-21T21:00:00+09:00") == moment("2026-11-21T12:00:00") == NOW


NOT_THERE = "exit code 127: sh: 1: ./agent.sh: not found"


def test_a_command_that_cannot_be_started_is_asked_about_at_once() -> None:
    step = next_step(facts(ended("failed", exit_code=127, error=NOT_THERE)))
    assert isinstance(step, AskPerson) and NOT_THERE in step.why
    worked = ended("failed", exit_code=127, error=NOT_THERE, changed_files=1)
    assert next_step(facts(worked)) == Continue()


def test_the_next_candidate_takes_over_from_one_that_cannot_work() -> None:
    run, three = ended("failed", exit_code=127, error=NOT_THERE), ("codex", "claude", "gemini")
    left_alone = at(UNFIXED_SEC)
    assert next_step(facts(run, candidates=three)) == UseAnother("claude", left_alone)
    cooling = {"worker:claude": at(60)}
    step = next_step(facts(run, candidates=three, cooling=cooling))
    assert step == UseAnother("gemini", left_alone)


def test_a_person_hears_of_all_that_cannot_work_also_of_those_that_failed_for_earlier_orders() -> (
    None
):
    run, four = ended("failed", exit_code=127, error=NOT_THERE), ("a", "b", "codex", "spent")
    cooling = {"unable:a": at(60), "unable:b": at(60), "worker:spent": at(60)}
    latest = {"b": ended("failed", "b", exit_code=126, error="No permission.")}
    step = next_step(facts(run, candidates=four, cooling=cooling, latest=latest))
    assert isinstance(step, AskPerson)
    assert step.why == (  # the run of `a` was too long ago
        "a could not work, its command fails; "
        "b could not work, its command fails: No permission; "
        f"codex could not work, its command fails: {NOT_THERE.rstrip('.')}"
    )


def test_a_candidate_that_cannot_work_is_not_waited_for() -> None:
    run, both = ended("rate_limit", reset_at=at(900)), ("broken", "codex")
    for cooling in ({"unable:broken": at(60)}, {"unable:broken": at(60), "worker:broken": at(30)}):
        step = next_step(facts(run, candidates=both, cooling=cooling))
        assert waited(step) == ("codex", 900 + SETTLE_SEC, True)


def test_what_fails_alike_twice_and_does_nothing_is_asked_about() -> None:
    """Once may be the prompt's fault; that and what differs is the planner's."""

    def failed(text: str, says: str = "", **more: Any) -> WorkerRun:
        errors = FileRef(path="stderr", sha256=text) if text else None
        output = FileRef(path="stdout", sha256=says)
        known = {"exit_code": 1, "errors": errors, "output": output, **more}
        return ended("failed", **known)

    lacks, silent = failed("No module named agent"), failed("")
    assert next_step(facts(lacks)) == Continue()
    assert isinstance(next_step(facts(lacks, before=lacks)), AskPerson)
    others = (
        failed("out of ideas"),
        failed("No module named agent", changed_files=1),
        ended("completed"),
    )
    for other in others:
        assert next_step(facts(lacks, before=other)) == Continue()
    banner = failed("No module named agent", says="session 1")  # only the error counts, if any
    assert isinstance(next_step(facts(lacks, before=banner)), AskPerson)
    assert isinstance(next_step(facts(silent, before=silent)), AskPerson)
    words = failed("", says="I give up: 1")
    assert isinstance(next_step(facts(words, before=words)), AskPerson)
    for other in (lacks, words, failed("", says="I give up: 2"), failed("", exit_code=2)):
        assert next_step(facts(silent, before=other)) == Continue()
