"""max_loops: how often a worker runs, and how the run ends when another loop would be needed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.metas import Item, assess, finish, plan, work
from tests.kit.runs import FIX, NO_FIX, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")


def limit(max_loops: int) -> dict[str, Any]:
    return {"meta": {"max_loops": max_loops}}


def always_work(times: int) -> list[Item]:
    """Another prompt each time, so that no two decisions are the same."""
    return [work(f"Try number {number}.") for number in range(times)]


@pytest.mark.series(2)
@pytest.mark.parametrize("max_loops", [0, 1, 5])
def test_a_planner_that_always_orders_work_gets_max_loops_and_one(run: Run, max_loops: int) -> None:
    runner = {**limit(max_loops), "stuck_after": 0}  # what fails is the same each time
    run.start([plan(), *always_work(max_loops + 2)], NO_FIX, test=TEST, runner=runner)
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert run.result["worker_runs"] == max_loops + 1
    assert run.result["loops"] == max_loops
    assert run.calls().count("next_action") == max_loops + 2  # the last one is asked, too
    assert run.project.read("calc.py").count("looked at") == max_loops + 1


@pytest.mark.series(2)
@pytest.mark.parametrize("max_loops", [0, 1])
def test_green_at_the_limit_is_for_a_person(run: Run, max_loops: int) -> None:
    script = [plan(), *always_work(max_loops + 2)]
    run.start(script, "true", runner=limit(max_loops))
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    assert run.result["worker_runs"] == max_loops + 1


@pytest.mark.whole
def test_completion_is_still_asked_for_and_granted_at_the_limit(run: Run) -> None:
    script = [plan(), work(), work("Now."), finish(), assess()]
    worker = "test -e once && sed -i 's/a - b/a + b/' calc.py; touch once"
    run.start(script, worker, test=TEST, runner=limit(1))
    assert run.result["loops"] == run.result["max_loops"] == 1
    assert run.ending == ("COMPLETE", "complete", 0)


def test_no_loop_at_all_is_one_worker_run_and_one_request(run: Run) -> None:
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST, runner=limit(0))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert (run.result["worker_runs"], run.result["loops"]) == (1, 0)


def test_a_refused_request_at_the_limit_ends_the_run(run: Run) -> None:
    run.start([plan(), work(), finish(), work()], NO_FIX, test=TEST, runner=limit(0))
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert run.calls() == ["plan_task", "next_action", "next_action"]


@pytest.mark.whole
def test_refused_requests_are_loops_too(run: Run) -> None:
    run.start([plan(), work(), finish(), finish(), finish()], NO_FIX, test=TEST, runner=limit(2))
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert (run.result["worker_runs"], run.result["loops"]) == (1, 2)


def test_work_ordered_while_fixing_is_no_further_loop(run: Run) -> None:
    run.start(
        [plan(), work(), finish(), work("Now."), finish(), assess()],
        "test -e once && sed -i 's/a - b/a + b/' calc.py; touch once",
        test=TEST,
        runner=limit(1),
    )
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["loops"] == 1


def test_a_criterion_called_failed_at_the_limit_is_failed(run: Run) -> None:
    script = [plan(), work(), finish(), assess(passed=(), failed=("AC-1",))]
    run.start(script, FIX, test=TEST, runner=limit(0))
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert run.result["missing"] == ["AC-1 failed: the model calls it failed"]


def test_a_criterion_that_is_not_critical_stands_in_nobodys_way(run: Run) -> None:
    nice = {"id": "AC-2", "description": "A readme.", "critical": False,
            "check": {"kind": "file", "path": "README.md"}}  # fmt: skip
    must = {"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}}
    run.start([plan(must, nice), work(), finish(), assess()], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert [c["status"] for c in run.result["acceptance_criteria"]] == ["passed", "failed"]


@pytest.mark.whole
def test_a_checklist_asks_once_more_for_what_only_a_person_decides(run: Run) -> None:
    prd = {"text": "# Add\n\n- [ ] It adds (check: `grep -q + calc.py`)\n- [ ] It is polite\n"}
    runner = {"meta": {"kind": "checklist", "max_loops": 5}}
    run.start(None, FIX, test=TEST, prd=prd, runner=runner)
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    assert run.calls().count("next_action") == 3  # work, done, done: the rest would be the same
    (missing,) = run.result["missing"]
    assert missing.startswith("AC-2 is not proven yet: It is polite. To settle it: a check")
