"""A short run that is struck: its worker asks a host and edits in steps, its test counts them."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from agentrunner.sandboxes.process_tree import ProcessIds
from tests.kit.chaos import Blow, Struck, below, boxed, happened, named
from tests.kit.engine_watch import EngineWatch
from tests.kit.process import Done, Drill

MOST_LOOPS = 6
STEPS = 6
EVENTS = ("started", "run_started", "decision", "worker_started", "step", "worker_finished",
          "check")  # fmt: skip
BESIDE_A_WORKER = ("worker_started", "step")
VICTIMS = {
    "driver": EVENTS,
    "supervisor": BESIDE_A_WORKER,
    "proxy": BESIDE_A_WORKER,
    "helper": BESIDE_A_WORKER,
    "keeper": EVENTS[1:],
    "engine": EVENTS,
}

CHANGED = {" M calc.py", "?? .agent-runner/"}
"""What `git status` tells at the end: the edit, and the folder of the note."""
WORKER = f"""\
import pathlib, socket, time

def hello(deadline):
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", 3128), 5) as line:
                line.sendall(b"CONNECT db.local:PORT HTTP/1.1\\r\\nHost: db.local:PORT\\r\\n\\r\\n")
                if b"hello" in line.makefile("rb").read():
                    return
        except OSError:
            pass  # the proxy is away
        time.sleep(0.02)
    raise SystemExit("db.local is out of reach")

work = pathlib.Path(".work")
with (work / "starts").open("a") as starts:
    starts.write("start\\n")
for step in range(1, {STEPS} + 1):
    hello(time.monotonic() + 15)
    pathlib.Path("calc.py").write_text("a - b\\n" * ({STEPS} - step) + "a + b\\n" * step)
    (work / f"step-{{step}}").touch()
    time.sleep(0.15)
"""
CHECK = f"[ $(grep -c 'a + b' calc.py) = {STEPS} ] && ! grep -q 'a - b' calc.py\n"


class RunChaos(Struck):
    """One run, from its first command to its end."""

    victims = VICTIMS
    most_resumes = 5

    @classmethod
    @contextmanager
    def open(cls, place: Path, port: int, engine: EngineWatch | None) -> Iterator[Self]:
        """A project whose worker needs db.local, which is `port` of this machine's loopback."""
        box, worker = boxed(engine)
        box["network"] = {"allow": [f"db.local:{port}@127.0.0.1"]}
        with Drill.open(
            place,
            sandbox=box["kind"],
            worker="/usr/bin/python3 worker.py",
            runner={"sandbox": box, "worker": worker, "meta": {"max_loops": MOST_LOOPS}},
        ) as drill:
            files = {"worker.py": WORKER.replace("PORT", str(port)), "check.sh": CHECK}
            drill.write({**files, "calc.py": "a - b\n" * STEPS})
            drill.git("commit", "-q", "-a", "-m", "what it is about", "--allow-empty")
            drill.git("add", "worker.py")
            drill.git("commit", "-q", "-m", "the worker")
            yield cls(drill, engine)

    def _words(self) -> list[str]:
        runs = self.drill.state_dir / "runs"
        if runs.is_dir() and any((run / "spec.json").exists() for run in runs.iterdir()):
            return ["resume", self.drill.run_id]
        return ["run", str(self.drill.task_file)]

    def _events(self) -> Counter[str]:
        return happened(self.drill.state_dir.glob("runs/*/events.jsonl"))

    def _moment(self, blow: Blow, before: Counter[str]) -> Callable[[], bool]:
        if blow.event == "step":
            return lambda: any(self.drill.work.glob("step-*"))
        if blow.event == "run_started":  # or whatever comes first where it goes on
            return lambda: self._events().total() > before.total()
        return super()._moment(blow, before)

    def _reached(self, process: subprocess.Popen[str], seen: Callable[[], bool]) -> bool:
        for step in self.drill.work.glob("step-*"):
            step.unlink()
        return super()._reached(process, seen)

    def _pids(self, victim: str, driver: int, table: dict[int, ProcessIds]) -> list[int]:
        """Of several boxes that of the worker first."""
        supervisors = self._supervisors()
        under = below(supervisors, table)
        if victim == "supervisor":
            pids = supervisors
        elif victim == "proxy":
            pids = named(under, "agentrunner.gateway.main")
        elif victim == "helper":
            pids = self._helpers(under)
        else:
            pids = self._keepers([*under, *below([driver], table)], table)
        return pids[:1]

    def _state(self, ended: Done) -> str:
        return str(ended.result.get("state"))

    def wrong(self, result: dict[str, Any]) -> Iterator[str]:
        drill = self.drill
        if result["exit_code"] != 0 or not result["proof"] or result["missing"]:
            yield f"no evidence: {result}"
        if drill.read("calc.py") != "a + b\n" * STEPS:
            yield f"the edit is wrong: {drill.read('calc.py')!r}"
        if changed := set(drill.git("status", "--porcelain").split("\n")[:-1]) - CHANGED:
            yield f"changed besides: {sorted(changed)}"
        runs = drill.logged("worker_run")
        ids = [run.key for run in runs]
        outcomes = self.fate.outcomes = [run.data["outcome"] for run in runs]
        if len(ids) != len(set(ids)):
            yield f"recorded twice: {ids}"
        started = {name for name in ids if drill.ledger.started(name)}
        if drill.starts > len(started):
            yield f"{drill.starts} workers began, {sorted(started)} are known"
        if unknown := {folder.name for folder in drill.folder.workers_dir.iterdir()} - set(ids):
            yield f"not recorded: {sorted(unknown)}"
        if not set(outcomes) <= {"completed", "failed", "lost", "infra"}:
            yield f"outcomes: {outcomes}"
