"""A spent quota and a provider that fails: waited for without a person, a loop or a respawn."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest

from agentrunner.engine.queries import show
from agentrunner.errors import UsageError
from agentrunner.execution.failure_policy import FAULT_BACKOFF_SEC
from agentrunner.execution.quota import QUOTA_BACKOFF_SEC, SETTLE_SEC
from agentrunner.storage.index import RunIndex
from agentrunner.storage.run_log import read_lines
from tests.kit.faulty import calls_of, does, faulty, faulty_worker, says
from tests.kit.metas import Item, plan, work
from tests.kit.process import until
from tests.kit.runs import FIX, TEST, Run
from tests.kit.waits import HAPPY, VirtualClock, at, clock, run, tries, waits

pytestmark = pytest.mark.usefixtures("without_a_box")

__all__ = ["clock", "faulty_worker", "run"]


def begin(run: Run, *steps: str, script: list[Item] | None = None, **runner: Any) -> None:
    runner = {"worker": faulty(*steps), **runner}
    run.start(script or HAPPY, test=TEST, runner=runner)


def test_a_reset_that_was_told_is_one_wait_in_the_same_session(
    run: Run, clock: VirtualClock
) -> None:
    begin(run, says("rate_limit", reset_at=at(600)), does(FIX))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert waits(run) == [(at(601), "worker", "faulty")]
    assert tries(run) == [("1-001", "rate_limit"), ("1-001w1", "completed")]
    assert calls_of(run) == ["exec - -", "resume s-1 -"]
    assert (run.result["worker_runs"], run.result["loops"], run.result["meta_calls"]) == (2, 0, 4)
    assert run.result["waiting_until"] is None
    assert sum(clock.slept) == 600 + SETTLE_SEC
    assert run.result["duration_sec"] == 0  # a wait is nobody's time
    assert "the provider says: rate_limit" in run.note()
    state = run.state()
    assert state.get("wait") is None and state["cooling"] == {"worker:faulty": at(601)}


@pytest.mark.whole
def test_a_further_try_is_of_the_same_round_also_while_it_is_at_work(
    run: Run, clock: VirtualClock
) -> None:
    shown: list[tuple[object, object]] = []

    def look(event: dict[str, Any]) -> None:
        run.project.events.append(event)
        if event["event"] == "worker_started":
            begun = run.folder.workers_dir / event["worker_run_id"] / "started.json"
            until(begun.exists, "the worker has begun")
            seen = show(run.project.state_dir, run.id)
            shown.append((seen.rounds, seen.worker_runs))

    with_clock = run.adjust
    run.adjust = lambda options: replace(with_clock(options), on_event=look)
    begin(run, says("rate_limit", reset_at=at(5)), does(FIX))
    assert shown == [(1, 1), (1, 2)]


@pytest.mark.whole
def test_the_prompt_is_the_same_to_the_letter(run: Run, clock: VirtualClock) -> None:
    begin(run, says("rate_limit", reset_at=at(5)), does(FIX))
    folder = run.folder.sandbox_dir / "prompts"
    first, again = (folder / "1-001.md").read_text(), (folder / "1-001w1.md").read_text()
    assert first == again and "Do the task." in first


@pytest.mark.whole
def test_a_worker_that_never_had_a_session_starts_in_a_new_one(
    run: Run, clock: VirtualClock
) -> None:
    begin(run, says("rate_limit", reset_at=at(5), session=None), does(FIX))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert calls_of(run) == ["exec - -", "exec - -"]


def test_nobody_tells_when_and_the_waits_grow(run: Run, clock: VirtualClock) -> None:
    begin(run, *[says("rate_limit")] * 7, does(FIX))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert sum(clock.slept) == sum(QUOTA_BACKOFF_SEC) + QUOTA_BACKOFF_SEC[-1]
    assert len(tries(run)) == 8 and len({name for name, _ in tries(run)}) == 8
    assert run.result["loops"] == 0
    assert "Waited from" in run.note()


def test_a_provider_that_says_now_for_ever_is_not_asked_in_a_circle(
    run: Run, clock: VirtualClock
) -> None:
    begin(run, says("rate_limit", reset_at=at(-60)), budget={"wait_sec": 600})
    assert run.kind == "worker_failed"
    assert clock.seconds > 400
    assert len(tries(run)) < 8


def test_a_storm_of_errors_is_waited_out_thrice_then_a_person_is_asked(
    run: Run, clock: VirtualClock
) -> None:
    begin(run, *[says("server")] * 4, does(FIX))
    assert (run.result["exit_code"], run.kind) == (4, "worker_failed")
    assert clock.seconds == sum(FAULT_BACKOFF_SEC)
    assert [outcome for _, outcome in tries(run)] == ["server"] * 4
    assert "the provider says: server" in run.result["waiting"]["text"]
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert calls_of(run)[-1] == "resume s-1 -"
    assert run.result["loops"] == 0


def test_a_longer_wait_than_the_task_allows_is_a_person_s_affair(
    run: Run, clock: VirtualClock
) -> None:
    steps = (says("rate_limit", reset_at=at(7200)), does(FIX))
    begin(run, *steps, budget={"wait_sec": 3600})
    assert run.kind == "worker_failed" and clock.slept == []
    moment = at(7201)[:19].replace("T", " ")
    assert f"tried again at {moment} UTC" in run.result["waiting"]["text"]
    run.reject("Not today.", run.question)
    assert run.ending == ("FAILED", "worker-quota", 1)
    assert "Not today." in run.result["text"]


# -- what a person must mend --------------------------------------------------------------------


def test_a_refused_key_is_asked_about_at_once_and_tried_again_after_repair(
    run: Run, clock: VirtualClock
) -> None:
    begin(run, says("auth"), does(FIX), script=HAPPY)
    assert (run.result["exit_code"], run.kind) == (4, "worker_failed")
    assert run.result["worker_runs"] == 1 and clock.slept == []
    subject = run.subject
    assert subject["order"]["worker_run_id"] == "1-001w1" and "auth" in subject["why"]
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert calls_of(run) == ["exec - -", "resume s-1 -"]
    assert (run.result["worker_runs"], run.result["loops"]) == (2, 0)
    assert run.calls() == ["plan_task", "next_action", "next_action", "completion_assessment"]


@pytest.mark.whole
def test_a_key_that_stays_refused_is_asked_about_again(run: Run, clock: VirtualClock) -> None:
    begin(run, says("auth"), says("auth"), does(FIX))
    first = run.question
    run.approve(first)
    assert run.kind == "worker_failed" and run.question != first
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.series(2)
@pytest.mark.parametrize("failure", ["auth", "model"])
def test_a_no_ends_the_run_with_the_reason(run: Run, clock: VirtualClock, failure: Any) -> None:
    begin(run, says(failure), does(FIX))
    run.reject("No budget for it.", run.question)
    assert run.ending == ("FAILED", f"worker-{failure}", 1)
    assert f"the provider says: {failure}" in run.result["text"]
    assert "No budget for it." in run.note()
    assert run.result["worker_runs"] == 1
    run.resume()  # the next attempt: the planner decides anew
    assert run.result["attempt"] == 2


@pytest.mark.whole
def test_a_model_that_is_not_there_is_named(run: Run, clock: VirtualClock) -> None:
    runner = {"worker": faulty(says("model"), does(FIX), model="gpt-none")}
    run.start(HAPPY, test=TEST, runner=runner)
    assert "the model gpt-none" in run.result["waiting"]["text"]
    assert "resume --model NAME" in run.result["waiting"]["text"]


def test_the_same_order_is_tried_with_another_model(run: Run, clock: VirtualClock) -> None:
    runner = {"worker": faulty(says("model"), does(FIX), model="gpt-none")}
    run.start(HAPPY, test=TEST, runner=runner)
    run.resume(model="gpt-new")
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]
    started = [
        one for one in read_lines(run.folder.events_file) if one["event"] == "worker_started"
    ]
    assert [one["model"] for one in started] == ["gpt-none", "gpt-new"]
    assert [order.data["worker_run_id"] for order in run.log("worker_run")] == ["1-001", "1-001w1"]


@pytest.mark.whole
def test_the_worker_that_waits_gets_the_other_model(run: Run, clock: VirtualClock) -> None:
    first = faulty(says("rate_limit", reset_at=at(90_000)), model="gpt-a", name="first")
    second = faulty(says("model"), does(FIX), model="gpt-b", name="second")
    run.start(HAPPY, test=TEST, runner={"workers": [first, second]})
    assert run.kind == "worker_failed"
    with pytest.raises(UsageError, match="one word"):
        run.resume(model="two words")
    assert run.kind == "worker_failed"
    run.resume(model="gpt-new")
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]
    models = [order["model"] for order in read_lines(run.folder.events_file) if "model" in order]
    assert models[-1] == "gpt-new" and "gpt-b" in models


# -- sessions -----------------------------------------------------------------------------------


def test_a_session_that_is_gone_is_begun_afresh_once(run: Run, clock: VirtualClock) -> None:
    again = work(worker="faulty")
    again["reply"]["payload"]["worker_call"]["mode"] = "resume"
    lost = "echo '{\"lost\": true}'; exit 1"
    begin(run, does("true"), lost, does(FIX, "s-2"), script=[plan(), HAPPY[1], again, *HAPPY[2:]])
    assert run.ending == ("COMPLETE", "complete", 0)
    assert calls_of(run) == ["exec - -", "resume s-1 -", "exec - -"]
    assert [name for name, _ in tries(run)] == ["1-001", "1-002", "1-002w1"]
    assert run.result["loops"] == 1
    assert "session-lost" in [code for code, _ in run.warnings()]


# -- the wait itself ----------------------------------------------------------------------------


def test_what_is_counted_is_in_the_budget_of_worker_runs(run: Run, clock: VirtualClock) -> None:
    budget = {"worker_runs": 2, "on_spent": "fail"}
    begin(run, *[says("rate_limit")] * 3, does(FIX), budget=budget)
    assert run.ending == ("FAILED", "budget: worker_runs", 1)
    assert run.result["worker_runs"] == 2


@pytest.mark.whole
def test_the_index_knows_while_it_waits(run: Run) -> None:
    class Looking(VirtualClock):
        """Looks at the list of runs at each breath."""

        seen: ClassVar[set[str | None]] = set()

        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds)
            (row,) = RunIndex(run.project.state_dir).runs()
            self.seen.add(row.waiting_until)

    clock = Looking()
    run.adjust = lambda options: replace(options, clock=clock)
    begin(run, says("rate_limit", reset_at=at(20)), does(FIX))
    assert clock.seen == {at(21)}
    (row,) = RunIndex(run.project.state_dir).runs()
    assert (row.state, row.waiting_until) == ("COMPLETE", None)


def test_a_laptop_that_was_asleep_does_not_wait_longer(run: Run, clock: VirtualClock) -> None:
    class Asleep(VirtualClock):
        """Sleeps through the night at the first breath: only the time of day goes on."""

        def now(self) -> datetime:
            return super().now() + timedelta(hours=8 if self.slept else 0)

    asleep = Asleep()
    run.adjust = lambda options: replace(options, clock=asleep)
    begin(run, says("rate_limit", reset_at=at(3600)), does(FIX))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert len(asleep.slept) == 1


@pytest.mark.whole
def test_a_clock_that_is_set_back_does_not_prolong_a_wait(run: Run) -> None:
    class SetBack(VirtualClock):
        """An hour earlier than before, at the first breath."""

        def now(self) -> datetime:
            return super().now() - timedelta(hours=1 if self.slept else 0)

    clock = SetBack()
    run.adjust = lambda options: replace(options, clock=clock)
    begin(run, says("rate_limit", reset_at=at(60)), does(FIX))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert sum(clock.slept) == 61


def test_a_signal_ends_the_wait_and_resume_waits_the_rest(run: Run) -> None:
    class Stopping(VirtualClock):
        """After a minute somebody presses Ctrl-C."""

        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds)
            if self.seconds == 60:
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.Event().wait()

    clock = Stopping()
    run.adjust = lambda options: replace(options, clock=clock)
    begin(run, says("rate_limit", reset_at=at(600)), does(FIX))
    assert run.ending == ("RUNNING", "interrupted", 130)
    assert run.result["waiting"] is None and run.result["waiting_until"] == at(601)
    later = VirtualClock()
    later.seconds = 60
    run.adjust = lambda options: replace(options, clock=later)
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)
    assert sum(later.slept) == 541
    assert waits(run) == [(at(601), "worker", "faulty")] * 2
    assert calls_of(run) == ["exec - -", "resume s-1 -"]
