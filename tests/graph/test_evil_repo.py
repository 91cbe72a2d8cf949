"""T1, T2, T46: whatever a repository holds, our commands never let its git settings run code."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from agentrunner import cli
from tests.kit.evil import (
    STRANGE,
    VECTORS,
    agentrunner,
    evil_repo,
    fire,
    machine,
    poison,
    touched,
)
from tests.kit.metas import assess, finish, give_up, plan, work
from tests.kit.project import Project, require_bwrap
from tests.kit.runs import FIX, SMALL, TEST, Run


@pytest.fixture
def canaries(tmp_path: Path) -> Path:
    folder = tmp_path / "canaries"
    folder.mkdir()
    return folder


@pytest.fixture
def evil(tmp_path: Path, canaries: Path) -> Project:
    project = Project.make(tmp_path, SMALL)
    evil_repo(project.repo, canaries)
    return project


def test_the_canaries_are_alive(evil: Project, canaries: Path) -> None:
    assert touched(canaries) == set()
    assert fire(evil.repo, canaries) == set(VECTORS)


def test_no_command_runs_code_of_the_repository(
    evil: Project,
    canaries: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    require_bwrap()
    monkeypatch.chdir(evil.repo)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(evil.state_dir))
    monkeypatch.setenv("GIT_DIR", str(evil.repo / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {canaries}/environment")
    evil.spec(FIX, test={"command": TEST}, runner={"meta": {"kind": "checklist"}})
    task = str(evil.state_dir.parent / "task.yaml")
    own = evil.state_dir.parent / "config" / "agentrunner" / "config.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("runner: {meta: {kind: mock}, worker: {kind: mock}}\n")  # doctor wants somebody
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own.parents[1]))

    def run(*arguments: str, code: int = 0) -> bytes:
        ended = cli.call(cli.app, list(arguments), "agentrunner")
        said = capsysbinary.readouterr()
        assert ended == code, (arguments, said)
        assert touched(canaries) == set(), arguments
        return said.out

    settings = (evil.repo / ".git" / "config").read_bytes()
    run("validate", task)
    run("run", task, "--dry-run")
    run("doctor")
    run("init", "fresh")
    run("run", task, "--approve", "worker", "--no-input", code=4)
    run("list")
    run("show")
    waiting = json.loads(run("show", "--json"))["waiting"]["id"]
    run("approve", "--id", waiting)
    run("show", "--json")
    run("logs")
    assert b"+    return a + b" in run("diff")
    run("diff", "--stat")
    run("diff", "--round", "1")
    run("resume", code=2)  # it is COMPLETE: nothing here can go on
    run("undo")
    assert "a - b" in evil.read("calc.py")
    run("undo")
    run("gc", "--older-than", "0")
    assert not (evil.repo / ".agent-runner" / "task-probe.md").exists()  # it went with its run
    assert (evil.repo / ".git" / "config").read_bytes() == settings
    monkeypatch.undo()
    assert fire(evil.repo, canaries) == set(VECTORS)


@pytest.mark.parametrize(
    ("sandbox", "parts"), [("bwrap", ("below",)), ("none", ("below", "top"))], ids=str
)
def test_a_worker_that_lays_traps_is_caught_and_sets_off_none(
    tmp_path: Path, canaries: Path, sandbox: str, parts: tuple[str, ...]
) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    script = tmp_path / "poison.sh"
    script.write_text(poison(canaries, *parts))
    worker = f"{FIX}\n{script.read_text()}"
    run.start(
        [plan(), work(), finish(), give_up()],
        worker,
        test=TEST,
        runner={"sandbox": {"kind": sandbox}},
    )
    assert touched(canaries) == set()
    assert run.result["state"] == "FAILED"
    named = {p for f in run.result["findings"] if f["code"] == "protected_path" for p in f["paths"]}
    assert {
        ".gitattributes",
        "linked/common/HEAD",
        "sub/.git",
        "hooked/.git",
        "linked/.git",
        "tree/.git",
    } <= named
    assert (".git" in named) == (sandbox == "none")


def test_a_worker_cannot_reach_the_repositorys_own_git_in_the_box(
    tmp_path: Path, canaries: Path
) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    config = run.project.repo / ".git" / "config"
    before = config.read_bytes()
    attack = (
        "(mv .git .git2 && mkdir .git) 2>&1; echo evil >> .git/config; rm -rf .git;"
        " mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; echo x > .git/commondir; true"
    )
    run.start([plan(), work(), finish(), assess()], f"{FIX}\n{attack}", test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert config.read_bytes() == before
    assert not (run.project.repo / ".git" / "commondir").exists()
    assert not (run.project.repo / ".git" / "hooks" / "post-checkout").exists()


def test_a_trap_that_changes_no_tree_is_seen_and_forgotten_once_it_is_gone(
    tmp_path: Path,
) -> None:
    """The second round leaves nothing but a `.git` below the top; the third removes it."""
    run = Run(Project.make(tmp_path, SMALL))
    worker = (
        'case "$(cat)" in *trap*) mkdir -p tests/.git; echo evil > tests/.git/config;;'
        f" *mend*) rm -r tests/.git;; *) {FIX};; esac"
    )
    script = [
        plan(), work("Do it."), work("Lay a trap."), finish(), work("Now mend it."), finish(),
        assess(),
    ]  # fmt: skip
    run.start(script, worker, test=TEST, runner={"meta": {"max_loops": 4}})
    assert "tests/.git" in run.prompt(4)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["findings"] == []


@pytest.mark.whole
def test_paths_that_the_task_allows_may_be_changed(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    worker = f"{FIX}; mkdir -p fixtures/.git; echo x > fixtures/.git/config"
    script = [plan(), work(), finish(), assess()]
    run.start(script, worker, test=TEST, allow_changes=["fixtures"])
    assert run.ending == ("COMPLETE", "complete", 0)


def test_a_repository_with_a_strange_path_and_strange_files(tmp_path: Path) -> None:
    require_bwrap()
    project = Project.make(tmp_path / STRANGE, SMALL)
    root = os.fsencode(project.repo)
    for name in (b"-rf", b"\xff\xfe not utf-8", b"new\nline", b"\x1b]0;title\x07", b"a:b,c"):
        Path(os.fsdecode(root + b"/" + name)).write_bytes(b"x")
    (project.repo / "loop").symlink_to("loop")
    (project.repo / "up").symlink_to("..")
    (project.repo / "gone").symlink_to("/nowhere")
    os.mkfifo(project.repo / "pipe")
    env = machine(project.state_dir)
    worker = (
        f"{FIX}; rm -- -rf; mv up UP; printf x > '\N{SNOWMAN}'; printf '\\377' > $(printf '\\376')"
    )
    project.spec(worker, test={"command": TEST}, runner={"meta": {"kind": "checklist"}})
    task = str(project.state_dir.parent / "task.yaml")
    said = agentrunner("run", task, cwd=project.repo, env=env)
    assert said.code == 0, f"{said}"
    assert b"\x1b]" not in said.out + said.err
    note = project.read(".agent-runner/task-probe.md")
    assert "\u202e" not in note and "\x1b" not in note
    for command in (["show"], ["logs"], ["list"], ["diff"], ["diff", "--stat"], ["undo"]):
        said = agentrunner(*command, cwd=project.repo, env=env)
        assert said.code == 0, f"{command} {said}"
    assert (project.repo / "-rf").read_bytes() == b"x"
    assert (project.repo / "up").readlink() == Path("..")


def test_a_repository_whose_path_is_no_text_is_refused(tmp_path: Path) -> None:
    repo = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    repo.mkdir()
    said = agentrunner("run", "--goal", "x", cwd=repo, env=machine(tmp_path / "state"))
    assert said.code == 2, f"{said}"
    assert b"UTF-8" in said.err


@pytest.mark.parametrize("place", ["/", "HOME"])
def test_the_root_and_the_home_are_no_repositories(tmp_path: Path, place: str) -> None:
    env = machine(tmp_path / "state", HOME=str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    repo = env["HOME"] if place == "HOME" else place
    said = agentrunner("run", "--goal", "x", "--repo", repo, cwd=tmp_path, env=env)
    assert said.code == 2, f"{said}"
    assert not (tmp_path / "state").exists()


def test_a_repository_of_another_user_is_left_alone(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    project = Project.make(tmp_path, SMALL)
    os.chown(project.repo, 12345, 12345)
    env = machine(project.state_dir)
    said = agentrunner("run", "--goal", "x", "--planner", "checklist", cwd=project.repo, env=env)
    assert said.code == 5, f"{said}"
    assert b"another user" in said.err


@pytest.mark.series(2)
@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_a_git_file_that_points_elsewhere_works(tmp_path: Path, kind: str) -> None:
    project = Project.make(tmp_path, SMALL)
    if kind == "worktree":
        project.git("worktree", "add", "-q", "../linked")
        project.repo = tmp_path / "linked"
    else:
        outer = Project.make(tmp_path / "outer", {"readme": "x"})
        allow = ("-c", "protocol.file.allow=always")
        outer.git(*allow, "submodule", "add", "-q", str(project.repo), "inner")
        project.repo = outer.repo / "inner"
    assert (project.repo / ".git").is_file()
    run = Run(project)
    worker = f"{FIX}; git log -1 > /dev/null && git status -s > /dev/null; echo x > .git"
    run.start([plan(), work(), finish(), assess()], f"{worker}; true", test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    subprocess.run(["git", "status"], cwd=project.repo, check=True, capture_output=True)
