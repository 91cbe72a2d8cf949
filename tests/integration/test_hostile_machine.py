"""T20, T32, T40, T51, T63, T64, T69: a hostile PATH, folder, environment, disk, and floods."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agentrunner import environment
from agentrunner.errors import UsageError
from agentrunner.storage.index import RunIndex
from tests.kit.evil import Said, installed, machine, touched
from tests.kit.files import write
from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project, require_bwrap
from tests.kit.runs import FIX, SMALL, TEST, Run

CHECKLIST = {"meta": {"kind": "checklist"}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    require_bwrap()
    project = Project.make(tmp_path, SMALL)
    (tmp_path / "canaries").mkdir()
    return project


def task_of(project: Project, worker: str = FIX) -> str:
    """A task for the checklist; its path."""
    project.spec(worker, test={"command": TEST}, runner=CHECKLIST)
    return str(project.state_dir.parent / "task.yaml")


# -- PATH and the working folder -------------------------------------------------------------------

PROGRAMS = (
    "git bwrap codex sh bash env python python3 uname ldconfig gcc cc ip ifconfig arp hostname id"
    " lsb_release less vi sysctl prlimit unshare setpriv agent-runner true cat stty tput"
).split()


def test_programs_of_the_repository_do_not_run_on_the_host(project: Project) -> None:
    canaries = project.state_dir.parent / "canaries"
    for folder in (project.repo, project.repo / "bin"):
        folder.mkdir(exist_ok=True)
        for name in PROGRAMS:
            program = folder / name
            text = f'#!/bin/sh\n/usr/bin/touch {canaries}/{name}\nexec /bin/{name} "$@"\n'
            write(program.parent, {program.name: text})
    search = f".::bin:{project.repo}/bin:{os.environ['PATH']}"
    env = machine(project.state_dir, PATH=search)
    task = task_of(project)
    for arguments in (["run", task], ["undo"], ["doctor"]):
        said = installed(*arguments, cwd=project.repo, env=env)
        # This machine may have nobody to work for a task that names no worker: doctor says so.
        assert said.code in ((0, 5) if arguments == ["doctor"] else (0,)), f"{arguments} {said}"
        assert touched(canaries) == set(), arguments


def test_the_programs_that_are_laid_out_would_be_found(project: Project) -> None:
    project.write({"git": "#!/bin/sh\n"})
    found = subprocess.run(
        ["sh", "-c", "command -v git"], cwd=project.repo, env={"PATH": ".:/usr/bin"},
        capture_output=True, check=True,
    )  # fmt: skip
    assert found.stdout == b"./git\n"


MODULES = (
    "yaml typing_extensions sitecustomize usercustomize conftest pydantic typer rich json enum"
    " langgraph langchain_core openai jinja2 aiosqlite sqlite3 cli graph nodes prompts"
).split()


@pytest.mark.series(2)
@pytest.mark.parametrize("how", ["command", "module", "stdin"])
def test_modules_and_settings_of_the_working_folder_are_not_loaded(
    project: Project, how: str
) -> None:
    canaries = project.state_dir.parent / "canaries"
    for name in MODULES:
        place = project.repo / f"{name}.py"
        place.write_text(f"open({str(canaries / name)!r}, 'w')\nraise SystemExit(99)\n")
    with listening() as (port, connections):
        url = f"http://127.0.0.1:{port}"
        (project.repo / ".env").write_text(
            f"OPENAI_BASE_URL={url}\nOPENAI_API_KEY=sk-repo\nLANGSMITH_TRACING=true\n"
            f"LANGSMITH_ENDPOINT={url}\nAGENTRUNNER_STATE_DIR={project.repo}/state\n"
        )
        (project.repo / "langgraph.json").write_text('{"env": ".env", "dependencies": ["."]}')
        task = task_of(project)
        env = machine(project.state_dir)
        bin_folder = Path(sys.executable).parent
        command, stdin = {
            "command": ([str(bin_folder / "agentrunner"), "run", task], ""),
            "module": ([sys.executable, "-m", "agentrunner", "run", task], ""),
            "stdin": ([str(bin_folder / "agent-runner")], Path(task).read_text()),
        }[how]
        done = subprocess.run(
            command, cwd=project.repo, env=env, input=stdin, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert connections == []
    assert touched(canaries) == set()
    assert not (project.repo / "state").exists()


@contextmanager
def listening() -> Iterator[tuple[int, list[str]]]:
    """A port on this machine, and who came to it."""
    came: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    client, address = server.accept()
                except OSError:
                    return
                came.append(str(address))
                client.close()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server.getsockname()[1], came
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


# -- tracing ---------------------------------------------------------------------------------------


ASKS = "from langsmith.utils import tracing_is_enabled; print(bool(tracing_is_enabled()))"


@pytest.mark.series(3)
@pytest.mark.parametrize("name", environment.TRACING[:3])
def test_a_variable_that_switches_tracing_on_is_taken_away(name: str) -> None:
    def enabled(script: str, **more: str) -> bool:
        env = {**machine(Path("/nonexistent")), name: "true", **more}
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
        )
        return done.stdout == "True\n"

    assert enabled(ASKS)
    assert not enabled(f"import agentrunner.graph\n{ASKS}")
    assert enabled(f"import agentrunner.graph\n{ASKS}", AGENTRUNNER_TRACE="1")


def test_tracing_of_the_shell_is_not_obeyed_and_said_so(project: Project) -> None:
    with listening() as (port, connections):
        url = f"http://127.0.0.1:{port}"
        more = {"LANGSMITH_ENDPOINT": url, "LANGCHAIN_ENDPOINT": url, "LANGSMITH_API_KEY": "lsv2"}
        env = machine(project.state_dir, **dict.fromkeys(environment.TRACING, "true"), **more)
        said = installed("run", task_of(project), cwd=project.repo, env=env)
        assert said.code == 0, f"{said}"
        assert connections == []
    assert b"is ignored: nothing is sent to a tracing service" in said.err


# -- floods ----------------------------------------------------------------------------------------

FLOODS = {"one line": "head -c 1100000000 /dev/zero | tr '\\0' a", "lines": "yes 0123456789abcdef"}


@pytest.mark.parametrize(
    ("flood", "secret"),
    [("one line", True), pytest.param("lines", False, marks=pytest.mark.whole)],
)
def test_a_flood_is_capped_and_costs_no_memory(project: Project, flood: str, secret: bool) -> None:
    """1 GiB and more of output, also while a secret is looked for in it."""
    os.environ["FLOOD_TOKEN"] = "f" * 40
    project.spec(
        f"{FIX}; {FLOODS[flood]}; exit 0",
        test={"command": TEST},
        runner={**CHECKLIST, "worker": {"env": {"TOKEN": "env:FLOOD_TOKEN"} if secret else {}}},
    )
    env = machine(project.state_dir, FLOOD_TOKEN=os.environ.pop("FLOOD_TOKEN"))
    task = str(project.state_dir.parent / "task.yaml")
    said, memory = measured("run", task, "--json", cwd=project.repo, env=env)
    result = json.loads(said.out.splitlines()[-1])
    assert result["event"] == "result", f"{said}"
    assert result["state"] == "COMPLETE", result["text"]
    assert memory < 160 << 20, f"{memory >> 20} MiB"
    sizes = {path: path.stat().st_size for path in project.state_dir.rglob("*") if path.is_file()}
    assert max(sizes.values()) < (64 << 20) + 4096, sizes
    assert sum(sizes.values()) < 80 << 20
    assert Path(result["note"]).stat().st_size < 1 << 20
    runs = [event for event in map(json.loads, said.out.splitlines())
            if event["event"] == "worker_finished"]  # fmt: skip
    assert runs[0]["outcome"] == "output_limit"
    assert len(said.out) < 8 << 20


MEASURE = """\
import os, resource, sys
code = os.spawnv(os.P_WAIT, sys.argv[2], sys.argv[2:])
open(sys.argv[1], "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


def measured(*arguments: str, cwd: Path, env: dict[str, str]) -> tuple[Said, int]:
    """Run the command; the most memory that it or a child of it had, in bytes.

    A small process stands between: a child starts with the peak of whoever forked it.
    """
    program = str(Path(sys.executable).with_name("agentrunner"))
    between = (sys.executable, "-I", "-S", "-c", MEASURE, str(cwd.parent / "peak"))
    command = [*between, program, *arguments]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, check=False)
    peak = int((cwd.parent / "peak").read_text())
    return Said(done.returncode, done.stdout, done.stderr), peak << 10


# -- disks and folders -----------------------------------------------------------------------------


@pytest.mark.series(2)
@pytest.mark.parametrize("where", ["file", "read-only"])
def test_a_state_folder_that_cannot_be_written_is_named(project: Project, where: str) -> None:
    place = project.state_dir.parent / "closed"
    task = task_of(project)
    if where == "file":
        place.write_text("")
    else:
        place.mkdir()
        require_mounts(place)
    wrap = read_only(place) if where == "read-only" else []
    said = inside(wrap, "run", task, cwd=project.repo, env=machine(place / "state"))
    assert said.code == 5, f"{said}"
    assert b"error[state-unwritable]" in said.err
    assert b"--state-dir" in said.err and b"Traceback" not in said.err


@pytest.mark.whole
def test_a_read_only_note_folder_changes_no_result(project: Project) -> None:
    """The note is found where the result says, and a warning says why."""
    notes = project.repo / ".agent-runner"
    notes.mkdir()
    require_mounts(notes)
    task = task_of(project)
    said = inside(read_only(notes), "run", task, "--json", cwd=project.repo,
                  env=machine(project.state_dir))  # fmt: skip
    result = json.loads(said.out.splitlines()[-1])
    assert (said.code, result["state"]) == (0, "COMPLETE"), f"{said}"
    assert Path(result["note"]).is_relative_to(project.state_dir)
    assert Path(result["note"]).is_file()
    assert b"note-elsewhere" in said.out
    assert list(notes.iterdir()) == []


def require_mounts(place: Path) -> None:
    """Skip where this user cannot make a mount of their own."""
    tried = subprocess.run([*read_only(place), "true"], capture_output=True, check=False)
    if os.geteuid() != 0 or tried.returncode != 0:
        pytest.skip("needs root and mount namespaces")


def read_only(place: Path) -> list[str]:
    """What a command is started with to see this folder read-only."""
    quoted = shlex.quote(str(place))
    script = f'mount --bind {quoted} {quoted} && mount -o remount,bind,ro {quoted} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


def inside(wrap: list[str], *arguments: str, cwd: Path, env: dict[str, str]) -> Said:
    """The installed command, started by another."""
    program = str(Path(sys.executable).with_name("agentrunner"))
    done = subprocess.run(
        [*wrap, program, *arguments], cwd=cwd, env=env, capture_output=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.series(2)
@pytest.mark.parametrize("name", ["a?mode=memory", "a#b", "100%25", "a b'\";--"])
def test_a_state_folder_of_any_name(tmp_path: Path, name: str) -> None:
    project = Project.make(tmp_path, SMALL)
    project.state_dir = tmp_path / name / "state"
    project.state_dir.parent.mkdir()
    run = Run(project)
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.resume()["state"] == "COMPLETE"


INJECTIONS = (
    "x' OR '1'='1", "'; DROP TABLE runs; --", "%", "_", "*", "\\", "probe-%", "x\" OR 1=1",
    "../../etc/passwd", "..", ".", "/", "probe\0", "\u202e", "-", "a" * 5000, "",
)  # fmt: skip


def test_names_of_runs_are_data(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    title = "Robert'); DROP TABLE runs;--"
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST, title=title)
    index = RunIndex(run.project.state_dir)
    (row,) = index.runs()
    for name in INJECTIONS:
        with pytest.raises(UsageError):
            index.find(name, run.project.repo)
    assert index.runs() == [row]
    assert (row.title, index.find("probe", run.project.repo)) == (title, row.run_id)


def test_a_checkpoint_that_is_held_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    path = next(run.project.state_dir.rglob("checkpoints.sqlite"))
    held = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    with closing(held):
        held.execute("begin immediate")
        release = threading.Timer(0.5, lambda: held.execute("rollback"))
        release.start()
        run.resume(on_change=None)
        release.join()
    assert run.result["state"] == "COMPLETE"


# -- what is left ----------------------------------------------------------------------------------


def test_runs_leave_no_file_open_no_thread_and_no_zombie(tmp_path: Path) -> None:
    def held() -> tuple[int, int, list[str]]:
        children = [
            stat.read_text().rpartition(")")[2].split()[0]
            for stat in Path("/proc").glob("[0-9]*/stat")
            if f" {os.getpid()} " in _parent(stat)
        ]
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), children

    seen = []
    for number in range(4):
        run = Run(Project.make(tmp_path / str(number), SMALL))
        orphans = "for i in $(seq 200); do (true &) ; done"
        run.start([plan(), work(), finish(), assess()], f"{FIX}; {orphans}", test=TEST)
        assert run.result["state"] == "COMPLETE"
        seen.append(held())
    # Another test's threads may end in the meantime; none may be added.
    assert all(now <= then for now, then in zip(seen[-1][:2], seen[1][:2], strict=True))
    assert "Z" not in seen[-1][2]
    shutil.rmtree(tmp_path / "0")


def _parent(stat: Path) -> str:
    try:
        return f" {stat.read_text().rpartition(')')[2].split()[1]} "
    except OSError:
        return ""
