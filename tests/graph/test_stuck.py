"""runner.stuck_after: a run that goes in circles is told so, then ends for a person."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.metas import Item, assess, consult, finish, plan, work
from tests.kit.runs import FIX, NO_FIX, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

LOOPS = 9


def settings(**more: Any) -> dict[str, Any]:
    return {"meta": {"max_loops": LOOPS}, **more}


def again(times: int) -> list[Item]:
    return [work("The very same.") for _ in range(times)]


def notes(run: Run, number: int) -> str:
    """What the planner was told in its call of this number."""
    return run.prompt(number).partition("\nnotes:")[2]


def test_the_same_order_without_a_change_is_told_once_and_not_obeyed_again(run: Run) -> None:
    run.start([plan(), *again(4)], "true", test=TEST, runner=settings())
    assert run.ending == ("NEEDS_REVIEW", "stuck", 3)
    assert run.result["worker_runs"] == 3
    assert run.result["text"].startswith("The same worker prompt changed nothing 3 times")
    assert any("sh tests/run.sh" in sentence for sentence in run.result["missing"])
    assert "Noticed" not in notes(run, 3)
    assert "the same worker prompt was given 3 times in a row" in notes(run, 4)


def test_the_same_failure_whatever_is_tried_ends_for_a_person(run: Run) -> None:
    script = [plan(), *(work(f"Try {number}.") for number in range(LOOPS))]
    run.start(script, NO_FIX, test=TEST, runner=settings())
    assert run.ending == ("NEEDS_REVIEW", "stuck", 3)
    assert run.result["worker_runs"] == 4
    assert "exactly the same was failing" in notes(run, 4)


def test_the_limit_of_loops_strikes_where_it_comes_first(run: Run) -> None:
    run.start([plan(), *again(9)], "true", test=TEST, runner={"meta": {"max_loops": 2}})
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert run.result["worker_runs"] == 3


@pytest.mark.whole
def test_never_means_the_limit_of_loops_alone(run: Run) -> None:
    runner = {"meta": {"max_loops": 5}, "stuck_after": 0}
    run.start([plan(), *again(9)], NO_FIX, test=TEST, runner=runner)
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert run.result["worker_runs"] == 6


def test_what_repeats_can_still_be_judged_complete(run: Run) -> None:
    script = [plan(), *again(4), finish(), assess()]
    run.start(script, FIX, test=TEST, runner=settings())
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 4
    assert "the same worker prompt was given 3 times in a row" in notes(run, 5)


def test_a_person_s_answer_is_a_new_beginning(run: Run) -> None:
    script = [plan(), *again(2), consult("Which way?"), work("The very same."), finish(), assess()]
    worker = f"echo x >> .git/n; test $(wc -l < .git/n) -lt 3 || {FIX}"
    runner = settings(stuck_after=2, sandbox={"kind": "none"})
    run.start(script, worker, test=TEST, runner=runner)
    assert run.result["waiting"]["kind"] == "ask_human"
    run.answer("Go on like that.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 3


@pytest.mark.whole
def test_another_attempt_starts_counting_anew(run: Run) -> None:
    script = [plan(), *again(4), work("The very same."), finish(), assess()]
    run.start(script, f"test ! -e go || {FIX}", test=TEST, runner=settings())
    assert run.ending == ("NEEDS_REVIEW", "stuck", 3)
    run.project.write({"go": ""})
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)
