"""A worker whose quota is spent is replaced by the next candidate."""

from __future__ import annotations

from typing import Any

import pytest

from agentrunner.execution.quota import seconds_of
from agentrunner.state.worker_runs import Wait
from tests.kit.faulty import calls_of, does, faulty, faulty_worker, says
from tests.kit.metas import assess, finish, plan, work
from tests.kit.runs import FIX, TEST, Run
from tests.kit.waits import HAPPY, VirtualClock, at, clock, run, tries, waits

pytestmark = pytest.mark.usefixtures("without_a_box")

__all__ = ["clock", "faulty_worker", "run"]


def begin(run: Run, first: tuple[str, ...], second: tuple[str, ...], **runner: Any) -> None:
    both = [
        faulty(*first, name="first", model="big"),
        faulty(*second, name="second", model="small"),
    ]
    run.start(HAPPY, test=TEST, runner={"workers": both, **runner})


def members(run: Run) -> list[str]:
    return [str(record.data["member"]) for record in run.log("worker_run")]


def test_the_next_candidate_does_the_same_at_once(run: Run, clock: VirtualClock) -> None:
    begin(run, (says("rate_limit", reset_at=at(9000)),), (does(FIX, "t-1"),))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert clock.slept == [] and waits(run) == []
    assert tries(run) == [("1-001", "rate_limit"), ("1-001w1", "completed")]
    assert members(run) == ["first", "second"]
    assert calls_of(run, "first") == ["exec - big"]
    assert calls_of(run, "second") == ["exec - small"]
    assert run.state()["cooling"] == {"worker:first": at(9000)}
    folder = run.folder.sandbox_dir / "prompts"
    assert (folder / "1-001.md").read_text() == (folder / "1-001w1.md").read_text()
    assert (run.result["worker_runs"], run.result["loops"], run.result["meta_calls"]) == (2, 0, 4)
    assert "fail-over" in [code for code, _ in run.warnings()]


def test_where_both_are_spent_the_first_to_be_back_goes_on_in_its_session(
    run: Run, clock: VirtualClock
) -> None:
    spent = says("rate_limit", reset_at=at(120), session="f-1")
    begin(run, (spent, does(FIX, "f-1")), (says("rate_limit", reset_at=at(900)),))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "second", "first"]
    assert waits(run) == [(at(120), "worker", "first")]
    assert calls_of(run, "first") == ["exec - big", "resume f-1 big"]


@pytest.mark.whole
def test_a_second_that_is_back_sooner_goes_on(run: Run, clock: VirtualClock) -> None:
    spent = says("rate_limit", reset_at=at(5000))
    begin(run, (spent,), (says("rate_limit", reset_at=at(60), session="t-1"), does(FIX, "t-1")))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "second", "second"]
    assert calls_of(run, "second") == ["exec - small", "resume t-1 small"]
    assert waits(run) == [(at(61), "worker", "second")]


def test_the_first_is_waited_for_where_the_task_says_so(run: Run, clock: VirtualClock) -> None:
    first = (says("rate_limit", reset_at=at(60)), does(FIX))
    profiles = {"worker": {"fallback_on_rate_limit": False}}
    begin(run, first, (does("false"),), profiles=profiles)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "first"] and len(waits(run)) == 1


@pytest.mark.whole
def test_the_forced_one_is_waited_for(run: Run, clock: VirtualClock) -> None:
    second = (says("rate_limit", reset_at=at(60)), does(FIX))
    begin(run, (does("false"),), second, profiles={"worker": {"force": "second"}})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["second", "second"]


def test_a_refused_key_is_asked_about_though_another_could_work(
    run: Run, clock: VirtualClock
) -> None:
    begin(run, (says("auth"), does(FIX)), (does(FIX),))
    assert run.kind == "worker_failed" and members(run) == ["first"]
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "first"]


NOT_THERE = "echo 'agent: not found' >&2; exit 127"


def test_one_that_cannot_start_is_replaced_before_anybody_is_asked(
    run: Run, clock: VirtualClock
) -> None:
    begin(run, (NOT_THERE,), (does(FIX),))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "second"] and run.result["loops"] == 0
    (words,) = [text for code, text in run.warnings() if code == "fail-over"]
    assert words == "first: its command fails. second takes over."


def test_where_none_can_start_a_person_hears_of_all_and_all_are_tried_again(
    run: Run, clock: VirtualClock
) -> None:
    begin(run, (NOT_THERE, does(FIX)), (NOT_THERE,))
    assert run.kind == "worker_failed" and members(run) == ["first", "second"]
    text = run.result["waiting"]["text"]
    assert "first could not work" in text and "second could not work" in text
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "second", "second", "first"]


def test_one_that_cannot_start_is_not_started_again_though_the_planner_names_it(
    run: Run, clock: VirtualClock
) -> None:
    parts = [work(f"Part {n}.", "first") for n in "123"]
    for part in parts:
        part["reply"]["payload"]["worker_call"]["model"] = "big"
    script = [plan(), *parts, finish(), assess()]
    both = [
        faulty(NOT_THERE, name="first", model="big"),
        faulty(does("true"), does("true"), does(FIX), name="second", model="small"),
    ]
    run.start(script, test=TEST, runner={"workers": both})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "second", "second", "second"]
    assert calls_of(run, "second") == ["exec - small"] * 3
    told = [text for code, text in run.warnings() if code == "fail-over"]
    assert told[1:] == ["first cannot work. second takes over."] * 2


def test_a_person_who_looks_at_one_that_cannot_work_gives_nobody_quota(
    run: Run, clock: VirtualClock
) -> None:
    """The candidate asked about is tried again; the quota of the other is spent as before."""
    begin(run, (says("rate_limit", reset_at=at(9000)),), (NOT_THERE, does(FIX)))
    assert run.kind == "worker_failed" and members(run) == ["first", "second"]
    assert run.state()["cooling"] == {"worker:first": at(9000)}
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "second", "second"]


def test_one_that_fails_alike_twice_without_a_word_is_replaced_then(
    run: Run, clock: VirtualClock
) -> None:
    silent = ("exit 3",)
    script = [plan(), work(worker="first"), work("Again.", "first"), finish(), assess()]
    both = [faulty(*silent, name="first"), faulty(does(FIX), name="second")]
    run.start(script, test=TEST, runner={"workers": both})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "first", "second"]


@pytest.mark.whole
def test_without_a_reset_the_first_cools_down_as_the_task_says(
    run: Run, clock: VirtualClock
) -> None:
    profiles = {"worker": {"cool_down_sec": 1234}}
    begin(run, (says("rate_limit"),), (does(FIX),), profiles=profiles)
    assert run.state()["cooling"] == {"worker:first": at(1234)}


def test_a_candidate_that_was_not_approved_is_asked_about(run: Run, clock: VirtualClock) -> None:
    always = {"approve": {"worker": "always"}}
    begin(run, (says("rate_limit", reset_at=at(9000)),), (does(FIX),), **always)
    run.approve(run.question)
    assert (
        run.kind == "worker"
        and "Start the worker second in place of first?" in run.result["waiting"]["text"]
    )
    assert run.subject["order"]["member"] == "second" and members(run) == ["first"]
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "second"]


@pytest.mark.whole
def test_one_that_was_waited_for_in_its_place_too(run: Run, clock: VirtualClock) -> None:
    spent = says("rate_limit", reset_at=at(120))
    always = {"approve": {"worker": "always"}}
    begin(run, (spent, does(FIX)), (says("rate_limit", reset_at=at(900)),), **always)
    run.approve(run.question)
    run.approve(run.question)
    assert (run.kind, len(waits(run))) == ("worker", 1)
    assert run.state()["cooling"] == {"worker:first": at(120), "worker:second": at(900)}
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert members(run) == ["first", "second", "first"]


@pytest.mark.series(2)
@pytest.mark.parametrize("cool_down_sec", [0, 300])
def test_candidates_that_are_all_spent_do_not_follow_each_other_for_ever(
    run: Run, clock: VirtualClock, cool_down_sec: float
) -> None:
    """Together their waits are within the limit; there are few starts; then a person is asked."""
    spent = (says("rate_limit"),)
    profiles = {"worker": {"cool_down_sec": cool_down_sec}}
    budget = {"wait_sec": 1000, "worker_runs": 40}
    begin(run, spent, spent, profiles=profiles, budget=budget)
    assert run.kind == "worker_failed"
    assert "runner.budget.wait_sec allows waits of 1000 s" in run.result["waiting"]["text"]
    assert 0 < sum(clock.slept) <= 1000
    assert run.result["worker_runs"] <= 20
    told = [seconds_of(Wait.model_validate(one.data)) for one in run.log("wait")]
    assert sum(told) == sum(clock.slept)
