"""People who change, stop and pay for a plan while it is carried out."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentrunner.commands.plan_commands import answered
from agentrunner.errors import UsageError
from agentrunner.git.private_clone import CloneStore
from agentrunner.plans.execution import task_runner
from agentrunner.plans.execution.merging.merge_checks import MergedTests
from agentrunner.plans.execution.merging.merge_queue import TestsRed
from agentrunner.plans.execution.merging.merge_verdict import MergeCandidate, MergeVerdict
from agentrunner.plans.execution.plan_settings import PlanSettings, load_settings, save_settings
from agentrunner.plans.execution.status import look
from agentrunner.plans.execution.task_runs import TaskRun, TaskRunStore
from agentrunner.plans.execution.workspaces import WorkTrees
from agentrunner.plans.plan import Plan, PlanTaskStatus
from agentrunner.plans.store import BUDGET
from agentrunner.screens.plan_status import status_screen
from agentrunner.storage.index import RunIndex
from tests.kit.metas import assess, finish, work
from tests.kit.metas import plan as plan_reply
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


def said(plan: PlanProject, name: str, text: str) -> str:
    """What `plan answer` tells."""
    return answered(name, text, str(plan.project.repo), str(plan.project.state_dir))


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
    assert len(list(TaskRunStore(plan.folder).of("TASK-0001"))) == 2


@pytest.mark.whole
def test_what_is_taken_out_while_it_is_brought_together_does_not_land(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)

    def heard(event: dict[str, Any]) -> None:
        if event["event"] == "plan_task" and "brought together" in event["detail"]:
            plan.store.undo(at=AT, author="hana", force=True)

    plan.heard = heard
    assert plan.carry()["branch"] is None
    assert not plan.told("plan_landed") and states(plan) == ["COMPLETE"]
    assert plan.standings()["TASK-0001"].detail == "is no part of the plan any more"


@pytest.mark.whole
def test_work_is_examined_once_however_many_want_to_land(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each would be examined on a head that moves before it is its turn."""
    together = "touch ../here; until [ $(ls ../../*/here | wc -l) -ge 3 ]; do sleep 0.02; done"
    plan = PlanProject.make(tmp_path, [Work(f"{together}; touch {{}}.done")] * 3, START)
    examined: list[str] = []
    examine = MergedTests.examine

    async def counted(tests: MergedTests, candidate: MergeCandidate) -> MergeVerdict:
        examined.append(candidate.task_id)
        return await examine(tests, candidate)

    monkeypatch.setattr(MergedTests, "examine", counted)
    assert plan.carry(parallel=3)["exit_code"] == 0, plan.events
    assert sorted(examined) == ["TASK-0001", "TASK-0002", "TASK-0003"]


def test_work_that_never_lands_is_for_a_person_after_so_many_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)

    async def refused(places: WorkTrees, turn: TaskRun, *_: object) -> TestsRed:
        clone = CloneStore(plan.folder.clone, plan.project.repo)
        return TestsRed("It is red.", turn.parents[0], clone.tree_of(turn.parents[0]))

    assert task_runner.MOST_FIXES == 3
    monkeypatch.setattr(task_runner, "MOST_FIXES", 1)  # each takes a second
    monkeypatch.setattr(WorkTrees, "merge", refused)
    assert plan.carry()["exit_code"] == 3, plan.events
    assert len(plan.told("plan_fixing")) == 1 and len(plan.told("run_started")) == 2
    assert plan.statuses() == [PlanTaskStatus.NEEDS_REVIEW]
    (question,) = plan.result["questions"]
    assert question["task_id"] == "TASK-0001" and "It is red." in question["text"]


# -- the budget -----------------------------------------------------------------------------------


def limited(plan: PlanProject, **limits: int) -> PlanSettings:
    """The plan's settings with limits."""
    given = [f"runner.budget.{name}={amount}" for name, amount in limits.items()]
    return plan.settings().with_given({}, None, given, plan.project.repo)


def test_a_spent_budget_is_one_question_and_an_answer_raises_it(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work()], START)
    settings = limited(plan, tokens=0)
    save_settings(plan.folder, settings)
    for _ in range(2):
        result = plan.carry(settings=settings)
        assert (result["exit_code"], result["budget_spent"]) == (4, "tokens")
        (question,) = result["questions"]
        assert question["task_id"] == "budget"
        assert "runner.budget.tokens is spent: 0 tokens of 0 tokens" in question["text"]
    assert len(plan.told("plan_question")) == 1 and plan.told("run_started") == []
    needed = Path(plan.result["note"]).read_text("utf-8").partition("## Tasks")[0]
    assert "runner.budget.tokens is spent" in needed
    found = look(plan.project.state_dir, plan.folder, datetime.now(UTC))
    assert "budget" in status_screen(found, width=80)
    said(plan, "budget", "stop")
    assert plan.carry(settings=settings)["exit_code"] == 4
    assert [q.answer for q in plan.store.questions()] == ["stop", None]
    for wrong in ("yes", "tokens=5", "usd=+5", "worker_runs=+1", "tokens=+0.5"):
        with pytest.raises(UsageError) as caught:
            said(plan, "budget", wrong)
        assert caught.value.code == "wrong-answer" and caught.value.exit_code == 2
    assert plan.store.questions()[-1].answer is None
    (question,) = plan.result["questions"]
    assert "plan run" in said(plan, str(question["id"]), "+500")
    settings = load_settings(plan.folder, tmp_path)
    assert settings.overrides["runner.budget.tokens"] == "runner.budget.tokens=500"
    assert settings.options == plan.settings().options
    # It may also be raised by `plan run --budget`, and the question needs no answer then.
    number = plan.store.ask("The budget is spent.", AT, BUDGET)
    assert plan.carry(settings=settings)["exit_code"] == 0, plan.events
    assert next(q.answer for q in plan.store.questions() if q.id == number) == "raised"
    assert plan.result["questions"] == []


REPLIES = [plan_reply(), work(), finish(), assess(passed=("AC-1", "AC-2"))]
CALL = 110
"""Tokens of each call of the script."""


def talkative(place: Path, do: str, tokens: int) -> PlanProject:
    """Two tasks whose runs cost four calls of a planner each."""
    check = "[ -e TASK-000{}.done ]"
    files = {**START, "replies.yaml": json.dumps(REPLIES), "work.sh": do}
    plan = PlanProject.make(place, [Work(check=check), Work(check=check)], files)
    given = ["runner.meta.script=replies.yaml", "runner.worker.command=sh work.sh"]
    settings = plan.settings(meta="script")
    settings = settings.model_copy(update={"overrides": {"loops": "runner.meta.max_loops=1"}})
    given.append(f"runner.budget.tokens={tokens}")
    save_settings(plan.folder, settings.with_given({}, None, given, plan.project.repo))
    return plan


NAMED = "me=$(basename $(dirname $PWD)); touch $me.done"


@pytest.mark.whole
def test_a_run_that_has_spent_the_plans_budget_waits_for_that_of_the_plan(tmp_path: Path) -> None:
    plan = talkative(tmp_path, NAMED, 3 * CALL)
    for _ in range(2):
        settings = load_settings(plan.folder, tmp_path)
        assert plan.carry(parallel=1, settings=settings)["exit_code"] == 4, plan.events
        assert [q["task_id"] for q in plan.result["questions"]] == ["budget"]
        assert plan.standings()["TASK-0001"].detail == "the plan's budget is spent"
    assert plan.statuses() == [PlanTaskStatus.BLOCKED, PlanTaskStatus.PENDING]
    said(plan, "budget", f"tokens=+{5 * CALL}")
    settings = load_settings(plan.folder, tmp_path)
    assert plan.carry(parallel=1, settings=settings)["exit_code"] == 0, plan.events
    assert plan.result["usage"]["tokens"] == 8 * CALL and plan.result["questions"] == []
    assert len(plan.told("run_started")) == 2


def test_a_plan_that_is_at_work_hears_that_its_budget_is_raised(tmp_path: Path) -> None:
    """The first waits for the answer, the second one's run had a part of the budget only."""
    gate = "[ $me = TASK-0001 ] || until [ -e ../../go ]; do sleep 0.02; done"
    plan = talkative(tmp_path, f"{NAMED}; {gate}", 2 * CALL + 1)

    def person() -> None:
        until(lambda: plan.told("plan_question"), "it asks")
        said(plan, "budget", "+10000")
        until(lambda: plan.told("plan_landed"), "the first is part of the branch")

    settings = load_settings(plan.folder, tmp_path)
    assert carried(plan, person, settings=settings)["exit_code"] == 0, plan.events
    assert len(plan.told("plan_question")) == 1
    assert plan.result["usage"]["tokens"] == 8 * CALL
