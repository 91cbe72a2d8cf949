"""Short runs, each struck with `kill -9` at moments drawn from a seed, and what becomes of them.

A moment is an event of the run and a fraction of a second after it. What is killed is whatever
plays a part then: the driver, the supervisor, the gateway process, the helper in front of the
worker's box, the keeper of a box, the container engine, or several at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from agentrunner.runs.events import read_events
from agentrunner.sandboxes.cgroups import hierarchies
from agentrunner.sandboxes.enter import GROUP_PREFIX
from agentrunner.supervisor.processes import descendants, process_table, send
from tests.kit.docker import IMAGE
from tests.kit.engine_watch import EngineWatch, mounts_below
from tests.kit.process import Done, Drill, done

MOST_RESUMES = 5
MOST_LOOPS = 6
DELAY_SEC = 0.6
"""The longest time from an event to a kill; the events of a run lie about so far apart."""
APPEAR_SEC = 1.0
"""How long a part that is just being started is waited for."""
SETTLE_SEC = 10.0
"""In which everything that a run has started must have ended after its end."""
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
"""What can be killed, and after which events it may be there."""

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


@dataclass(frozen=True)
class Blow:
    """What is killed, and when."""

    victims: tuple[str, ...]
    event: str
    delay_sec: float
    absent: bool = False
    """An engine comes back only when the command has ended without it."""

    @property
    def kind(self) -> str:
        """The row of the table that it belongs to."""
        return self.victims[0] if len(self.victims) == 1 else "several"

    def __str__(self) -> str:
        return f"{'+'.join(self.victims)} at {self.event}+{self.delay_sec * 1000:.0f} ms"


def draw(random: Random, kind: str, *, engine: bool) -> Blow:
    """A blow of this kind; `several` is two or three victims, the engine only if there is one."""
    victims = [kind]
    if kind == "several":
        known = [name for name in VICTIMS if engine or name != "engine"]
        victims = sorted(random.sample(known, random.choice((2, 2, 3))))
    events = [e for e in EVENTS if all(e in VICTIMS[victim] for victim in victims)]
    return Blow(
        tuple(victims),
        random.choice(events),
        random.uniform(0, DELAY_SEC),
        absent=random.random() < 0.3,
    )


@dataclass
class Fate:
    """What became of one run."""

    blows: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    """What was there to be killed."""
    codes: list[int] = field(default_factory=list)
    """Exit codes of `run` and of each `resume`; minus 9 for a killed driver."""
    resumes: int = 0
    state: str = ""
    outcomes: list[str] = field(default_factory=list)
    """Of the worker runs, in their order."""
    wrong: list[str] = field(default_factory=list)
    """What is not as it must be at the end."""
    left: list[str] = field(default_factory=list)
    """What still is there after the end."""

    forgotten: int = 0
    """Shims that a killed engine has left idle: its own affair, but told."""

    @property
    def losses(self) -> int:
        """Worker runs that came to nothing, and were recorded as such."""
        return self.outcomes.count("lost") + self.outcomes.count("infra")

    @property
    def ok(self) -> bool:
        """Whether it ended right, and nothing is left."""
        return self.state == "COMPLETE" and not self.wrong and not self.left


class Chaos:
    """One run, from its first command to its end."""

    def __init__(self, drill: Drill, engine: EngineWatch | None) -> None:
        self.drill = drill
        self.engine = engine
        self.fate = Fate()
        self._parents = {hierarchy.own for hierarchy in hierarchies()}
        self._groups: set[Path] = set()
        """Cgroups of its boxes in bwrap: other tests of this machine have some beside them."""

    @classmethod
    @contextmanager
    def open(cls, place: Path, port: int, engine: EngineWatch | None) -> Iterator[Chaos]:
        """A project whose worker needs db.local, which is `port` of this machine's loopback."""
        box: dict[str, Any] = {"kind": "bwrap"}
        worker: dict[str, Any] = {}
        if engine is not None:
            box = {"kind": "docker", "read_paths": ["/usr"]}
            worker = {"docker_image": IMAGE}
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

    def strike(self, blows: list[Blow]) -> Fate:
        """Run and resume until it has ended; each blow hits one of the commands, in their order."""
        if self.engine is not None:
            self.engine.begin()
        waiting = iter(blows)
        ended = self._command(next(waiting, None))
        while ended.result.get("state") != "COMPLETE" and self.fate.resumes < MOST_RESUMES:
            if ended.code not in (-signal.SIGKILL, 5):
                break
            self.fate.resumes += 1
            ended = self._command(next(waiting, None))
        self.fate.state = str(ended.result.get("state"))
        if self.fate.state != "COMPLETE":
            self.fate.wrong.append(f"it ended with {ended.code}: {ended.result} {ended.stderr}")
        else:
            self._judge(ended.result)
        self.fate.left = self._left()
        self.fate.forgotten = len(self.engine.forgotten()) if self.engine else 0
        return self.fate

    # -- killing --------------------------------------------------------------------------------

    def _command(self, blow: Blow | None) -> Done:
        """`run`, or `resume` where there is a run, with a blow while it goes on."""
        env = {"DOCKER_HOST": self.engine.host} if self.engine else {}
        begun = len(self._events())
        resumable = self._resumable
        words = ["resume", self.drill.run_id] if resumable else ["run", str(self.drill.task_file)]
        process = self.drill.command(*words, **env)
        absent = False
        if blow is not None:
            self.fate.blows.append(str(blow))
            if self._reached(process, blow.event, begun):
                time.sleep(blow.delay_sec)
                hit = [name for name in blow.victims if self._kill(name, process)]
                self.fate.killed += hit
                absent = blow.absent and "engine" in hit
            if self.engine is not None and not absent:
                self.engine.up()
        ended = self._ended(process)
        if absent:
            assert self.engine is not None
            self.engine.up()
        self.fate.codes.append(ended.code)
        return ended

    @property
    def _resumable(self) -> bool:
        """Whether there is a run to be resumed."""
        runs = self.drill.state_dir / "runs"
        return runs.is_dir() and any((run / "spec.json").exists() for run in runs.iterdir())

    def _ended(self, process: subprocess.Popen[str]) -> Done:
        while process.poll() is None:
            self._look()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        return done(process)

    def _look(self) -> None:
        """Notice what it has made outside of its folders."""
        if self.engine is not None:
            self.engine.look()
            return
        for parent in self._parents:
            for group in parent.glob(f"{GROUP_PREFIX}*"):
                owner = group.name.removeprefix(GROUP_PREFIX).partition("-")[0]
                if _named([int(owner)], str(self.drill.place)):
                    self._groups.add(group)

    def _events(self) -> list[str]:
        files = sorted(self.drill.state_dir.glob("runs/*/events.jsonl"))
        return [line["event"] for file in files for line in read_events(file)]

    def _reached(self, process: subprocess.Popen[str], event: str, begun: int) -> bool:
        """Wait for an event of this very command; False where it ends before."""
        for step in self.drill.work.glob("step-*"):
            step.unlink()
        seen: Callable[[], bool] = {
            "started": lambda: True,
            "step": lambda: any(self.drill.work.glob("step-*")),
            "run_started": lambda: len(self._events()) > begun,
        }.get(event, lambda: event in self._events()[begun:])
        while not seen():
            if process.poll() is not None:
                return False
            self._look()
            time.sleep(0.01)
        return True

    def _kill(self, victim: str, driver: subprocess.Popen[str]) -> bool:
        """Whether there was one."""
        if victim == "driver":
            alive = driver.poll() is None
            driver.kill()
            return alive
        if victim == "engine":
            return self.engine is not None and self.engine.kill()
        deadline = time.monotonic() + APPEAR_SEC
        while not (pids := self._victims(victim, driver.pid)) and driver.poll() is None:
            if time.monotonic() > deadline:
                break
        for pid in pids[:1]:
            send(pid, signal.SIGKILL)
        return bool(pids)

    def _victims(self, victim: str, driver: int) -> list[int]:
        """Who plays this part now; of several boxes that of the worker first."""
        table = process_table()
        supervisors = _named(self._of_the_run(), "agentrunner.supervisor.main")
        below = [pid for top in supervisors for pid in descendants(top, table)]
        if victim == "supervisor":
            return supervisors
        if victim == "proxy":
            return _named(below, "agentrunner.gateway.main")
        if victim == "helper":
            word = "docker.attach" if self.engine else "agentrunner.sandboxes.enter"
            return _named(below, word)
        if self.engine is not None:
            self.engine.look()
            boxes = [self.engine.inside(ident) for ident in sorted(self.engine.seen)]
            return [min(pids) for pids in boxes if pids]
        boxed = [pid for pid in [*below, *descendants(driver, table)] if _is_bwrap(pid)]
        return [pid for pid in boxed if _is_bwrap(table[pid].parent)]

    def _of_the_run(self) -> list[int]:
        return list(processes_of(self.drill.place))

    # -- judging --------------------------------------------------------------------------------

    def _judge(self, result: dict[str, Any]) -> None:
        drill, wrong = self.drill, self.fate.wrong
        if result["exit_code"] != 0 or not result["proof"] or result["missing"]:
            wrong.append(f"no evidence: {result}")
        if drill.read("calc.py") != "a + b\n" * STEPS:
            wrong.append(f"the edit is wrong: {drill.read('calc.py')!r}")
        if changed := set(drill.git("status", "--porcelain").split("\n")[:-1]) - CHANGED:
            wrong.append(f"changed besides: {sorted(changed)}")
        runs = drill.logged("worker_run")
        ids = [run.key for run in runs]
        outcomes = self.fate.outcomes = [run.data["outcome"] for run in runs]
        if len(ids) != len(set(ids)):
            wrong.append(f"recorded twice: {ids}")
        started = {name for name in ids if drill.ledger.started(name)}
        if drill.starts > len(started):
            wrong.append(f"{drill.starts} workers began, {sorted(started)} are known")
        if unknown := {folder.name for folder in drill.folder.workers_dir.iterdir()} - set(ids):
            wrong.append(f"not recorded: {sorted(unknown)}")
        if not set(outcomes) <= {"completed", "failed", "lost", "infra"}:
            wrong.append(f"outcomes: {outcomes}")

    def _left(self) -> list[str]:
        """What is still there when everything has had time to end."""
        deadline = time.monotonic() + SETTLE_SEC
        while (left := self.there()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left

    def there(self) -> list[str]:
        """What is there of the run at this moment."""
        place = self.drill.place
        left = [f"process {pid} {line}" for pid, line in processes_of(place).items()]
        left += [f"mount {mount}" for mount in mounts_below(place)]
        left += [f"cgroup {group}" for group in self._groups if group.exists()]
        left += self.engine.left() if self.engine else []
        for folder in (self.drill.state_dir / "runs").iterdir():
            left += [f"{path.name} of {folder.name}" for path in folder.rglob("*") if _is_end(path)]
        return left


def processes_of(place: Path) -> dict[int, str]:
    """Command lines of processes that know a folder: in argument, environment, cwd or open file."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            told = [words, (folder / "environ").read_bytes(), os.fsencode(_link(folder / "cwd"))]
            told += [os.fsencode(_link(link)) for link in (folder / "fd").iterdir()]
            if any(os.fsencode(place) in text for text in told):
                found[int(folder.name)] = words.replace(b"\0", b" ").decode(errors="replace")
    return found


def _link(path: Path) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - a text, not a path
    except OSError:
        return ""


def _named(pids: list[int], word: str) -> list[int]:
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def _is_bwrap(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "bwrap\n"
    except OSError:
        return False


def _is_end(path: Path) -> bool:
    """Whether it is the end of a line to a process: a socket, or a box's lifeline."""
    mode = path.lstat().st_mode
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)
