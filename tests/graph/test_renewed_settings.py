"""Settings of a plan that are given later hold for the tasks that have begun, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentrunner.plans.execution.plan_settings import PlanSettings
from agentrunner.plans.plan import PlanTaskStatus
from tests.kit.metas import Item, assess, finish, item, work
from tests.kit.plan_project import AT, PlanProject, Work, answer

pytestmark = pytest.mark.usefixtures("without_a_box")

WRONG = {
    "command": 'runner.worker.command="touch wrong; exit 3"',
    "loops": "runner.meta.max_loops=0",
}


def test_a_task_that_failed_for_a_wrong_setting_is_tried_under_the_right_one(
    tmp_path: Path,
) -> None:
    plan = PlanProject.make(tmp_path, [Work()], {"a.txt": "a\n"})
    right = plan.settings()
    wrong = right.model_copy(update={"overrides": WRONG})
    assert plan.carry(settings=wrong)["exit_code"] == 1
    failed = plan.standings()["TASK-0001"]
    assert plan.carry(settings=right)["exit_code"] == 1, "it waits for a person"
    assert plan.carry(settings=right, only=("TASK-0001",))["exit_code"] == 0, plan.events
    assert plan.statuses() == [PlanTaskStatus.COMPLETE]
    assert plan.standings()["TASK-0001"].run_id == failed.run_id
    assert plan.published("1.done") == plan.published("wrong") == "", "what was done stays"


def test_a_question_that_another_setting_answers_is_asked_no_more(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], {"a.txt": "a\n"})
    settings = plan.settings()
    asking = {**settings.overrides, "ask": "runner.approve.worker=always"}
    assert plan.carry(settings=settings.model_copy(update={"overrides": asking}))["exit_code"] == 4
    (asked,) = plan.result["questions"]
    assert plan.carry(settings=settings)["exit_code"] == 0, plan.events
    assert plan.result["questions"] == [] and asked["task_id"] == "TASK-0001"
    assert plan.published("1.done") == ""


def test_each_task_has_the_script_from_its_first_item_and_as_it_is_now(tmp_path: Path) -> None:
    """A script that was wrong is corrected; what was made from the wrong one is begun anew."""
    plan = PlanProject.make(tmp_path, [Work(), Work(needs=[1])], {"a.txt": "a\n"})
    settings = plan.settings(meta="script")
    script = {**settings.overrides, "script": "runner.meta.script=replies.yaml"}
    settings = settings.model_copy(update={"overrides": script})

    def replies(*items: Item) -> None:
        plan.project.write({"replies.yaml": json.dumps(items)})

    work_on = work("> DO: if [ -e 1.done ]; then touch 2.done; fi; touch 1.done")
    replies(work_on)
    assert plan.carry(settings=settings)["exit_code"] == 1, "its first item is no plan"
    replies(item("plan_task", {"acceptance_criteria": []}), work_on, finish(), assess())
    answer(plan.store, "TASK-0001", "The script is put right.", AT)
    assert plan.carry(settings=settings)["exit_code"] == 0, plan.events


def test_what_may_be_spent_is_no_other_setting() -> None:
    settings = PlanSettings(base_dir="/", options={"meta": "checklist"}, overrides={"a.b": "a.b=1"})
    more = {**settings.overrides, "runner.budget.usd": "runner.budget.usd=9"}
    assert settings.model_copy(update={"overrides": more}).key == settings.key
    others: list[dict[str, object]] = [
        {"setup": "make"},
        {"options": {}},
        {"overrides": {"a.b": "a.b=2"}},
    ]
    for other in others:
        assert settings.model_copy(update=other).key != settings.key
