"""Runs that work outside of the checkout, and runs that end in a commit."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.engine import queries, retention
from agentrunner.errors import LockHeld, UsageError
from agentrunner.execution.deps import Clock
from agentrunner.git.worktree import worktree_place
from agentrunner.storage.failpoints import IN_COMMIT
from agentrunner.storage.index import RunIndex
from agentrunner.storage.locks import me, repository_lock
from tests.kit.docker import IN_DOCKER, require_docker
from tests.kit.landing_run import SCRIPT, LandingRun, outside
from tests.kit.metas import assess, consult, finish, plan, work
from tests.kit.process import Drill, at_point, done
from tests.kit.project import Project
from tests.kit.runs import FIX, NO_FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")


def inside(project: Project) -> LandingRun:
    return LandingRun(project)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path, SMALL)


def portrait(project: Project, *, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Every file of the checkout and of its `.git`, but those that begin with one of `without`."""
    found = {}
    for path in sorted(project.repo.rglob("*")):
        name = str(path.relative_to(project.repo))
        if path.is_file() and not name.startswith((".agent-runner", *without)):
            facts = path.stat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[name] = f"{facts.st_mode:o} {facts.st_mtime_ns} {digest}"
    return found


ADDED = (".git/objects", ".git/refs/heads/agentrunner", ".git/logs/refs/heads/agentrunner")
"""What publishing a branch adds."""


def test_it_ends_in_a_branch_and_the_checkout_is_untouched(project: Project) -> None:
    before = portrait(project, without=ADDED)
    run = outside(project)
    result = run.start()
    assert run.ending == ("COMPLETE", "complete", 0)
    assert portrait(project, without=ADDED) == before
    assert project.git("log", "--format=%s", "main..agentrunner/probe").splitlines() == ["probe"]
    assert project.git("diff", "--name-only", "main", "agentrunner/probe") == "calc.py\n"
    assert "a + b" in project.git("show", "agentrunner/probe:calc.py")
    assert result["commit"] == {
        "id": project.git("rev-parse", "agentrunner/probe").strip(),
        "branch": "agentrunner/probe",
    }
    message = project.git("log", "-1", "--format=%B", "agentrunner/probe")
    assert f"Run: {run.id}" in message
    assert TEST in message
    told = project.told("committed")
    assert [(one["branch"], one["files"]) for one in told] == [("agentrunner/probe", ["calc.py"])]


def test_the_user_finds_the_run_and_its_note_at_home(project: Project) -> None:
    run = outside(project, branch="mine")
    result = run.start()
    assert result["repo"] == str(project.repo)
    assert [row.run_id for row in RunIndex(project.state_dir).runs(project.repo)] == [run.id]
    assert queries.show(project.state_dir, run.id).as_dict()["commit"] == result["commit"]
    assert str(result["note"]).startswith(str(project.repo))
    note = run.note()
    assert f"Committed as `{result['commit']['id']}` on the branch `mine`" in note
    assert "git merge mine" in note
    assert "a + b" in queries.diff(project.state_dir, run.id)


@pytest.mark.whole
def test_an_undo_says_what_it_leaves(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    run = outside(project)
    result = run.start()
    line = ["undo", run.id, "--state-dir", str(project.state_dir)]
    assert cli.call(cli.app, line, "agentrunner") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"files are in {result['worktree']}; your checkout was not touched" in said
    assert f"The commit {result['commit']['id'][:10]} stays on agentrunner/probe" in said
    assert "git branch -D agentrunner/probe" in said


def test_what_is_not_committed_goes_along_and_stays_out_of_the_commit(project: Project) -> None:
    project.write({".gitignore": "*.log\nbuild/\n", "old.txt": "old"})
    project.git("add", "-A")
    project.git("commit", "-qm", "second")
    project.write({"new.txt": "new", "noise.log": "x", "build/x": "x", "tests/more.sh": "true"})
    (project.repo / "old.txt").unlink()
    run = outside(project)
    run.start(worker=f"{FIX}; test -e new.txt && test ! -e old.txt && test ! -e noise.log")
    assert run.result["state"] == "COMPLETE"
    (header,) = [event["header"] for event in project.told("run_started")]
    assert header["landing"]["carried"] == ["new.txt", "old.txt", "tests/more.sh"]
    assert project.git("diff", "--name-only", "main", "agentrunner/probe") == "calc.py\n"
    message = project.git("log", "-1", "--format=%B", "agentrunner/probe")
    assert "not committed: new.txt, old.txt, tests/more.sh" in message
    assert "`new.txt` `old.txt` `tests/more.sh`" in run.note()


@pytest.mark.whole
def test_a_file_that_went_along_and_was_changed_is_committed(project: Project) -> None:
    project.write({"calc.py": SMALL["calc.py"] + "# mine\n", "new.txt": "new"})
    run = outside(project)
    run.start(worker=f"{FIX}; echo more >> new.txt")
    changed = project.git("diff", "--name-only", "main", "agentrunner/probe").splitlines()
    assert changed == ["calc.py", "new.txt"]
    assert "# mine" in project.git("show", "agentrunner/probe:calc.py")
    assert project.read("new.txt") == "new"


def test_clean_takes_nothing_along(project: Project) -> None:
    project.write({"new.txt": "new"})
    run = outside(project, clean=True)
    run.start(worker=f"{FIX}; test ! -e new.txt")
    assert run.result["state"] == "COMPLETE"
    assert project.told("run_started")[0]["header"]["landing"]["carried"] == []


def test_a_submodule_is_left_and_said(project: Project, tmp_path: Path) -> None:
    other = Project.make(tmp_path / "other", {"lib.py": "x"})
    allow = ("-c", "protocol.file.allow=always")
    project.git(*allow, "submodule", "add", "-q", str(other.repo), "lib")
    project.git("commit", "-qm", "a submodule")
    run = outside(project)
    run.start(worker=f"{FIX}; test ! -e lib/lib.py")
    assert run.result["state"] == "COMPLETE"
    assert project.told("run_started")[0]["header"]["landing"]["left"] == ["lib"]
    assert project.git("ls-tree", "agentrunner/probe", "lib").startswith("160000 commit")


def test_setup_runs_in_the_work_tree(project: Project) -> None:
    run = outside(project)
    run.start(worker=f"{FIX}; test -d node_modules", setup={"command": "mkdir -p node_modules"})
    assert run.result["state"] == "COMPLETE"
    assert not (project.repo / "node_modules").exists()


@pytest.mark.whole
def test_installed_packages_that_stay_behind_are_said(project: Project) -> None:
    project.write({".gitignore": "node_modules/\n", "node_modules/a.js": "1", "yarn.lock": ""})
    outside(project).start()
    notices = project.told("run_started")[0]["header"]["notices"]
    (notice,) = [one for one in notices if "checkout" in one]
    assert notice.startswith("node_modules of your checkout is not taken along")
    assert "task.setup.command: 'yarn install --frozen-lockfile'" in notice


def test_two_of_one_repository_work_at_the_same_time(project: Project) -> None:
    lock = repository_lock(project.state_dir, project.repo)
    lock.acquire(me("another-run", "now"))
    try:
        with pytest.raises(LockHeld) as busy:
            inside(project).start(worker=FIX)
        plain = Run(project)
        with pytest.raises(LockHeld) as also:
            plain.start(SCRIPT, FIX, test=TEST)
        assert outside(project).start()["state"] == "COMPLETE"
    finally:
        lock.close()
    assert "--worktree" in busy.value.remedy
    assert "--worktree" in also.value.remedy


def places(project: Project) -> list[Path]:
    return sorted((project.state_dir / "worktrees").glob("*/*"))


@pytest.mark.parametrize("code", ["branch-exists", "branch-name", "no-repository", "no-commit"])
def test_what_cannot_be_is_refused_before_anything_is_there(
    code: str, project: Project, tmp_path: Path
) -> None:
    branch = {"branch-exists": "main", "branch-name": "a..b"}.get(code, "")
    if code == "no-repository":
        (project.repo / ".git").rename(tmp_path / "gone")
    elif code == "no-commit":
        project = Project.make(tmp_path / "more", SMALL)
        project.git("update-ref", "-d", "HEAD")
    with pytest.raises(UsageError) as refused:
        outside(project, branch=branch).start()
    assert refused.value.code == code
    if code == "branch-exists":
        assert refused.value.remedy == "--worktree main-2, or git branch -m main main-2"
    assert not (project.state_dir / "runs").exists()
    assert places(project) == []


@pytest.mark.whole
def test_a_detached_head_is_a_fine_place_to_begin(project: Project) -> None:
    project.git("checkout", "-q", "--detach")
    assert outside(project).start()["commit"]["branch"] == "agentrunner/probe"


def test_a_paused_run_goes_on_in_its_work_tree(project: Project) -> None:
    run = outside(project)
    run.start([plan(), consult("Which?"), work(), finish(), assess()])
    assert run.result["waiting"]
    place = worktree_place(project.state_dir, project.repo, run.id)
    assert run.result["worktree"] == str(place.work)
    run.answer("The first.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert project.git("diff", "--name-only", "main", "agentrunner/probe") == "calc.py\n"


def test_what_did_not_complete_makes_no_branch_and_can_be_taken_on(project: Project) -> None:
    run = outside(project)
    run.start([plan(), work(), finish(), assess()], NO_FIX, runner={"meta": {"max_loops": 0}})
    assert run.result["state"] != "COMPLETE"
    assert project.git("branch", "--list", "agentrunner/*") == ""
    assert run.result["commit"] is None
    assert "looked at" in queries.diff(project.state_dir, run.id)
    assert queries.undo(project.state_dir, run.id).files == ["calc.py"]


def test_a_branch_that_came_meanwhile_is_said_and_resume_tries_again(project: Project) -> None:
    run = outside(project)
    run.start(worker=f"{FIX}", runner={"approve": {"complete": "always"}})
    project.git("branch", "agentrunner/probe")
    run.approve(run.question)
    assert run.result["state"] == "COMPLETE"
    assert run.result["commit"] is None
    assert "branch-exists" in [code for code, _ in run.warnings()]
    with pytest.raises(UsageError):
        run.resume()
    project.git("branch", "-D", "agentrunner/probe")
    assert run.resume()["commit"]["branch"] == "agentrunner/probe"
    assert "a + b" in project.git("show", "agentrunner/probe:calc.py")


def test_garbage_collection_takes_the_work_tree(project: Project) -> None:
    run = outside(project)
    run.start()
    assert len(places(project)) == 1
    orphan = places(project)[0].parent / "probe-none"
    orphan.mkdir()
    retention.collect_garbage(project.state_dir, Clock().now())
    assert orphan in places(project)
    os.utime(orphan, (0, 0))
    retention.collect_garbage(project.state_dir, Clock().now(), older_than_days=0)
    assert places(project) == []


# -- in the checkout ------------------------------------------------------------------------------


def test_a_commit_in_the_checkout_is_of_the_changed_files_alone(project: Project) -> None:
    project.write({".git/hooks/post-index-change": "#!/bin/sh\ntouch ../ran\n"})
    project.write({"mine.txt": "mine", "tests/run.sh": SMALL["tests/run.sh"] + "# mine\n"})
    project.git("config", "user.name", "Hana")
    run = inside(project)
    result = run.start()
    assert run.ending == ("COMPLETE", "complete", 0)
    assert project.git("rev-parse", "main").strip() == result["commit"]["id"]
    assert project.git("diff", "--name-only", "main~1", "main") == "calc.py\n"
    assert project.git("log", "-1", "--format=%an") == "Hana\n"
    lines = [
        line for line in project.git("status", "--porcelain").splitlines() if "agent" not in line
    ]
    assert lines == [" M tests/run.sh", "?? mine.txt"]
    assert not (project.repo / "ran").exists()


@pytest.mark.series(2)
@pytest.mark.parametrize("code", ["detached-head", "staged-changes"])
def test_a_checkout_that_takes_no_commit_is_refused_at_once(code: str, project: Project) -> None:
    if code == "detached-head":
        project.git("checkout", "-q", "--detach")
    else:
        project.write({"calc.py": "x"})
        project.git("add", "calc.py")
    with pytest.raises(UsageError) as refused:
        inside(project).start()
    assert refused.value.code == code
    assert not (project.state_dir / "runs").exists()


def test_a_head_that_moved_meanwhile_gets_no_commit(project: Project) -> None:
    run = inside(project)
    run.start(runner={"approve": {"complete": "always"}})
    project.git("commit", "-qm", "mine", "--allow-empty")
    head = project.git("rev-parse", "HEAD")
    run.approve(run.question)
    assert run.result["state"] == "COMPLETE"
    assert run.result["commit"] is None
    assert "head-moved" in [code for code, _ in run.warnings()]
    assert project.git("rev-parse", "HEAD") == head


# -- killed ---------------------------------------------------------------------------------------


KILLED = [(point, how) for point in IN_COMMIT for how in ("--worktree", "--commit")]


@pytest.mark.series(3)
@pytest.mark.parametrize(("point", "how"), [*KILLED, ("mid_work", "--worktree")])
def test_a_killed_run_ends_with_one_commit(point: str, how: str, tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        begun = drill.command("run", str(drill.task_file), how, **at_point(point))
        assert done(begun).code == -signal.SIGKILL
        made = [record.data["id"] for record in drill.logged("commit")]
        result = drill.resume()
        assert (result["state"], result["exit_code"]) == ("COMPLETE", 0)
        branch = "agentrunner/probe" if how == "--worktree" else "main"
        assert drill.git("rev-list", "--count", branch).strip() == "2"
        assert drill.git("rev-parse", branch).strip() == result["commit"]["id"]
        assert set(made) <= {result["commit"]["id"]}
        assert drill.git("diff", "--name-only", f"{branch}~1", branch) == "calc.py\n"
        clean = drill.git("status", "--porcelain", "-uno")
        assert clean == ""
        assert drill.resume()["commit"] == result["commit"]
        drill.nothing_runs()


@pytest.mark.parametrize("kind", ["none", "docker"])
def test_it_works_in_other_boxes(kind: str, project: Project) -> None:
    if kind == "docker":
        require_docker()
    run = outside(project)
    run.start(runner=IN_DOCKER if kind == "docker" else {"sandbox": {"kind": kind}})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert project.git("diff", "--name-only", "main", "agentrunner/probe") == "calc.py\n"
