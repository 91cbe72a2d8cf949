"""What an engine keeps of containers, and its violent death."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentrunner.sandboxes.process_tree import send
from tests.kit.own_engine import OwnEngine, own_engine


class EngineWatch:
    """An engine of our own that is looked at without being asked, dead or alive."""

    def __init__(self, engine: OwnEngine) -> None:
        self.seen: set[str] = set()
        """Ids of all containers that were noticed on it since `begin`."""
        self._engine = engine
        self._earlier: set[str] = set()
        """Of runs before."""
        self._killed = False
        self._own_mounts = set(mounts_below(engine.state, engine.run))

    @classmethod
    @contextmanager
    def running(cls, place: Path) -> Iterator[EngineWatch]:
        """One that is up, with its data in `place`; fails or skips the test where none can be."""
        with own_engine(place) as engine:
            yield cls(engine)

    @property
    def host(self) -> str:
        """For DOCKER_HOST."""
        return self._engine.address

    def begin(self) -> None:
        """From here on another run is looked at."""
        self._earlier |= self.seen | self._shims()
        self.seen.clear()
        self._killed = False

    def up(self) -> None:
        """Start it, if it does not answer."""
        self._engine.script("up")

    def kill(self) -> bool:
        """kill -9 of dockerd and of its containerd; whether there was one."""
        for name in ("dockerd.pid", "exec/containerd/containerd.pid"):
            with contextlib.suppress(OSError, ValueError):
                send(int((self._engine.run / name).read_text()), signal.SIGKILL)
                self._killed = True
        return self._killed

    def look(self) -> None:
        """Notice which containers it has."""
        self.seen |= set(self._containers()) - self._earlier

    def inside(self, container: str) -> list[int]:
        """The processes of a container."""
        for group in _groups_of(container):
            with contextlib.suppress(OSError):
                if pids := (group / "cgroup.procs").read_text().split():
                    return list(map(int, pids))
        return []

    def left(self) -> list[str]:
        """What is left of containers: their records, mounts, cgroups and shims.

        A containerd that is killed while it makes a container may forget its shim, which idles
        with nothing in it: no client of an engine can end that, see `forgotten`.
        """
        shims = self._shims()
        self.seen |= shims - self._earlier
        found = [f"container {ident[:12]}" for ident in self._containers()]
        for ident in self.seen - self.forgotten():
            found += [f"cgroup {group}" for group in _groups_of(ident)]
            found += [f"shim of {ident[:12]}"] * (ident in shims)
        mounts = set(mounts_below(self._engine.state, self._engine.run)) - self._own_mounts
        return found + [f"mount {place}" for place in sorted(mounts)]

    def forgotten(self) -> set[str]:
        """Containers that a killed engine does not know any more, and in which nothing runs."""
        if not self._killed:
            return set()
        gone = self.seen & self._shims() - set(self._containers())
        return {ident for ident in gone if not any(map(_has_begun, self.inside(ident)))}

    def _shims(self) -> set[str]:
        """Containers beside which a process of this engine stands."""
        address = f"{self._engine.run}/exec/containerd/".encode()
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if b"shim" in words[0] and any(address in word for word in words):
                    found.add(words[words.index(b"-id") + 1].decode())
        return found

    def _containers(self) -> list[str]:
        with contextlib.suppress(OSError):
            return [path.name for path in (self._engine.state / "data/containers").iterdir()]
        return []


def mounts_below(*folders: Path) -> list[str]:
    """Mount points in these folders."""
    places = [line.split(" ")[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return [place for place in places if any(Path(place).is_relative_to(top) for top in folders)]


def _groups_of(container: str) -> list[Path]:
    """Its cgroups, of either version."""
    top = Path("/sys/fs/cgroup")
    return [*top.glob(f"*/docker/{container}"), *top.glob(f"docker/{container}")]


def _has_begun(pid: int) -> bool:
    """Whether a process of a container is more than the runtime's own beginning of it."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b"runc\0init\0"
    except OSError:
        return False
