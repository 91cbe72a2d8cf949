"""Budgets: 0 is none at all, a spent one ends the run FAILED, all attempts are counted together."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentrunner.nodes.deps import Clock
from agentrunner.task.context import Answer, Question
from tests.kit.metas import Item, assess, consult, finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, NO_FIX, SMALL, TEST, Run


class FakeClock(Clock):
    """Time that only a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(1_800_000_000 + self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Project.make(tmp_path, SMALL))


@pytest.fixture
def clock(run: Run) -> FakeClock:
    clock = FakeClock()
    run.adjust = lambda options: replace(options, clock=clock)
    return clock


HAPPY = [plan(), work(), finish(), assess()]


@pytest.mark.parametrize("name", ["meta_calls", "tokens", "wall_sec"])
def test_none_at_all_is_no_call(run: Run, name: str) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {name: 0}})
    assert run.ending == ("FAILED", f"budget: {name}", 1)
    assert run.calls() == []
    assert (run.result["meta_calls"], run.result["worker_runs"]) == (0, 0)
    assert Path(run.result["note"]).is_file()


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_calls_are_counted_as_they_go_out(run: Run, calls: int) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"meta_calls": calls}})
    assert run.ending == ("FAILED", "budget: meta_calls", 1)
    assert len(run.calls()) == calls
    assert f"runner.budget.meta_calls of {calls} is spent" in run.result["text"]


def test_what_is_just_enough_is_enough(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"meta_calls": 4, "tokens": 440}})
    assert run.ending == ("COMPLETE", "complete", 0)


def test_answers_that_cannot_be_used_count_too(run: Run) -> None:
    bad: list[Item] = [{"reply": f"No, {number}."} for number in range(2)]
    run.start([*bad, *HAPPY], FIX, test=TEST, runner={"budget": {"meta_calls": 2}})
    assert run.ending == ("FAILED", "budget: meta_calls", 1)
    assert run.result["meta_calls"] == 2


def test_tokens_of_planner_and_worker_are_one_budget(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"tokens": 220}})
    assert run.ending == ("FAILED", "budget: tokens", 1)
    assert run.calls() == ["plan_task", "next_action"]
    assert run.result["usage"]["meta"] == {"input_tokens": 200, "output_tokens": 20}


def test_budgets_go_on_over_attempts(run: Run) -> None:
    script = [plan(), give_up(), give_up()]
    run.start(script, test=TEST, runner={"budget": {"meta_calls": 2}})
    assert run.ending == ("FAILED", "aborted", 1)
    run.resume()
    assert run.ending == ("FAILED", "budget: meta_calls", 1)
    assert run.result["meta_calls"] == 2


def test_time_that_nodes_take_is_spent(run: Run, clock: FakeClock) -> None:
    def work_takes_an_hour(event: dict[str, object]) -> None:
        if event["event"] == "worker_finished":
            clock.seconds += 3600

    run.adjust = lambda options: replace(options, clock=clock, on_event=work_takes_an_hour)
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"wall_sec": 3000}})
    assert run.ending == ("FAILED", "budget: wall_sec", 1)
    assert run.result["duration_sec"] == 3600
    assert run.calls() == ["plan_task", "next_action"]
    assert run.result["worker_runs"] == 1


def test_pauses_cost_no_time(run: Run, clock: FakeClock) -> None:
    budget = {"budget": {"wall_sec": 3000}}
    run.start([plan(), consult("Well?"), *HAPPY[1:]], FIX, test=TEST, runner=budget)
    clock.seconds += 86_400
    run.answer("Yes.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["duration_sec"] == 0


def test_thinking_of_a_person_at_the_terminal_costs_no_time(run: Run, clock: FakeClock) -> None:
    def ask(question: Question) -> Answer:
        clock.seconds += 86_400
        return Answer(id=question.id, kind="ask_human", text="Yes.")

    run.adjust = lambda options: replace(options, clock=clock, ask=ask)
    budget = {"budget": {"wall_sec": 3000}}
    run.start([plan(), consult("Well?"), *HAPPY[1:]], FIX, test=TEST, runner=budget)
    assert run.ending == ("COMPLETE", "complete", 0)


def test_a_worker_gets_no_more_time_than_is_left(run: Run) -> None:
    runner = {"budget": {"wall_sec": 2}, "worker": {"max_run_time_sec": 600}}
    run.start([plan(), work(), give_up()], "sleep 30", runner=runner)
    (ended,) = run.project.told("worker_finished")
    assert ended["outcome"] == "timeout"
    assert ended["duration_sec"] < 10
    assert run.ending == ("FAILED", "budget: wall_sec", 1)


def test_a_spent_budget_keeps_what_was_done(run: Run) -> None:
    run.start(HAPPY, NO_FIX, test=TEST, runner={"budget": {"meta_calls": 2}})
    assert run.result["changed_files"] == ["calc.py"]
    assert "looked at" in run.project.read("calc.py")
