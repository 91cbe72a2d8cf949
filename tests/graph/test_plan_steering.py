"""People who change, stop and pay for a plan while it is carried out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentrunner.conductor.rounds import RoundBook
from agentrunner.planning.plan import Plan, PlanTaskStatus
from agentrunner.runs.index import RunIndex
from tests.kit.plan_project import AT, PlanProject, Work, plan_of
from tests.kit.process import until

START = {"a.txt": "one\n"}
HANGS = "echo $$ > ../../{}.pid; until [ -e ../../go ]; do sleep 0.02; done; touch {}.done"
RUNNING = PlanTaskStatus.RUNNING


def saved(plan: PlanProject, after: Plan) -> None:
    """Somebody changes the plan."""
    now = plan.store.load()
    after = replace(after, version=now.version + 1, goal=now.goal)
    plan.store.save(after, at=AT, kind="plan_patch", author="hana", message="else")


def lives(pid: Path) -> bool:
    """Whether the process is there whose number is in the file."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
        return True
    return False


def carried(plan: PlanProject, person: Callable[[], None], **how: Any) -> dict[str, Any]:
    """Carry the plan out while a person does something; what waits for `go` goes on after that."""

    def acts() -> None:
        try:
            person()
        finally:
            (plan.folder.work / "go").touch()

    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(acts)
        result = plan.carry(**how)
        acting.result()
    return result


def at_work(plan: PlanProject, *numbers: int) -> None:
    """Wait until the workers of these tasks are there."""
    for number in numbers:
        pid = plan.folder.work / f"{number}.pid"
        until(lambda pid=pid: pid.exists() and pid.read_text().strip(), f"{number} works")  # type: ignore[misc]


def states(plan: PlanProject) -> list[str]:
    """Of all runs, the oldest first."""
    rows = RunIndex(plan.project.state_dir).runs()
    return [row.state for row in sorted(rows, key=lambda row: row.started_at)]


def test_a_task_that_is_taken_out_while_at_work_is_stopped_and_the_rest_goes_on(
    tmp_path: Path,
) -> None:
    plan = PlanProject.make(tmp_path, [Work(HANGS)], START)
    saved(plan, plan_of([Work(HANGS), Work(HANGS)]))
    work = plan.folder.work

    def person() -> None:
        at_work(plan, 1, 2)
        plan.store.undo(at=AT, author="hana", force=True)
        until(lambda: not lives(work / "2.pid"), "its worker has ended")
        until(lambda: not (work / "TASK-0002" / "1").exists(), "its work tree is gone")
        assert lives(work / "1.pid") and (work / "TASK-0001" / "1").is_dir()

    assert carried(plan, person)["exit_code"] == 0, plan.events
    assert plan.result["tasks"] == {"TASK-0001": "COMPLETE"}
    gone = plan.standings()["TASK-0002"]
    assert (gone.status, gone.detail) == ("PENDING", "is no part of the plan any more")
    assert [e["task_id"] for e in plan.told("plan_landed")] == ["TASK-0001"]
    assert sorted(states(plan)) == ["COMPLETE", "FAILED"]  # cancelled
    # What comes back is begun anew.
    plan.store.undo(at=AT, author="hana")
    plan.events.clear()
    saved(plan, plan_of([Work(HANGS), Work(HANGS)]))
    assert plan.carry()["exit_code"] == 0, plan.events
    assert [e["task_id"] for e in plan.told("run_started")] == ["TASK-0002"]


def test_a_task_that_is_changed_while_at_work_begins_anew(tmp_path: Path) -> None:
    """What was asked before would else be COMPLETE under what is asked now."""
    plan = PlanProject.make(tmp_path, [Work(HANGS)], START)

    def person() -> None:
        at_work(plan, 1)
        saved(plan, plan_of([Work("echo new > new.txt", "grep -q new new.txt")]))
        until(lambda: not lives(plan.folder.work / "1.pid"), "its worker has ended")

    assert carried(plan, person)["exit_code"] == 0, plan.events
    assert plan.project.git("ls-tree", "--name-only", plan.result["branch"]).split() == [
        "a.txt",
        "new.txt",
    ]
    assert "was changed, and begins anew" in [e["detail"] for e in plan.told("plan_task")]
    assert states(plan) == ["FAILED", "COMPLETE"]
    assert len(list(RoundBook(plan.folder).of("TASK-0001"))) == 2


def test_a_task_that_is_changed_after_it_failed_begins_anew(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work("true")], START)
    assert plan.carry()["exit_code"] != 0
    saved(plan, plan_of([Work()]))
    assert plan.carry()["exit_code"] == 0, plan.events
    assert plan.result["questions"] == [] and plan.store.questions()[0].answer is not None
    assert len({e["run_id"] for e in plan.told("run_started")}) == 2
