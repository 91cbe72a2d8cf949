"""The Python API: its page's examples, a run from two processes, and a plan."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner import api
from agentrunner.errors import UsageError
from agentrunner.events import CheckRun, RunEnded, RunStarted
from agentrunner.storage.index import RunIndex
from examples.__main__ import PAGE, examples, make_repository
from tests.kit.plan_project import PlanProject, Work
from tests.kit.warm import warm_run

SAYS = [
    ["COMPLETE proven ['calc.py']"],
    ["test passed", "+    return a + b", "['calc.py']"],
    ["complete", "COMPLETE hana"],
]
SETTINGS = [
    "runner.meta.kind=checklist",
    "runner.worker.kind=command",
    "runner.worker.command=sed -i 's/a - b/a + b/' calc.py",
]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a red test, and a state folder of its own."""
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    make_repository(tmp_path / "shop")
    return tmp_path / "shop"


def task(shop: Path, **named: Any) -> api.TaskSpec:
    return api.read_task(
        goal="add(a, b) has to return the sum.",
        repo=str(shop),
        test="python3 -m unittest",
        settings=SETTINGS,
        sandbox="none",
        **named,
    )


def test_the_examples_of_the_page_say_what_it_says(shop: Path, tmp_path: Path) -> None:
    assert PAGE.read_text("utf-8").count("```python") == len(examples())
    for (_, code), lines in zip(examples(), SAYS, strict=True):
        ran = warm_run([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ})
        assert ran.returncode == 0, ran.stderr
        for line in lines:
            assert line in ran.stdout
    page = PAGE.read_text("utf-8")
    for name in api.__all__:
        assert name[0].isupper() or f"`{name}(" in page or f"{name}(" in page, name


async def test_events_are_followed_from_their_first_to_their_last_while_it_runs(shop: Path) -> None:
    started = asyncio.create_task(api.run(task(shop)))
    while not (known := await api.runs(shop)):
        await asyncio.wait({started}, timeout=0.05)
    found = [event async for event in api.follow(known[0].run_id)]
    result = await started
    assert isinstance(found[0], RunStarted) and isinstance(found[-1], RunEnded)
    assert any(isinstance(event, CheckRun) for event in found)
    assert found[-1].state == result.state == "COMPLETE"
    late = [event async for event in api.follow(result.run_id or "", after=found[-2].seq)]  # type: ignore[attr-defined]
    assert late == found[-1:]
    assert await api.look(result.run_id or "") == result


async def test_a_run_is_accepted_resumed_and_ended_by_words(shop: Path) -> None:
    never = [*SETTINGS[:2], "runner.worker.command=true", "runner.meta.max_loops=1"]
    spec = api.read_task(
        goal="add(a, b) has to return the sum.", repo=str(shop), test="python3 -m unittest",
        settings=never, sandbox="none",
    )  # fmt: skip
    failed = await api.run(spec)
    assert not failed.complete and failed.run_id
    with pytest.raises(UsageError, match="is not waiting for anyone"):
        await api.respond(failed.run_id, "approve")
    (shop / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    accepted = await api.accept(failed.run_id, "Fixed by hand.", by="hana")
    assert accepted.complete
    asked = await api.run(task(shop, approve=["plan"]))
    assert asked.waiting is not None and asked.waiting.kind == "plan" and asked.run_id
    assert (await api.cancel(asked.run_id)).state == "FAILED"


async def test_an_undo_names_what_it_left_alone(shop: Path) -> None:
    done = await api.run(task(shop))
    (shop / "calc.py").write_text("# mine\n")
    undone = await api.undo(done.run_id or "")
    assert (undone.files, undone.refused, undone.not_kept) == ([], ["calc.py"], [])
    forced = await api.undo(done.run_id or "", force=True)
    assert (forced.files, forced.undo_taken_back) == (["calc.py"], False)


async def test_what_a_run_delivered_is_verified_once_more_and_then_deleted(shop: Path) -> None:
    done = await api.run(task(shop))
    run_id = done.run_id or ""
    steps: list[dict[str, Any]] = []
    found = await api.verify(run_id, on_event=steps.append)
    assert (found.confirmed, found.complete, found.missing) == (True, True, [])
    assert any(step["event"] == "check" for step in steps)
    assert (await api.delete_old_runs())["removed"] == []
    assert (await api.delete_old_runs(older_than_days=0, dry=True))["removed"] == [run_id]
    assert [one.run_id for one in await api.runs(shop)] == [run_id]
    assert (await api.delete_old_runs(older_than_days=0))["removed"] == [run_id]
    assert await api.runs(shop) == []


async def test_a_list_records_the_end_of_a_run_that_was_killed_before_it_did(shop: Path) -> None:
    done = await api.run(task(shop))
    state = Path(os.environ["AGENTRUNNER_STATE_DIR"])
    (row,) = RunIndex(state).runs()
    RunIndex(state).record(replace(row, state="VALIDATING", finished_at=None))
    (entry,) = await api.runs(shop)
    assert (entry.run_id, entry.state, entry.stands) == (done.run_id, "COMPLETE", "complete")
    assert entry.finished_at


async def test_a_plan_is_answered_and_undone_as_on_the_command_line(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], {"a.txt": "a\n"})
    repo, where = plan.project.repo, plan.project.state_dir
    asked = plan.store.ask("Which colour?", "2026-01-01T00:00:00+00:00")
    with pytest.raises(UsageError, match="nothing in the message"):
        await api.answer_plan(repo, asked, " ", state_dir=where)
    answered = await api.answer_plan(repo, asked, "Red.", state_dir=where)
    assert (answered.id, answered.answer) == (asked, "Red.")
    with pytest.raises(UsageError, match="no proposal that waits"):
        await api.waiting_proposal(repo, state_dir=where)
    undone = await api.undo_plan(repo, author="hana", state_dir=where)
    assert len(undone.before.tasks) == 1 and not undone.plan.tasks


async def test_a_plan_is_carried_out(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work(needs=[1])], {"a.txt": "a\n"})
    heard: list[str] = []
    how = api.options(plan.project.state_dir, on_event=lambda event: heard.append(event["event"]))
    shared = plan.settings()
    from agentrunner.plans.execution.plan_settings import save_settings

    save_settings(plan.folder, shared)
    result = await api.run_plan(str(plan.project.repo), how)
    stands = await api.plan_status(str(plan.project.repo), state_dir=plan.project.state_dir)
    assert [task.status for task in stands.tasks.values()] == ["COMPLETE"] * 2
    assert result.exit_code == 0 and set(result.tasks.values()) == {"COMPLETE"}
    assert heard[0] == "plan_started" and heard[-1] == "plan_result"
    known = await api.plan(str(plan.project.repo), state_dir=plan.project.state_dir)
    assert len(known.tasks) == 2


def test_a_task_is_read_from_one_source() -> None:
    with pytest.raises(UsageError, match="either a file or a goal"):
        api.read_task()


def test_an_option_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no option `tset`") as refused:
        api.read_task(goal="Add.", repo=tmp_path, tset="true")
    assert refused.value.remedy == "did you mean test?"
    with pytest.raises(UsageError, match="There is no option `wroker`"):
        api.plan_instructions(str(tmp_path), wroker="mock")
