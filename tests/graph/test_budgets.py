"""Budgets: a spent one asks or ends the run, all attempts are counted together, exactly."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentrunner.engine.queries import show_values
from agentrunner.errors import UsageError
from agentrunner.execution.deps import Clock
from agentrunner.state.people import Answer, Question
from agentrunner.storage.run_log import RunLog
from tests.kit.metas import Item, assess, consult, finish, give_up, plan, work
from tests.kit.process import Drill, until
from tests.kit.runs import FIX, NO_FIX, TEST, Run, asking

pytestmark = pytest.mark.usefixtures("without_a_box")


class FakeClock(Clock):
    """Time that only a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(1_800_000_000 + self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(run: Run) -> FakeClock:
    clock = FakeClock()
    run.adjust = lambda options: replace(options, clock=clock)
    return clock


HAPPY = [plan(), work(), finish(), assess()]
CALL = 110
"""Tokens of each call of the script."""
FAIL = {"on_spent": "fail"}


@pytest.mark.series(2)
@pytest.mark.parametrize("name", ["meta_calls", "tokens", "wall_sec"])
def test_none_at_all_is_no_call(run: Run, name: str) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {**FAIL, name: 0}})
    assert run.ending == ("FAILED", f"budget: {name}", 1)
    assert run.calls() == []
    assert (run.result["meta_calls"], run.result["worker_runs"]) == (0, 0)
    assert Path(run.result["note"]).is_file()


@pytest.mark.series(2)
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_calls_are_counted_as_they_go_out(run: Run, calls: int) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {**FAIL, "meta_calls": calls}})
    assert run.ending == ("FAILED", "budget: meta_calls", 1)
    assert len(run.calls()) == calls
    assert f"runner.budget.meta_calls of {calls} is spent" in run.result["text"]


@pytest.mark.whole
def test_what_is_just_enough_is_enough(run: Run) -> None:
    run.start(
        HAPPY, FIX, test=TEST, runner={"budget": {**FAIL, "meta_calls": 4, "tokens": 4 * CALL}}
    )
    assert run.ending == ("COMPLETE", "complete", 0)


def test_answers_that_cannot_be_used_count_too(run: Run) -> None:
    bad: list[Item] = [{"reply": f"No, {number}."} for number in range(2)]
    run.start([*bad, *HAPPY], FIX, test=TEST, runner={"budget": {**FAIL, "meta_calls": 2}})
    assert run.ending == ("FAILED", "budget: meta_calls", 1)
    assert run.result["meta_calls"] == 2


def test_tokens_of_planner_and_worker_are_one_budget(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {**FAIL, "tokens": 220}})
    assert run.ending == ("FAILED", "budget: tokens", 1)
    assert run.calls() == ["plan_task", "next_action"]
    assert run.result["usage"]["meta"] == {"input_tokens": 200, "output_tokens": 20}


def test_budgets_go_on_over_attempts(run: Run) -> None:
    script = [plan(), give_up(), give_up()]
    run.start(script, test=TEST, runner={"budget": {**FAIL, "meta_calls": 2}})
    assert run.ending == ("FAILED", "aborted", 1)
    run.resume()
    assert run.ending == ("FAILED", "budget: meta_calls", 1)
    assert run.result["meta_calls"] == 2


def test_time_that_nodes_take_is_spent(run: Run, clock: FakeClock) -> None:
    def work_takes_an_hour(event: dict[str, object]) -> None:
        if event["event"] == "worker_finished":
            clock.seconds += 3600

    run.adjust = lambda options: replace(options, clock=clock, on_event=work_takes_an_hour)
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {**FAIL, "wall_sec": 3000}})
    assert run.ending == ("FAILED", "budget: wall_sec", 1)
    assert run.result["duration_sec"] == 3600
    assert run.calls() == ["plan_task", "next_action"]
    assert run.result["worker_runs"] == 1


def test_pauses_cost_no_time(run: Run, clock: FakeClock) -> None:
    budget = {"budget": {**FAIL, "wall_sec": 3000}}
    run.start([plan(), consult("Well?"), *HAPPY[1:]], FIX, test=TEST, runner=budget)
    clock.seconds += 86_400
    run.answer("Yes.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["duration_sec"] == 0


def test_the_start_and_the_end_of_a_run_are_in_its_time_and_not_in_its_budget(
    run: Run, clock: FakeClock
) -> None:
    def notes_take_long(event: dict[str, object]) -> None:
        if event["event"] == "note_written":
            clock.seconds += 4
        if event["event"] == "state_changed" and event["to"] == "COMPLETE":
            clock.seconds += 2

    given = clock.now() - timedelta(seconds=600)
    run.adjust = lambda options: replace(
        options, clock=clock, on_event=notes_take_long, given_at=given
    )
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {**FAIL, "wall_sec": 300}})
    assert run.ending == ("COMPLETE", "complete", 0)
    whole = (clock.now() - given).total_seconds()
    assert run.result["duration_sec"] + run.result["waited_sec"] == whole == 606
    assert run.result["duration_sec"] == 604 and run.state()["counters"].wall_sec == 4
    shown = show_values(run.project.state_dir, run.id)
    assert [shown[name] for name in ("duration_sec", "waited_sec")] == [604, 2]


@pytest.mark.whole
def test_thinking_of_a_person_at_the_terminal_costs_no_time(run: Run, clock: FakeClock) -> None:
    def ask(question: Question) -> Answer:
        clock.seconds += 86_400
        return Answer(id=question.id, kind="ask_human", text="Yes.")

    run.adjust = lambda options: replace(options, clock=clock, ask=ask)
    budget = {"budget": {**FAIL, "wall_sec": 3000}}
    run.start([plan(), consult("Well?"), *HAPPY[1:]], FIX, test=TEST, runner=budget)
    assert run.ending == ("COMPLETE", "complete", 0)


def test_a_worker_gets_no_more_time_than_is_left(run: Run) -> None:
    runner = {"budget": {**FAIL, "wall_sec": 2}, "worker": {"max_run_time_sec": 600}}
    run.start([plan(), work(), give_up()], "sleep 30", runner=runner)
    (ended,) = run.project.told("worker_finished")
    assert ended["outcome"] == "timeout"
    assert ended["duration_sec"] < 10
    assert run.ending == ("FAILED", "budget: wall_sec", 1)


def test_a_spent_budget_keeps_what_was_done(run: Run) -> None:
    run.start(HAPPY, NO_FIX, test=TEST, runner={"budget": {**FAIL, "meta_calls": 2}})
    assert run.result["changed_files"] == ["calc.py"]
    assert "looked at" in run.project.read("calc.py")


# -- a spent budget asks --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["meta_calls", "tokens", "wall_sec", "worker_runs"])
def test_none_at_all_asks_before_anything_is_spent(run: Run, name: str) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {name: 0}})
    assert (run.result["exit_code"], run.kind) == (4, "budget")
    assert run.calls() == ["plan_task", "next_action"] * (name == "worker_runs")
    assert run.result["worker_runs"] == 0
    assert run.subject["limit"] == name
    more, stop = run.result["waiting"]["options"]
    assert (more.partition("=+")[0], stop) == (name, "stop")


def test_who_costs_nothing_needs_no_money(run: Run) -> None:
    """Nor does a command that has no way out of its box."""
    runner = {"sandbox": {"kind": "bwrap"}, "budget": {"usd": 0}}
    run.start(HAPPY, FIX, test=TEST, runner=runner)
    assert run.ending == ("COMPLETE", "complete", 0), run.result


def test_a_worker_that_may_cost_is_asked_about_before_it_starts(run: Run) -> None:
    """A command with a way out may call a model with a price."""
    reach = {"sandbox": {"kind": "bwrap", "network": {"policy": "full"}}}
    run.start(HAPPY, FIX, test=TEST, runner={**reach, "budget": {"usd": 0}})
    assert (run.result["exit_code"], run.kind, run.subject["limit"]) == (4, "budget", "usd")
    assert run.result["worker_runs"] == 0
    assert run.result["waiting"]["text"].startswith(
        "The budget runner.budget.usd is 0, and 0.00 US dollars are spent. "
    )


@pytest.mark.whole
def test_the_question_says_what_is_spent_on_what_and_what_it_takes(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"tokens": CALL + 1}})
    assert run.result["waiting"]["text"] == (
        "The budget runner.budget.tokens is spent: 220 of 111 tokens. Planner: 2 calls, 220 "
        "tokens; workers: 0 runs, 0 tokens, as far as is known; 0 s of work. "
        "The next worker run needs at least tokens=+110. Raise it, or stop here?"
    )


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("budget", "grant", "path"),
    [
        ({"meta_calls": 0}, "meta_calls=+9", "PENDING PLANNING RUNNING VALIDATING COMPLETE"),
        ({"meta_calls": 1}, "+9", "PENDING PLANNING RUNNING VALIDATING COMPLETE"),
        ({"worker_runs": 0}, "+1", "PENDING PLANNING RUNNING VALIDATING COMPLETE"),
        ({"tokens": 2 * CALL}, "tokens=+20_000", "PENDING PLANNING RUNNING VALIDATING COMPLETE"),
        ({"tokens": 3 * CALL}, "1", "PENDING PLANNING RUNNING VALIDATING COMPLETE"),
    ],
)
def test_it_is_raised_and_goes_on_exactly_where_it_was(
    run: Run, budget: dict[str, float], grant: str, path: str
) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": budget})
    assert run.kind == "budget"
    run.answer(grant)
    assert run.ending == ("COMPLETE", "complete", 0), run.result
    assert run.path() == path.split()
    assert run.calls() == ["plan_task", "next_action", "next_action", "completion_assessment"]
    assert (run.result["meta_calls"], run.result["worker_runs"]) == (4, 1)


@pytest.mark.whole
def test_too_little_is_asked_about_again(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"tokens": CALL + 1}})
    first = run.question
    run.answer("+1")
    assert run.kind == "budget"
    assert run.question != first
    assert run.subject["of"] == CALL + 2
    run.answer("+9999")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.state()["grants"] == {"tokens": 10_000}


@pytest.mark.series(3)
@pytest.mark.parametrize("text", ["yes", "5", "usd=+5", "tokens=+0.5", "tokens=5", "+5 stop"])
def test_a_malformed_answer_is_refused_and_the_question_stays(run: Run, text: str) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"tokens": 0}})
    question = run.question
    with pytest.raises(UsageError) as refused:
        run.answer(text)
    assert refused.value.exit_code == 2
    run.resume()
    assert (run.question, run.state()["counters"].meta_calls) == (question, 0)


@pytest.mark.whole
def test_a_yes_is_no_amount(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"tokens": 0}})
    with pytest.raises(UsageError, match="answer it"):
        run.approve()


def test_stop_ends_it_as_it_ended_before(run: Run) -> None:
    run.start(HAPPY, NO_FIX, test=TEST, runner={"budget": {"meta_calls": 2}})
    run.answer("stop")
    assert run.ending == ("FAILED", "budget: meta_calls", 1)
    assert run.result["changed_files"] == ["calc.py"]
    assert "The budget of model calls is spent." in run.note()


def test_in_a_terminal_it_is_asked_inline_and_again_after_a_slip(run: Run) -> None:
    said = iter(["five", "+9"])

    def ask(question: Question) -> Answer:
        return Answer(id=question.id, kind=question.kind, text=next(said))

    run.adjust = asking(ask)
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"meta_calls": 2}})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert ("wrong-answer", "'five' raises no limit.") in [
        (code, text.partition(" Try:")[0]) for code, text in run.warnings()
    ]


def test_the_answer_to_another_question_is_not_lost_under_it(run: Run) -> None:
    """The node that was to hear it is the one that has no room for a call."""
    script = [plan(), consult("Blue or red?"), *HAPPY[1:]]
    run.start(script, FIX, test=TEST, runner={"budget": {"meta_calls": 2}})
    run.answer("Green.")
    assert run.kind == "budget"
    run.answer("+9")
    assert run.ending == ("COMPLETE", "complete", 0)
    prompt = run.prompt(2)
    assert "Blue or red?" in prompt and "words: Green." in prompt
    assert "runner.budget" not in prompt


@pytest.mark.whole
def test_words_of_a_person_are_heard_after_the_raise(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"meta_calls": 1}})
    run.resume(message="Mind the sign.")
    assert run.kind == "budget"
    run.answer("+9")
    assert "Mind the sign." in run.prompt(1)


# -- resume --budget ------------------------------------------------------------------------------


def test_resume_with_a_budget_answers_the_question(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"tokens": CALL}})
    run.resume(budget=["tokens=+500", "tokens=+500"])
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.state()["grants"] == {"tokens": 1000}


def test_resume_with_a_budget_starts_the_next_attempt_of_a_failed_run(run: Run) -> None:
    script = [plan(), work(), finish(), assess()]
    run.start(script, FIX, test=TEST, runner={"budget": {**FAIL, "meta_calls": 2}})
    assert run.ending == ("FAILED", "budget: meta_calls", 1)
    run.resume()
    assert run.ending == ("FAILED", "budget: meta_calls", 1)
    run.resume(budget=["meta_calls=+2"])
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["attempt"] == 3


@pytest.mark.whole
def test_resume_with_a_budget_raises_it_while_another_question_is_open(run: Run) -> None:
    script = [plan(), consult("Well?"), *HAPPY[1:]]
    run.start(script, FIX, test=TEST, runner={"budget": {"meta_calls": 2}})
    run.resume(budget=["meta_calls=+3"])
    assert run.kind == "ask_human"
    run.answer("Yes.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["meta_calls"] == 5


@pytest.mark.parametrize("grant", ["meta_calls=9", "usd=+5", "9", "+9"])
def test_resume_takes_no_other_budget(run: Run, grant: str) -> None:
    run.start([plan(), give_up()], test=TEST, runner={"budget": {"meta_calls": 2}})
    with pytest.raises(UsageError) as refused:
        run.resume(budget=[grant])
    assert refused.value.exit_code == 2
    assert run.log("grant") == []


# -- exactness ------------------------------------------------------------------------------------


def bill_tokens(result: dict[str, Any]) -> int:
    return sum(row["input_tokens"] + row["output_tokens"] for row in result["bill"])


def test_the_bill_adds_up_to_the_counters(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner={"budget": {"tokens": 440}})
    assert [
        (row["role"], row["model"], row["calls"], row["known"]) for row in run.result["bill"]
    ] == [
        ("planner", "script", 3, "reported"),
        ("assess", "script", 1, "reported"),
    ]
    assert bill_tokens(run.result) == 4 * CALL == run.state()["counters"].tokens
    assert "What it cost:" in run.note()


class Died(BaseException):
    """The process is gone; nothing in it gets to do anything."""


@pytest.mark.series(2)
@pytest.mark.parametrize("at", range(1, 5))
def test_calls_of_a_node_that_was_killed_are_counted_once(run: Run, at: int) -> None:
    """The call was made and paid, and the state that counts it was never saved."""
    seen = 0

    def die(event: dict[str, object]) -> None:
        nonlocal seen
        seen += event["event"] == "meta_call"
        if seen == at:
            raise Died

    run.adjust = lambda options: replace(options, on_event=die)
    with pytest.raises(Died):
        run.start(HAPPY, FIX, test=TEST)
    run.adjust = lambda options: options
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["meta_calls"] == 5
    assert run.result["usage"]["meta"] == {"input_tokens": 500, "output_tokens": 50}
    assert bill_tokens(run.result) == 5 * CALL
    run.resume()
    assert run.result["meta_calls"] == 5


def test_what_a_killed_node_spent_is_missing_in_the_budget(run: Run) -> None:
    def die(event: dict[str, object]) -> None:
        if event["event"] == "meta_call":
            raise Died

    run.adjust = lambda options: replace(options, on_event=die)
    with pytest.raises(Died):
        run.start(HAPPY, FIX, test=TEST, runner={"budget": {"meta_calls": 4}})
    run.adjust = lambda options: options
    run.resume()
    assert (run.kind, run.result["meta_calls"]) == ("budget", 4)
    run.answer("+1")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["meta_calls"] == 5


def begun(drill: Drill) -> int:
    logs = list(drill.state_dir.glob("runs/*/log.jsonl"))
    return len(RunLog(logs[0]).records("meta_begun")) if logs else 0


def test_a_call_that_was_killed_half_way_is_counted_as_one_nobody_knows(tmp_path: Path) -> None:
    """kill -9 while the second answer is on its way: the first one of that node is counted, too."""
    bad: list[Item] = [{"reply": "No.", "usage": {"input_tokens": 100, "output_tokens": 10}}]
    slow = {**work(), "delay_sec": 2}
    script = tmp_path / "replies.yaml"
    script.write_text(json.dumps([plan(), *bad, slow, finish(), assess()]), "utf-8")
    meta = {"kind": "script", "script": str(script)}
    with Drill.open(tmp_path, runner={"meta": meta}) as drill:
        process = drill.begin()
        until(lambda: begun(drill) == 3, "the third call begins")
        process.kill()
        process.communicate()
        result = drill.resume()
        assert (result["state"], result["exit_code"]) == ("COMPLETE", 0), result["text"]
        assert [(row["role"], row["calls"], row["known"]) for row in result["bill"]] == [
            ("planner", 5, "reported"),
            ("planner", 1, "unknown"),
            ("assess", 1, "reported"),
        ]
        assert result["meta_calls"] == 7
        assert bill_tokens(result) == 6 * CALL == sum(result["usage"]["meta"].values())
        assert result["usage"]["usd"] is None
