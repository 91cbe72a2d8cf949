"""What `gc` finds beside the runs of the index."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agentrunner.engine.retention import collect_garbage
from agentrunner.git.scratch import room
from agentrunner.storage.run_folder import RunFolder
from tests.kit.metas import assess, consult, finish, give_up, plan, work
from tests.kit.plan_project import PlanProject, Work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

LATER = datetime.now(UTC) + timedelta(days=15)


def as_of_studio(run: Run) -> Path:
    """The run's folder as a served graph leaves it: apart, and without a row in the index."""
    place = run.project.state_dir / "studio/runs" / run.id
    place.parent.mkdir(parents=True)
    shutil.move(run.folder.root, place)
    (place / "index.json").unlink()
    return place


def test_a_run_of_studio_is_removed_when_its_time_is_over(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert run.result["state"] == "COMPLETE"
    place = as_of_studio(run)
    state_dir = run.project.state_dir
    assert collect_garbage(state_dir, datetime.now(UTC)) == {"removed": [], "kept": [run.id]}
    assert collect_garbage(state_dir, LATER) == {"removed": [run.id], "kept": []}
    assert not place.exists()


def test_notes_go_with_their_runs_but_for_those_that_are_somebodys(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    notes = run.project.repo / ".agent-runner"
    for _ in range(4):
        run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    names = sorted(path.name for path in notes.iterdir())
    assert len(names) == 4
    edited, committed = names[1:3]
    with (notes / edited).open("a") as file:
        file.write("Ask Hana about this.\n")
    subprocess.run(["git", "add", "-f", str(notes / committed)], cwd=run.project.repo, check=True)
    assert len(collect_garbage(run.project.state_dir, LATER)["removed"]) == 4
    assert sorted(path.name for path in notes.iterdir()) == [edited, committed]


def test_a_run_of_studio_that_waits_is_kept(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), consult("Well?")])
    place = as_of_studio(run)
    assert collect_garbage(run.project.state_dir, LATER)["kept"] == [run.id]
    assert place.exists()


def test_what_a_killed_process_left_is_removed_from_runs_that_are_kept(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), consult("Well?")])
    shutil.rmtree(run.project.repo / ".git")
    (run.project.repo / ".git").mkdir()
    os.mknod(run.folder.sock_dir / "proxy.sock", stat.S_IFSOCK)
    assert collect_garbage(run.project.state_dir, LATER)["kept"] == [run.id]
    assert list(run.folder.sock_dir.iterdir()) == []
    assert not (run.project.repo / ".git").exists()


def test_a_run_of_a_plan_is_kept_until_its_work_has_landed(tmp_path: Path) -> None:
    made = PlanProject.make(tmp_path, [Work(), Work("touch begun")], {"a.txt": "a\n"})
    made.carry()
    landed, waits = (made.standings()[task].run_id for task in ("TASK-0001", "TASK-0002"))
    state_dir = made.project.state_dir
    assert collect_garbage(state_dir, LATER) == {"removed": [landed], "kept": [waits]}
    made.carry(only=("TASK-0002",))
    assert made.standings()["TASK-0002"].run_id == waits


def test_the_oldest_ended_runs_go_where_too_much_is_kept(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    state_dir, now, place = run.project.state_dir, datetime.now(UTC), run.folder.root
    assert collect_garbage(state_dir, now, max_bytes=1 << 30)["kept"] == [run.id]
    found = collect_garbage(state_dir, now, max_bytes=0)
    assert found == {"removed": [run.id], "kept": []}
    assert not place.exists()


def test_a_run_that_waits_stays_however_much_is_kept(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), consult("Well?")])
    found = collect_garbage(run.project.state_dir, LATER, max_bytes=0)
    assert found == {"removed": [], "kept": [run.id]}


def test_what_a_killed_verification_left_is_removed(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    left = [state_dir / name for name in ("verify/agentrunner.1", "verify-old", "verify-young")]
    for folder in left:
        (folder / "sandbox").mkdir(parents=True)
    os.utime(state_dir / "verify-old", (0, 0))
    with room(state_dir / "verify"):
        collect_garbage(state_dir, LATER, dry=True)
        assert all(folder.is_dir() for folder in left)
        collect_garbage(state_dir, LATER)
        assert [folder.is_dir() for folder in left] == [True, False, True], "one is at work"
    collect_garbage(state_dir, LATER)
    assert [folder.is_dir() for folder in left] == [False, False, True]


def test_a_run_whose_task_cannot_be_read_is_kept_and_keeps_no_other(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    for _ in range(2):
        run.start([plan(), give_up()], test=TEST)
    damaged, other = run.ids()
    state_dir = run.project.state_dir
    RunFolder.open(state_dir, damaged).spec_file.write_text("{")
    assert collect_garbage(state_dir, LATER) == {"removed": [other], "kept": [damaged]}
    assert collect_garbage(state_dir, LATER, 0)["removed"] == [damaged]
