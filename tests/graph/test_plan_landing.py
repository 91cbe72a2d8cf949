"""What decides about a merge, in whole plans: what tasks have proven, on fresh checkouts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentrunner.errors import TaskFailed
from agentrunner.plans.execution.delivery import DeliveryOptions
from agentrunner.plans.execution.merging.proofs import ProofBook
from agentrunner.plans.execution.status import look
from agentrunner.plans.plan import PlanTaskStatus
from agentrunner.screens.plan_status import status_screen
from agentrunner.storage.run_folder import RunFolder, kept_sandbox
from tests.kit.plan_project import PlanProject, Work

ELSEWHERE = "case $PWD in */merged/tree) exit 1; esac"
"""Red where merges are tried alone: stands for whatever differs between two places."""
QUICK = f"it is quick (check: `[ -e 1.done ]; {ELSEWHERE}`)"
START = {"a.txt": "one\n"}


def test_a_check_that_only_the_room_of_its_run_passes_is_told_of(tmp_path: Path) -> None:
    plan = PlanProject.make(
        tmp_path,
        [
            Work("touch 1.done", criteria=[QUICK]),
            Work(needs=[1]),
        ],
        START,
    )
    result = plan.carry()
    assert result["exit_code"] == 0 and not plan.told("plan_fixing"), plan.events
    told = "AC-2 was green in the run, not on a fresh checkout of its commit"
    (warning,) = plan.told("warning")
    assert warning["message"].startswith(f"TASK-0001: {told}")
    assert (warning["code"], warning["task_id"]) == ("fresh-checkout", "TASK-0001")
    assert told in Path(result["note"]).read_text("utf-8")
    found = look(plan.project.state_dir, plan.folder, datetime.now(UTC))
    assert found.tasks["TASK-0001"].detail.startswith(told)
    assert told in status_screen(found, width=160)
    run = RunFolder.open(plan.project.state_dir, plan.standings()["TASK-0001"].run_id)
    merged = RunFolder(plan.folder.root / "merged")
    assert kept_sandbox(merged) == kept_sandbox(run) != ("", "")


@pytest.mark.whole
def test_tests_that_only_the_room_of_a_run_passes_are_for_another_round(tmp_path: Path) -> None:
    """The second one begins with what differed there, so that it sees it as well."""
    do = "if [ -e 1.done ]; then touch kept; else touch 1.done; fi"
    seen = tmp_path / "seen"
    test = (
        "[ ! -e 1.done ] || [ -e kept ] && exit\n"
        f"case $PWD in */merged/tree) touch {seen};; esac\n[ ! -e {seen} ]\n"
    )
    plan = PlanProject.make(tmp_path, [Work(do, files=["kept"])], {**START, "t.sh": test})
    result = plan.carry(settings=plan.settings(test="sh t.sh"))
    assert result["exit_code"] == 0, plan.events
    (fixing,) = plan.told("plan_fixing")
    assert "fail on a fresh checkout of this task's commit alone" in fixing["evidence"]
    assert "others" not in fixing["evidence"]
    assert plan.published("kept") == "" and not plan.told("warning")


def test_who_solves_a_conflict_at_the_cost_of_the_other_has_one_more_round(tmp_path: Path) -> None:
    """Each has its own line, then throws the other's away, and at last keeps both."""
    do = (
        "if grep -q '<<<<' a.txt; then echo {0} > a.txt;"
        " elif grep -q {0} a.txt; then printf 'x\\ny\\n' > a.txt; else echo {0} > a.txt; fi"
    )
    plan = PlanProject.make(
        tmp_path, [Work(do.format(name), f"grep -q {name} a.txt") for name in ("x", "y")], START
    )
    result = plan.carry()
    assert result["exit_code"] == 0, plan.events
    conflict, broken = plan.told("plan_fixing")
    first, second = (event["task_id"] for event in plan.told("plan_landed"))
    assert conflict["task_id"] == broken["task_id"] == second
    assert "<<<<" in conflict["evidence"] and f"{first} (AC-1)" in broken["evidence"]
    assert set(plan.statuses()) == {PlanTaskStatus.COMPLETE}
    assert plan.published("a.txt") == "x\ny\n"
    # What it had to keep of the other is asked of later merges for the other, not for itself.
    proofs = ProofBook(plan.folder.root / "merged" / "proofs")
    told = [(one.task_id, one.criterion.description) for one in proofs.of([first, second])]
    assert told == [(first, "it is done"), (second, "it is done")]


def test_who_breaks_the_set_up_does_it_anew_where_it_works(tmp_path: Path) -> None:
    """On the merge no run could begin: its set-up comes before all else."""
    do = "[ -e {0} ] && touch 1.done || touch 1.done bad {0}"
    plan = PlanProject.make(tmp_path, [Work(do.format(tmp_path / "once"))], START)
    settings = plan.settings().model_copy(update={"setup": "test ! -e bad"})
    result = plan.carry(settings=settings)
    assert result["exit_code"] == 0, plan.events
    (fixing,) = plan.told("plan_fixing")
    assert fixing["evidence"].startswith("The set-up command fails on a fresh checkout")
    assert "b/bad" in fixing["evidence"], "what was done is not told"
    assert plan.published("1.done") == ""


@pytest.mark.whole
def test_a_conflict_that_breaks_the_set_up_is_solved_without_its_marks(tmp_path: Path) -> None:
    plan = PlanProject.make(
        tmp_path, [Work(f"sed -i '1s/$/ {n}/' a.txt", f"grep -q {n} a.txt") for n in "xy"], START
    )
    settings = plan.settings().model_copy(update={"setup": "! grep -q '<<<<' a.txt"})
    assert plan.carry(settings=settings)["exit_code"] == 0, plan.events
    (fixing,) = plan.told("plan_fixing")
    assert "the set-up command fails on the merge" in fixing["evidence"]
    assert sorted(plan.published("a.txt").split()) == ["one", "x", "y"]


def test_a_branch_on_which_what_tasks_proved_is_red_is_left_alone(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(check="[ -e 1.done ] && [ ! -e theirs ]")], START)
    plan.project.git("checkout", "-q", "-b", "next")
    plan.project.write({"theirs": "x"})
    plan.project.git("add", "-A")
    plan.project.git("commit", "-qm", "theirs")
    plan.project.git("checkout", "-q", "main")
    with pytest.raises(TaskFailed) as caught:
        plan.carry(wishes=DeliveryOptions(onto="next"))
    assert caught.value.code == "onto-red"
    assert "TASK-0001 (AC-1)" in dict(caught.value.details)["evidence"]
    assert plan.project.git("log", "-1", "--format=%s", "next").strip() == "theirs"
    assert set(plan.statuses()) == {PlanTaskStatus.COMPLETE}
