"""A planner whose quota is spent: the next candidate answers, else the run waits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from agentrunner import registry
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import InfraError
from agentrunner.errors.planners import NoPlannerKey
from agentrunner.planners.base import PlannerRequest, PlannerUnavailable, Reply
from agentrunner.workers.base import FailureKind
from tests.kit.metas import LiarPlanner
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run
from tests.kit.waits import VirtualClock, at, clock, waits

pytestmark = pytest.mark.usefixtures("without_a_box")

__all__ = ["clock"]


class Moody(LiarPlanner):
    """A planner that refuses some calls; which, is decided by the test."""

    kind = "moody"
    refusals: ClassVar[dict[int, PlannerUnavailable]]
    """By the number of the call among those that this class was asked for."""
    asked: ClassVar[list[str]]

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str]) -> None:
        super().__init__(spec, environ)
        self.check = {"kind": "test"}

    async def complete(self, request: PlannerRequest) -> Reply:
        number = len(self.asked)
        self.asked.append(request.type)
        if (refusal := self.refusals.get(number)) is not None:
            raise refusal
        return await super().complete(request)


class First(Moody):
    pass


class Second(Moody):
    pass


def no(kind: FailureKind, reset_at: str = "") -> PlannerUnavailable:
    return PlannerUnavailable(f"the planner says: {kind}", retryable=False, kind=kind,
                           reset_at=reset_at)  # fmt: skip


FOUR = ["plan_task", "next_action", "next_action", "completion_assessment"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for kind, cls in (("first", First), ("second", Second)):
        cls.refusals, cls.asked = {}, []
        monkeypatch.setitem(registry.PLANNERS, kind, f"{__name__}:{cls.__name__}")
    return Run(Project.make(tmp_path, SMALL))


def begin(run: Run, *candidates: str, **runner: object) -> None:
    both = {"profiles": {"meta": {"candidates": [{"kind": kind} for kind in candidates]}}}
    runner = {"meta": {"kind": "first"}, **(both if candidates else {}), **runner}
    run.start(None, FIX, test=TEST, runner=runner)


@pytest.mark.series(2)
@pytest.mark.parametrize("number", range(4))
def test_whatever_it_is_asked_for_the_run_waits_and_asks_again(
    run: Run, clock: VirtualClock, number: int
) -> None:
    First.refusals = {number: no("rate_limit", at(3600))}
    begin(run)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert waits(run) == [(at(3601), "meta", "first")]
    assert sum(clock.slept) == 3601
    assert First.asked == [*FOUR[: number + 1], *FOUR[number:]]
    assert run.result["meta_calls"] == 5  # the one that was refused is booked, too
    assert (run.result["worker_runs"], run.result["loops"]) == (1, 0)
    assert run.result["duration_sec"] == 0
    assert "the planner first could not answer" in run.note()


def test_the_next_candidate_answers_until_the_first_is_back(run: Run, clock: VirtualClock) -> None:
    First.refusals = {1: no("rate_limit", at(3600))}
    begin(run, "first", "second")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert clock.slept == [] and waits(run) == []
    assert First.asked == FOUR[:2]  # it is left alone from then on
    assert Second.asked == FOUR[1:]
    assert run.state()["cooling"] == {"meta:first": at(3601)}
    assert run.result["meta_calls"] == 5


def test_where_both_are_spent_the_first_to_be_back_is_waited_for(
    run: Run, clock: VirtualClock
) -> None:
    First.refusals = {1: no("rate_limit", at(3600))}
    Second.refusals = {0: no("rate_limit", at(600))}
    begin(run, "first", "second")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert waits(run) == [(at(601), "meta", "second")]
    assert (First.asked, Second.asked) == (FOUR[:2], [FOUR[1], *FOUR[1:]])


@pytest.mark.whole
def test_the_first_is_waited_for_where_the_task_says_so(run: Run, clock: VirtualClock) -> None:
    First.refusals = {0: no("rate_limit", at(60))}
    meta = {"candidates": [{"kind": "first"}, {"kind": "second"}], "fallback_on_rate_limit": False}
    begin(run, profiles={"meta": meta})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert Second.asked == [] and len(waits(run)) == 1


@pytest.mark.whole
def test_where_only_a_quota_is_waited_for_the_next_one_answers_for_another_trouble(
    run: Run, clock: VirtualClock
) -> None:
    First.refusals = {1: no("auth"), 2: no("rate_limit", at(60))}
    meta = {"candidates": [{"kind": "first"}, {"kind": "second"}], "fallback_on_rate_limit": False}
    begin(run, profiles={"meta": meta})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert Second.asked == FOUR[1:2] and waits(run) == [(at(61), "meta", "first")]


@pytest.mark.parametrize("kind", ["auth", "model", "server"])
def test_other_troubles_wait_for_a_person(run: Run, clock: VirtualClock, kind: FailureKind) -> None:
    First.refusals = {1: no(kind)}
    begin(run)
    assert (run.ending[2], run.kind, run.subject["reason"]) == (4, "planner", kind)
    assert waits(run) == [] and run.result["meta_calls"] == 2
    assert run.state().get("cooling", {}) == {}  # a person mends it, and resumes


@pytest.mark.series(2)
@pytest.mark.parametrize("kind", ["auth", "model", "server"])
def test_another_candidate_answers_instead(
    run: Run, clock: VirtualClock, kind: FailureKind
) -> None:
    First.refusals = dict.fromkeys(range(1, 9), no(kind))
    begin(run, "first", "second")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert (First.asked, Second.asked) == (FOUR[:2], FOUR[1:])
    assert "fail-over" in [code for code, _ in run.warnings()]


def test_waits_that_nobody_told_grow_and_end_within_the_limit(
    run: Run, clock: VirtualClock
) -> None:
    First.refusals = dict.fromkeys(range(6), no("rate_limit"))
    begin(run, budget={"wait_sec": 500})
    assert (run.ending[2], run.kind, run.subject["reason"]) == (4, "planner", "rate_limit")
    assert clock.seconds == 30 + 60 + 120 + 240
    assert len(First.asked) == 5 and len(waits(run)) == 4
    run.answer("again")  # a person says that it is worth another try, and the waits begin anew
    assert run.ending == ("COMPLETE", "complete", 0)
    assert clock.seconds == 450 + 30
    assert run.result["meta_calls"] == len(First.asked)


@pytest.mark.whole
def test_a_longer_wait_than_allowed_is_asked_about(run: Run, clock: VirtualClock) -> None:
    First.refusals = {1: no("rate_limit", at(90_000))}
    begin(run)
    assert run.kind == "planner"
    assert any("allows waits of 21600 s" in record.data["message"] for record in run.log("warning"))
    run.answer("again")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert clock.slept == []


def test_where_nobody_is_to_be_asked_a_longer_wait_parks_the_run(
    run: Run, clock: VirtualClock
) -> None:
    First.refusals = {1: no("rate_limit", at(90_000))}
    with pytest.raises(InfraError, match="allows waits of 21600 s"):
        begin(run, meta={"kind": "first", "on_unusable": "fail"})
    assert clock.slept == []
    clock.seconds = 90_000
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.parametrize("kind", ["rate_limit", "server"])
def test_without_a_cool_down_candidates_are_not_asked_in_a_circle(
    run: Run, clock: VirtualClock, kind: FailureKind
) -> None:
    First.refusals = Second.refusals = dict.fromkeys(range(40), no(kind))
    both = {"candidates": [{"kind": "first"}, {"kind": "second"}], "cool_down_sec": 0}
    begin(run, profiles={"meta": both}, budget={"wait_sec": 500, "meta_calls": 40})
    asked = len(First.asked) + len(Second.asked)
    if kind == "server":
        assert run.kind == "planner" and asked == 2
    else:
        assert clock.seconds == sum(clock.slept) > 0
        assert asked <= 2 * (len(waits(run)) + 1)


def test_a_run_is_cancelled_from_a_shell_without_the_planners_key(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(run, approve={"plan": "always"})
    assert run.result["exit_code"] == 4

    def refuse(*_: object) -> None:
        raise NoPlannerKey("The planner needs an API key.", remedy="export KEY=…")

    monkeypatch.setattr(First, "__init__", refuse)
    run.cancel()
    assert run.ending[:2] == ("FAILED", "cancelled")
