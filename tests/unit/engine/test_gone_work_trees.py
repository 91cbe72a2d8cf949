"""What a run says whose work tree is not where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.engine.commits import load_task_of
from agentrunner.errors.repositories import WorktreeGone
from agentrunner.plans.execution.task_runs import TaskRun, TaskRunStore
from agentrunner.storage.locks import me
from agentrunner.storage.plan_shelf import put_aside, take_back
from agentrunner.storage.run_folder import RunFolder, save_spec
from tests.kit.plan_project import AT, PlanProject, Work


def test_the_task_of_a_plan_that_was_put_aside_names_the_way_back(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], {"a.txt": "one\n"})
    state, repo = plan.project.state_dir, plan.project.repo
    task_run = TaskRun("TASK-0001", 1, run_id="TASK-0001-7f3a")
    store = TaskRunStore(plan.folder)
    store.save(task_run)
    work = store.workspace(task_run)
    work.mkdir()
    run = RunFolder.create(state, task_run.run_id)
    spec = plan.project.spec(runner={"meta": {"kind": "mock"}})
    save_spec(run, spec.model_copy(update={"repo": str(work), "plan_repo": str(repo)}))
    assert load_task_of(run).part_of == "plan"
    put_aside(state, repo, "old", me("", AT), archived=True)
    with pytest.raises(WorktreeGone) as gone:
        load_task_of(run)
    assert "is a task of the plan old" in gone.value.message
    assert gone.value.remedy == "agentrunner plan switch old, then agentrunner plan run"
    take_back(state, repo, "old")
    assert load_task_of(run).repo == str(work)
    work.rmdir()
    with pytest.raises(WorktreeGone, match="is gone"):
        load_task_of(run)
