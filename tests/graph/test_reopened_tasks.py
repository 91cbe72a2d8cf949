"""A plan that is COMPLETE and is not at its end: a task is changed, a branch is in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.plans.execution.delivery import DeliveryOptions
from agentrunner.plans.patch import PlanEdit, apply
from agentrunner.plans.plan import PlanTaskStatus
from tests.kit.plan_project import AT, PlanProject, Work

pytestmark = pytest.mark.usefixtures("without_a_box")

COMPLETE, PENDING = PlanTaskStatus.COMPLETE, PlanTaskStatus.PENDING


def test_a_complete_task_that_is_changed_is_proven_anew(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work(needs=[1])], {"a.txt": "a\n"})
    assert plan.carry()["exit_code"] == 0
    more = {
        "description": "More.\nDO: touch more.txt",
        "acceptance_criteria": ("there is more (check: `test -e more.txt`)",),
    }
    changed = apply(plan.store.load(), [PlanEdit("update", "TASK-0001", more)])
    plan.store.save(changed, at=AT, kind="plan_patch", author="hana", message="more")
    assert plan.statuses() == [PENDING, COMPLETE]
    assert plan.carry()["exit_code"] == 0
    assert plan.statuses() == [COMPLETE, COMPLETE]
    assert plan.published("more.txt") == plan.published("1.done") == plan.published("2.done") == ""
    assert [event["task_id"] for event in plan.told("plan_landed")][2:] == ["TASK-0001"]


@pytest.mark.whole
def test_what_is_done_and_kept_off_a_branch_that_somebody_is_on_is_no_success(
    tmp_path: Path,
) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work(needs=[1])], {"a.txt": "a\n"})

    def check_out(event: dict[str, object]) -> None:
        if event["event"] == "plan_published" and not plan.told("warning"):
            plan.project.git("switch", "-q", str(event["branch"]))

    plan.heard = check_out
    result = plan.carry(parallel=1)
    assert plan.statuses() == [COMPLETE, COMPLETE] and result["exit_code"] == 5
    assert "branch-checked-out" in {event["code"] for event in plan.told("warning")}
    plan.heard = lambda event: None
    plan.project.git("switch", "-q", "--detach")
    assert plan.carry()["exit_code"] == 0
    assert plan.published("2.done") == ""


def test_a_branch_that_was_deleted_comes_back_unless_it_was_merged(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], {"a.txt": "a\n"})
    branch = plan.carry()["branch"]
    plan.project.git("branch", "-D", branch)
    assert plan.carry()["exit_code"] == 0
    assert plan.published("1.done") == "", "it is said to be there"
    plan.project.git("merge", "-q", branch)
    plan.project.git("branch", "-D", branch)
    assert plan.carry()["exit_code"] == 0
    assert plan.project.git("branch", "--list", branch) == ""


def test_a_repository_that_is_away_for_a_while_is_given_what_has_landed(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work()], {"a.txt": "a\n"})
    away = tmp_path / "away"

    def move(event: dict[str, object]) -> None:
        if event["event"] == "plan_opened" and not away.exists():
            plan.project.repo.rename(away)

    plan.heard = move
    result = plan.carry(parallel=1)
    assert plan.statuses() == [COMPLETE, COMPLETE] and result["exit_code"] == 5
    landed = [event["task_id"] for event in plan.told("plan_landed")]
    assert landed == ["TASK-0001", "TASK-0002"] and not plan.project.repo.exists()
    plan.heard = lambda event: None
    away.rename(plan.project.repo)
    assert plan.carry()["exit_code"] == 0
    assert plan.published("1.done") == plan.published("2.done") == ""


@pytest.mark.whole
def test_a_repository_that_is_away_for_a_moment_keeps_nothing_back(tmp_path: Path) -> None:
    same = Work("echo x > same.txt", "[ -e same.txt ]")
    plan = PlanProject.make(tmp_path, [same, same], {"a.txt": "a\n"})
    away = tmp_path / "away"

    def move(event: dict[str, object]) -> None:
        if event["event"] == "plan_landed" and len(plan.told("plan_landed")) == 2:
            plan.project.repo.rename(away)  # what has landed is there already: nothing was added
        elif event["event"] == "warning" and away.exists():
            away.rename(plan.project.repo)

    plan.heard = move
    result = plan.carry()
    assert plan.told("warning") and plan.statuses() == [COMPLETE, COMPLETE]
    assert result["exit_code"] == 0 and plan.published("same.txt") == "x\n"


def test_a_plan_whose_one_commit_was_merged_goes_on_from_there(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], {"a.txt": "a\n"})
    squash = {"wishes": DeliveryOptions(squash=True)}
    assert plan.carry(**squash)["exit_code"] == 0
    git = plan.project.git
    git("merge", "-q", plan.result["branch"])
    git("commit", "-q", "--allow-empty", "-m", "by hand")
    more = {
        "title": "More",
        "description": "DO: touch more.txt",
        "acceptance_criteria": ("there is more (check: `test -e more.txt`)",),
    }
    grown = apply(plan.store.load(), [PlanEdit("create", "t", more)])
    plan.store.save(grown, at=AT, kind="plan_patch", author="hana", message="more")
    plan.carry(**squash)
    assert plan.published("more.txt") == ""
    assert git("rev-parse", f"{plan.result['branch']}~") == git("rev-parse", "HEAD")
