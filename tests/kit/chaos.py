"""Commands that are struck with `kill -9` at moments drawn from a seed, and what becomes of them.

A moment is an event and a fraction of a second after it. What is killed is whatever plays a part
then: the driver, a supervisor, a gateway process, the helper in front of a box, the keeper of a
box, a git of ours, the container engine, or several at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Self

from agentrunner.sandboxes.cgroups import hierarchies
from agentrunner.sandboxes.enter import GROUP_PREFIX
from agentrunner.sandboxes.process_tree import ProcessIds, descendants, process_table, send
from agentrunner.storage.run_log import read_lines
from tests.kit.docker import IMAGE
from tests.kit.engine_watch import EngineWatch, mounts_below
from tests.kit.process import Done, Drill, done

DELAY_SEC = 0.6
"""The longest time from an event to a kill; the events of a run lie about so far apart."""
APPEAR_SEC = 1.0
"""How long a part that is just being started is waited for."""
COMMAND_SEC = 300.0
"""A command that takes longer hangs."""
SETTLE_SEC = 10.0
"""In which everything that was started must have ended after the end."""


@dataclass(frozen=True)
class Blow:
    """What is killed, and when."""

    victims: tuple[str, ...]
    event: str
    delay_sec: float
    absent: bool = False
    """An engine comes back only when the command has ended without it."""
    nth: int = 1
    """Which of the events of that name in one command."""

    @property
    def kind(self) -> str:
        """The row of the table that it belongs to."""
        return self.victims[0] if len(self.victims) == 1 else "several"

    def __str__(self) -> str:
        event = self.event if self.nth == 1 else f"{self.event} {self.nth}"
        return f"{'+'.join(self.victims)} at {event}+{self.delay_sec * 1000:.0f} ms"


@dataclass
class Fate:
    """What became of what was struck."""

    blows: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    """What was there to be killed."""
    codes: list[int] = field(default_factory=list)
    """Exit codes of the first command and of each further one; minus 9 for a killed driver."""
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


class Struck(ABC):
    """One piece of work, from its first command to its end."""

    victims: ClassVar[Mapping[str, tuple[str, ...]]]
    """What can be killed, and after which events it may be there; `driver` knows all events."""
    most_resumes: ClassVar[int]
    one_a_command: ClassVar[bool] = True
    """Whether a command is struck once only; else until it has ended."""

    def __init__(self, drill: Drill, engine: EngineWatch | None) -> None:
        self.drill = drill
        self.engine = engine
        self.fate = Fate()
        self._parents = {hierarchy.own for hierarchy in hierarchies()}
        self._groups: set[Path] = set()
        """Cgroups of its boxes in bwrap: other tests of this machine have some beside them."""

    @classmethod
    @abstractmethod
    def open(
        cls, place: Path, port: int, engine: EngineWatch | None
    ) -> AbstractContextManager[Self]:
        """Prepared in `place`; `port` of this machine's loopback says hello."""

    @classmethod
    def draw(cls, random: Random, kind: str, *, engine: bool) -> Blow:
        """A blow of this kind; `several` are two or three, with the engine only if there is one."""
        victims = [kind]
        if kind == "several":
            known = [name for name in cls.victims if engine or name != "engine"]
            victims = sorted(random.sample(known, random.choice((2, 2, 3))))
        events = [
            event
            for event in cls.victims["driver"]
            if all(event in cls.victims[victim] for victim in victims)
        ]
        return Blow(
            tuple(victims),
            random.choice(events),
            random.uniform(0, DELAY_SEC),
            absent=random.random() < 0.3,
        )

    def strike(self, blows: Iterable[Blow]) -> Fate:
        """Go on until it has ended; the blows hit its commands, in their order."""
        if self.engine is not None:
            self.engine.begin()
        waiting = iter(blows)
        ended = self._command(waiting)
        while self._state(ended) != "COMPLETE" and self.fate.resumes < self.most_resumes:
            if ended.code not in (-signal.SIGKILL, 5):
                break
            self.fate.resumes += 1
            ended = self._command(waiting)
        self.fate.state = self._state(ended)
        if self.fate.state != "COMPLETE":
            self.fate.wrong.append(f"it ended with {ended.code}: {ended.result} {ended.stderr}")
        else:
            self.fate.wrong += self.wrong(ended.result)
        self.fate.left = self._left()
        self.fate.forgotten = len(self.engine.forgotten()) if self.engine else 0
        return self.fate

    # -- what each kind of work says of itself ----------------------------------------------------

    @abstractmethod
    def _words(self) -> list[str]:
        """The command that begins, or goes on."""

    @abstractmethod
    def _events(self) -> Counter[str]:
        """What has happened so far."""

    @abstractmethod
    def _pids(self, victim: str, driver: int, table: dict[int, ProcessIds]) -> list[int]:
        """Who plays this part now, and is to be killed."""

    @abstractmethod
    def _state(self, ended: Done) -> str:
        """How it stands after a command."""

    @abstractmethod
    def wrong(self, result: dict[str, Any]) -> Iterator[str]:
        """What is not as it must be once it is COMPLETE."""

    # -- killing ----------------------------------------------------------------------------------

    def _command(self, blows: Iterator[Blow]) -> Done:
        """Begin or go on, with a blow while it does, or as many as it stands."""
        env = {"DOCKER_HOST": self.engine.host} if self.engine else {}
        before = self._events()
        process = self.drill.command(*self._words(), **env)
        absent = False
        with ThreadPoolExecutor(1) as reader:  # what it prints may be more than a pipe holds
            ended = reader.submit(done, process, COMMAND_SEC)
            while not absent and (blow := next(blows, None)) is not None:
                absent = self._blow(blow, process, before)
                if self.one_a_command or process.poll() is not None:
                    break
                before = self._events()
            while not ended.done():
                self._look()
                time.sleep(0.05)
        if absent:
            assert self.engine is not None
            self.engine.up()
        self.fate.codes.append(ended.result().code)
        return ended.result()

    def _blow(self, blow: Blow, process: subprocess.Popen[str], before: Counter[str]) -> bool:
        """Whether the engine is to stay away."""
        self.fate.blows.append(str(blow))
        absent = False
        if self._reached(process, self._moment(blow, before)):
            time.sleep(blow.delay_sec)
            hit = [name for name in blow.victims if self._kill(name, process)]
            self.fate.killed += hit
            absent = blow.absent and "engine" in hit
        if self.engine is not None and not absent:
            self.engine.up()
        return absent

    def _moment(self, blow: Blow, before: Counter[str]) -> Callable[[], bool]:
        """Whether its event has come since."""
        if blow.event == "started":
            return lambda: True
        return lambda: (self._events() - before)[blow.event] >= blow.nth

    def _reached(self, process: subprocess.Popen[str], seen: Callable[[], bool]) -> bool:
        """Wait for a moment; False where the command ends before."""
        while not seen():
            if process.poll() is not None:
                return False
            self._look()
            time.sleep(0.01)
        return True

    def _look(self) -> None:
        """Notice what it has made outside of its folders."""
        if self.engine is not None:
            self.engine.look()
            return
        for parent in self._parents:
            for group in parent.glob(f"{GROUP_PREFIX}*"):
                owner = group.name.removeprefix(GROUP_PREFIX).partition("-")[0]
                if named([int(owner)], str(self.drill.place)):
                    self._groups.add(group)

    def _kill(self, victim: str, driver: subprocess.Popen[str]) -> bool:
        """Whether there was one."""
        if victim == "driver":
            alive = driver.poll() is None
            driver.kill()
            return alive
        if victim == "engine":
            return self.engine is not None and self.engine.kill()
        deadline = time.monotonic() + APPEAR_SEC
        while not (pids := self._pids(victim, driver.pid, process_table())):
            if driver.poll() is not None or time.monotonic() > deadline:
                break
        for pid in pids:
            send(pid, signal.SIGKILL)
        return bool(pids)

    def _supervisors(self) -> list[int]:
        return named(list(processes_of(self.drill.place)), "agentrunner.supervisor.main")

    def _helpers(self, below: list[int]) -> list[int]:
        """Those in front of boxes, among the processes below supervisors."""
        return named(below, "docker.attach" if self.engine else "agentrunner.sandboxes.enter")

    def _keepers(self, below: list[int], table: dict[int, ProcessIds]) -> list[int]:
        """The first process of each box; of bwrap's among those in `below`."""
        if self.engine is not None:
            self.engine.look()
            boxes = [self.engine.inside(ident) for ident in sorted(self.engine.seen)]
            return [min(pids) for pids in boxes if pids]
        boxed = [pid for pid in below if _is_bwrap(pid)]
        return [pid for pid in boxed if pid in table and _is_bwrap(table[pid].parent)]

    # -- what is left -----------------------------------------------------------------------------

    def _left(self) -> list[str]:
        """What is still there when everything has had time to end."""
        deadline = time.monotonic() + SETTLE_SEC
        while (left := self.there()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left

    def there(self) -> list[str]:
        """What is there of it at this moment."""
        place = self.drill.place
        left = [f"process {pid} {line}" for pid, line in processes_of(place).items()]
        left += [f"mount {mount}" for mount in mounts_below(place)]
        left += [f"cgroup {group}" for group in self._groups if group.exists()]
        left += self.engine.left() if self.engine else []
        for folder in (self.drill.state_dir / "runs").iterdir():
            left += [f"{path.name} of {folder.name}" for path in folder.rglob("*") if _is_end(path)]
        return left


def boxed(engine: EngineWatch | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sandbox and the worker's image for a task file, on that engine or in bwrap."""
    if engine is None:
        return {"kind": "bwrap"}, {}
    return {"kind": "docker", "read_paths": ["/usr"]}, {"docker_image": IMAGE}


def happened(files: Iterable[Path]) -> Counter[str]:
    """The events in these files, by name."""
    return Counter(str(line.get("event")) for file in files for line in read_lines(file))


def below(tops: Iterable[int], table: dict[int, ProcessIds]) -> list[int]:
    """All processes that these have started."""
    return [pid for top in tops for pid in descendants(top, table)]


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


def named(pids: Iterable[int], word: str) -> list[int]:
    """Those with the word in their command line."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def _link(path: Path) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - a text, not a path
    except OSError:
        return ""


def _is_bwrap(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "bwrap\n"
    except OSError:
        return False


def _is_end(path: Path) -> bool:
    """Whether it is the end of a line to a process: a socket, or a box's lifeline."""
    mode = path.lstat().st_mode
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)
