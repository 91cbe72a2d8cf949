"""What is going to happen, told before anything is started."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.plans.execution.forecast import Forecast, forecast_of
from agentrunner.plans.execution.task_runner import asked_for
from agentrunner.plans.execution.task_runs import ALLOWANCE, LANDING, TaskRun
from agentrunner.plans.plan import PlanTaskStatus
from agentrunner.plans.store import PlanStore, StoredTask
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.run_folder import RunFolder, runs_root
from tests.kit.plan_project import AT, Work, plan_of

DONE, FAILED, SECOND, THIRD = "TASK-0001", "TASK-0002", "TASK-0003", "TASK-0004"
TASKS = [DONE, FAILED, SECOND, THIRD]


@pytest.fixture
def store(tmp_path: Path) -> PlanStore:
    """One is done, one has FAILED and asks, one needs that one, and one is free."""
    made = PlanStore(tmp_path / "plan.sqlite")
    works = [Work(), Work(), Work(needs=[2]), Work()]
    made.save(plan_of(works), at=AT, kind="decompose", author="hana", message="make it")
    made.note(StoredTask(DONE, PlanTaskStatus.COMPLETE, "r1"), AT)
    made.note(StoredTask(FAILED, PlanTaskStatus.FAILED, "r2"), AT)
    assert made.ask("What now?", AT, FAILED) == 1
    return made


def look(store: PlanStore, again: Collection[str] = ()) -> Forecast:
    turns = [TaskRun(FAILED, 1, run_id="r0"), TaskRun(FAILED, 2, run_id="r2", question=1)]
    return forecast_of(store.path.parent, store, turns, TASKS, again)


def test_who_waits_is_told_apart_from_who_is_behind(store: PlanStore) -> None:
    assert look(store) == Forecast([DONE], [FAILED], [SECOND])


def test_one_that_is_tried_again_does_not_wait(store: PlanStore) -> None:
    assert look(store, [FAILED]) == Forecast([DONE], [], [])
    store.answer(1, "like this", AT)
    assert look(store) == Forecast([DONE], [], [])


def test_a_question_of_a_run_waits_also_for_who_names_its_task(store: PlanStore) -> None:
    store.note(StoredTask(FAILED, PlanTaskStatus.BLOCKED, "r2"), AT)
    assert look(store, [FAILED]).waiting == [FAILED]


def test_a_round_that_cannot_be_gone_on_with_does_not_wait(store: PlanStore) -> None:
    assert forecast_of(store.path.parent, store, [], TASKS, ()) == Forecast([DONE], [], [])


def test_a_round_for_a_task_that_was_changed_since_does_not_wait(store: PlanStore) -> None:
    mine = asked_for(store.load(), FAILED)
    for word, waiting in ((mine, [FAILED]), ("another task", [])):
        turn = TaskRun(FAILED, 1, run_id="r2", question=1, asked_for=word)
        assert forecast_of(store.path.parent, store, [turn], TASKS, ()).waiting == waiting


def complete(state_dir: Path) -> None:
    """The run of the task that had FAILED is COMPLETE."""
    RunFolder(runs_root(state_dir) / "r2").root.mkdir(parents=True)
    row = RunRow("r2", FAILED, "Task 2", "/repo", "COMPLETE", started_at=AT, finished_at=AT)
    RunIndex(state_dir).record(row)


def test_a_run_that_a_person_accepted_does_not_wait(store: PlanStore) -> None:
    complete(store.path.parent)
    assert look(store) == Forecast([DONE], [], [])


@pytest.mark.parametrize(
    ("present", "waiting"),
    [({}, []), ({"waiting": "worker"}, [FAILED]), ({"finished_at": AT}, [FAILED])],
)
def test_a_run_that_was_answered_by_its_own_name_does_not_wait(
    store: PlanStore, present: dict[str, Any], waiting: list[str]
) -> None:
    """`agentrunner approve RUN`, and the terminal was closed before the run came to its end."""
    folder = RunFolder.create(store.path.parent, "r2")
    row = RunRow("r2", FAILED, "Task 2", "/repo", "RUNNING", started_at=AT)
    RunIndex(store.path.parent).record(replace(row, **present))
    assert folder.root.is_dir() and look(store).waiting == waiting


@pytest.mark.parametrize("asked", [LANDING, ALLOWANCE])
def test_work_that_a_person_is_asked_about_waits_although_its_run_is_complete(
    store: PlanStore, asked: str
) -> None:
    complete(store.path.parent)
    turn = TaskRun(FAILED, 1, run_id="r2", question=1, asked=asked)
    found = forecast_of(store.path.parent, store, [turn], TASKS, ())
    assert found == Forecast([DONE], [FAILED], [SECOND])
