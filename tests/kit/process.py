"""AgentRunner as processes of their own, to be killed, signalled and raced.

The worker, the set-up and the check of a `Drill` can be held, by files in an ignored folder of the
repository, so that no test has to guess when something happens. A check runs in a clean room and
sees a copy of that folder, as it was before the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentrunner.engine.runs import resume
from agentrunner.storage.events import read_events
from agentrunner.storage.locks import repository_lock, run_lock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import Record, RunLog
from agentrunner.storage.worker_ledger import Ledger
from tests.kit.bwrap import require_bwrap
from tests.kit.project import Project
from tests.kit.warm import WarmPopen

PATIENCE_SEC = 30.0
LOOK_SEC = 0.5
RESULTS = ("result", "plan_result")
FILES = {
    "calc.py": "a - b\n",
    "hold.sh": "if mv .work/hold-$1 .work/held-$1 2>/dev/null; then"
    " until [ -e .work/go ]; do sleep 0.02; done; fi\n",
    "check.sh": "grep -q 'a + b' calc.py && sh hold.sh validation\n",
    ".gitignore": ".work/\n",
}
WORKER = (
    "echo start >> .work/starts; echo working; sh hold.sh worker; sed -i 's/a - b/a + b/' calc.py"
)


def until(condition: Callable[[], Any], what: str, patience: float = PATIENCE_SEC) -> None:
    """Wait for a condition; fails with `what` after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for: {what}"
        time.sleep(0.01)


def living(place: Path) -> dict[int, str]:
    """Command lines of processes that have to do with a folder: by argument, cwd or open file."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) == os.getpid():
            continue
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            links = [folder / "cwd", *(folder / "fd").iterdir()]
            told = [line, *(str(link.readlink()) for link in links if link.is_symlink())]
        except OSError:
            continue
        if any(str(place) in text for text in told):
            found[int(folder.name)] = line
    return found


def until_none_lives(place: Path, patience: float = PATIENCE_SEC) -> None:
    """Wait until no process has to do with a folder, for the end of each that has."""
    deadline = time.monotonic() + patience
    while found := living(place):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                ended = os.pidfd_open(pid)
                # One that lives on may have left the folder.
                select.select([ended], [], [], LOOK_SEC)
                os.close(ended)
        assert time.monotonic() < deadline, f"still there: {found}"


def at_point(point: str, action: str = "kill") -> dict[str, str]:
    """The environment that makes a process do `action` where it reaches a fail-point."""
    return {"AGENTRUNNER_TEST": "1", "AGENTRUNNER_FAILPOINT": f"{point}:{action}"}


@dataclass
class Done:
    """How a command ended."""

    code: int
    result: dict[str, Any]
    """The last line of --json; empty where there is none."""
    stderr: str


@dataclass
class Drill(Project):
    """A project that is worked on by processes, with everything they leave in sight."""

    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @classmethod
    @contextmanager
    def open(
        cls, place: Path, *, sandbox: str = "bwrap", files: Mapping[str, str] = FILES, **task: Any
    ) -> Iterator[Drill]:
        """A project with its task file; whatever still runs at the end is killed."""
        if sandbox == "bwrap":
            require_bwrap()
        drill = cls.make(place, files)
        assert isinstance(drill, cls)
        drill.work.mkdir()
        runner: dict[str, Any] = {
            "meta": {"kind": "checklist", "max_loops": 4},
            "sandbox": {"kind": sandbox},
        }
        for name, value in task.pop("runner", {}).items():
            runner[name] = {**runner.get(name, {}), **value} if isinstance(value, dict) else value
        worker = task.pop("worker", WORKER)
        test = {"command": task.pop("test", "sh check.sh")}
        drill.spec(worker, test=test, runner=runner, **task)
        try:
            yield drill
        finally:
            drill.sweep()

    def sweep(self) -> None:
        """Kill and reap what a failed test left."""
        self.let_go()
        for pid in living(self.place):
            os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()

    @property
    def place(self) -> Path:
        """The folder around everything."""
        return self.state_dir.parent

    @property
    def task_file(self) -> Path:
        """The task that `begin` starts."""
        return self.place / "task.yaml"

    @property
    def work(self) -> Path:
        """The ignored folder in the repository, where tests and worker meet."""
        return self.repo / ".work"

    # -- holding --------------------------------------------------------------------------------

    def hold(self, where: str) -> None:
        """Let the worker, the check (`validation`) or the set-up (`planning`) wait, once."""
        (self.work / f"hold-{where}").touch()

    def until_held(self, where: str) -> None:
        """Wait until it waits there; what comes after it is not held."""

        def held() -> bool:
            return any((folder / f"held-{where}").exists() for folder in [self.work, *self.rooms()])

        until(held, f"{where} is reached")
        for folder in self.sealed():
            (folder / f"hold-{where}").unlink(missing_ok=True)

    def let_go(self) -> None:
        """Nothing is held any more."""
        for folder in [self.work, *self.sealed(), *self.rooms()]:
            (folder / "go").touch()

    def rooms(self) -> list[Path]:
        """The copies of `work` in clean rooms that are open now."""
        return list(self.state_dir.glob("runs/*/rooms/*/room/.work"))

    def sealed(self) -> list[Path]:
        """The copies of `work` from which rooms are furnished."""
        return [one for one in self.state_dir.glob("runs/*/sealed/*") if one.is_dir()]

    # -- processes ------------------------------------------------------------------------------

    def command(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        """Start `agentrunner ARGUMENTS --json`, in the repository where it is there."""
        process = WarmPopen(
            [sys.executable, "-m", "agentrunner", *arguments, "--json"],
            cwd=self.repo if self.repo.is_dir() else self.place,
            env={**os.environ, "AGENTRUNNER_STATE_DIR": str(self.state_dir), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    def begin(self, **env: str) -> subprocess.Popen[str]:
        """Start the task."""
        return self.command("run", str(self.task_file), **env)

    def crash(self, **env: str) -> Done:
        """Start the task and see it end."""
        return done(self.begin(**env))

    def resume(self) -> dict[str, Any]:
        """Resume the run in this process."""
        return asyncio.run(resume(self.run_id, self.options())).as_dict()

    # -- what is there --------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        """The id of the only run."""
        (folder,) = (self.state_dir / "runs").iterdir()
        return folder.name

    @property
    def folder(self) -> RunFolder:
        """The folder of the only run."""
        return RunFolder.open(self.state_dir, self.run_id)

    @property
    def ledger(self) -> Ledger:
        """The ledger of the only run."""
        return Ledger(self.folder)

    def logged(self, kind: str) -> list[Record]:
        """Records of the run log."""
        return RunLog(self.folder.log_file).records(kind)

    def events_of(self, event: str) -> list[dict[str, Any]]:
        """Events of the run, by whichever process."""
        return [line for line in read_events(self.folder.events_file) if line["event"] == event]

    @property
    def starts(self) -> int:
        """How often a worker really began."""
        path = self.work / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def supervisor(self, worker_run_id: str = "1-001") -> int:
        """The pid of a worker run's supervisor, as soon as it has one."""
        until(lambda: self.ledger.started(worker_run_id), "the supervisor says its pid")
        return int(self.ledger.started(worker_run_id)["supervisor"]["pid"])

    def nothing_runs(self) -> None:
        """Wait until no process of ours is left, and see that no lock is held."""
        until_none_lives(self.place)
        assert run_lock(self.folder).probe() is None
        assert repository_lock(self.state_dir, self.repo).probe() is None

    def note(self) -> str:
        """The note, without the times, ids and places that differ between two equal runs."""
        text = (self.repo / ".agent-runner" / "task-probe.md").read_text(encoding="utf-8")
        text = text.replace(self.run_id, "RUN").replace(str(self.place), "PLACE")
        text = re.sub(
            r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?(–\d\d:\d\d)?( [+-]\d\d:\d\d)?", "TIME", text
        )
        text = re.sub(r"\b\d+(\.\d+)? (s|min)\b", "SECONDS", text)
        return re.sub(r"checks/\d+-", "checks/N-", text)


def done(process: subprocess.Popen[str], patience: float = 60.0) -> Done:
    """Wait for the end of a command."""
    out, err = process.communicate(timeout=patience)
    lines = out.splitlines()
    last = json.loads(lines[-1]) if lines else {}
    return Done(process.returncode, last if last.get("event") in RESULTS else {}, err)
