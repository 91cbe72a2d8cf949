"""Plans, carried out: whole runs in work trees of their own, landed on a branch."""

from __future__ import annotations

from pathlib import Path

from agentrunner.planning.plan import PlanTaskStatus
from tests.kit.plan_project import PlanProject, Work

START = {"a.txt": "one\n", "b.txt": "one\n"}


def test_tasks_have_what_they_depend_on_and_end_in_a_branch(tmp_path: Path) -> None:
    plan = PlanProject.make(
        tmp_path,
        [
            Work("echo two >> a.txt", "grep -q two a.txt"),
            Work("cat a.txt > c.txt", "grep -q two c.txt", needs=[1]),
            Work("echo two >> b.txt", "grep -q two b.txt"),
        ],
        START,
    )
    head = plan.project.git("rev-parse", "HEAD")
    result = plan.carry()
    assert result["exit_code"] == 0, plan.events
    assert set(plan.statuses()) == {PlanTaskStatus.COMPLETE}
    assert result["branch"] == "agentrunner/make-it"
    assert plan.published("c.txt") == "one\ntwo\n" and plan.published("b.txt") == "one\ntwo\n"
    # The checkout is as it was, and nothing is left of the work trees.
    assert plan.project.git("status", "--porcelain") == ""
    assert plan.project.git("rev-parse", "HEAD") == head
    assert [path for path in plan.folder.work.glob("*/*") if path.is_dir()] == []
    # All is done: nothing is run again.
    plan.events.clear()
    assert plan.carry()["exit_code"] == 0
    assert plan.told("run_started") == []
