"""A run that an older version began: what was before it is measured anew, and that is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agentrunner import api
from agentrunner.engine import retention
from agentrunner.engine.queries import diff, show, undo
from agentrunner.errors import UsageError
from agentrunner.errors.runs import BaselineGone
from tests.kit import older_runs
from tests.kit.metas import assess, consult, finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run


@pytest.fixture
def waiting(tmp_path: Path) -> Run:
    """A run that waits for an answer, without the copy of ignored files that older ones lack."""
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), consult("Which one?"), work(), finish(), assess()], FIX, test=TEST)
    assert run.kind == "ask_human"
    shutil.rmtree(run.folder.root / "sealed")
    return run


def test_its_baseline_is_measured_anew_and_the_run_goes_on(waiting: Run) -> None:
    waiting.answer("This.")
    assert waiting.ending == ("COMPLETE", "complete", 0)
    (criterion,) = waiting.result["acceptance_criteria"]
    assert criterion["grade"] == "proven"
    anew = "This run was begun by an older version: what was before it is measured anew."
    assert ("baseline-renewed", anew) in waiting.warnings()


def test_a_set_up_that_came_later_begins_with_what_is_ignored_now(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    (run.project.repo / ".gitignore").write_text("made/\n", "utf-8")
    setup = {"command": "mkdir -p made; touch made/1"}
    run.start([plan(), give_up(), plan(), give_up()], test=TEST, setup=setup)
    shutil.rmtree(run.folder.root / "sealed")
    task = run.project.state_dir.parent / "task.yaml"
    task.write_text(task.read_text().replace("touch made/1", "touch made/2"), "utf-8")
    run.resume(on_change="replan")
    assert {file.name for file in run.folder.root.glob("sealed/*/*")} == {"1", "2"}


def test_where_what_it_kept_is_gone_it_is_shown_and_not_resumed_and_that_is_said(
    tmp_path: Path,
) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    script = [plan(), work(), consult("Which one?"), finish(), assess()]
    run.start(script, FIX, test=TEST)
    shutil.rmtree(run.folder.root / "sealed")
    objects = run.folder.root / "snapshots" / "objects"
    shutil.rmtree(objects)
    objects.mkdir()
    with pytest.raises(BaselineGone) as refused:
        run.answer("This.")
    said = refused.value
    assert "begun by an older version" in said.message
    assert "is shown, and not resumed" in said.message and f"show {run.id}" in said.remedy
    assert said.exit_code == 5
    assert show(run.project.state_dir, run.id).state == "VALIDATING"


@pytest.mark.whole
def test_it_is_shown_and_undone_as_any_other(waiting: Run) -> None:
    state = waiting.project.state_dir
    assert show(state, waiting.id).waiting is not None
    assert diff(state, waiting.id) == ""
    assert undo(state, waiting.id).files == []


BEFORE = "76cfb6f"
"""The commit before rooms, classes and names were made anew."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state folder with the runs that commit made; their repositories are beside it."""
    return older_runs.unpack(BEFORE, tmp_path)


async def run_of(state: Path, repo: str) -> str:
    (entry,) = await api.runs(state.parent / repo, state_dir=state)
    return entry.run_id


def test_an_archive_is_small_and_names_no_machine(state: Path) -> None:
    assert (older_runs.DATA / f"{BEFORE}.tar.xz").stat().st_size < 200_000
    older_runs.move(state.parent, {str(state.parent): older_runs.PLACE})
    kept = b"".join(path.read_bytes() for path in state.parent.rglob("*") if path.is_file())
    assert [word for word in (b"/tmp/", b"/home/", b"/root", b"root@") if word in kept] == []


async def test_runs_of_an_older_commit_are_listed_shown_and_followed(state: Path) -> None:
    listed = {Path(one.repo).name: one for one in await api.runs(state_dir=state)}
    assert {name: one.stands for name, one in listed.items()} == {
        "done": "complete",
        "waits": "waiting for you",
        "failed": "failed",
    }
    for name, entry in listed.items():
        result = await api.look(entry.run_id, state_dir=state)
        assert (result.state, result.title) == (entry.state, entry.title), name
        events = [event async for event in api.follow(entry.run_id, state_dir=state)]
        assert [event.event for event in events][:2] == ["run_started", "state_changed"]
        assert bool(result.waiting) is (name == "waits")
    done = await api.look(listed["done"].run_id, state_dir=state)
    assert done.changed_files == ["calc.py"] and done.test and done.test.passed == 1


@pytest.mark.whole
async def test_the_work_of_an_older_commit_is_shown_and_taken_back(state: Path) -> None:
    run_id = await run_of(state, "done")
    assert "+    return a + b" in await api.diff(run_id, state_dir=state)
    undone = await api.undo(run_id, state_dir=state)
    assert (undone.files, undone.refused, undone.not_kept) == (["calc.py"], [], [])
    assert "a - b" in (state.parent / "done" / "calc.py").read_text()
    assert (await api.undo(run_id, state_dir=state)).undo_taken_back


async def test_a_run_of_an_older_commit_that_waits_is_answered(state: Path) -> None:
    run_id, how = await run_of(state, "waits"), api.options(state)
    first = await api.look(run_id, state_dir=state)
    assert first.waiting and first.waiting.kind == "complete"
    asked = await api.respond(run_id, "approve", question=first.waiting.id, how=how)
    # What was before it is measured anew, so the person is asked about what is known now.
    assert asked.waiting and asked.waiting.id != first.waiting.id
    result = await api.respond(run_id, "approve", question=asked.waiting.id, how=how)
    assert (result.state, result.grade) == ("COMPLETE", "proven")


@pytest.mark.whole
async def test_a_run_of_an_older_commit_that_failed_gets_its_next_attempt(state: Path) -> None:
    (state.parent / "failed" / "go").write_text("")  # its worker waits for that
    run_id = await run_of(state, "failed")
    result = await api.resume(run_id, api.options(state), max_loops=2)
    assert (result.state, result.attempt, result.grade) == ("COMPLETE", 2, "proven")


async def test_runs_of_an_older_commit_are_deleted_once_they_have_ended(state: Path) -> None:
    ended = [await run_of(state, name) for name in ("done", "failed")]
    now = api.options(state).clock.now()
    done = retention.collect_garbage(state, now, older_than_days=0)
    assert sorted(done["removed"]) == sorted(ended)
    assert await run_of(state, "waits")
    with pytest.raises(UsageError):
        await api.look(ended[0], state_dir=state)
