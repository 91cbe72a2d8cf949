"""A run with a repository, and workers that are shell scripts under a real supervisor."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentrunner.git.snapshots import Snapshots
from agentrunner.sandboxes.base import Launch
from agentrunner.storage.locks import FileLock, me, repository_lock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.worker_ledger import Ledger
from agentrunner.supervisor.client import SupervisedResult, SupervisorOrder, start, wait
from tests.kit.bwrap import require_bwrap

RUN = """\
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:2]
from tests.kit.stage import Stage
stage = Stage(Path(sys.argv[2]), sys.argv[3])
stage.start(sys.argv[4], sys.argv[5])
"""


def marked(marker: str) -> list[int]:
    """Living processes with this marker in their environment or command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
            state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if marker.encode() in text and state != b"Z" and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


class Stage:
    """One run of one repository."""

    def __init__(self, root: Path, marker: str) -> None:
        self.marker = marker
        self.root = root
        self.repo = root / "repo"
        self.state = root / "state"
        if not self.repo.exists():
            self.repo.mkdir(parents=True)
            (self.repo / "a").write_text("a\n")
            RunFolder.create(self.state, "t-0000", self.repo)
        self.folder = RunFolder.open(self.state, "t-0000")
        self.ledger = Ledger(self.folder)
        self.snapshots = Snapshots(self.folder.snapshots_dir, self.repo)
        self.processes: list[subprocess.Popen[bytes]] = []

    def order(self, script: str, **changes: Any) -> SupervisorOrder:
        """A shell script as the worker."""
        env = {"PATH": "/usr/bin:/bin", "MARKER": self.marker}
        launch = Launch(("/bin/sh", "-c", script), env, self.repo, contains_children=False)
        after = self.snapshots.take_command()
        return replace(SupervisorOrder(launch, wall_sec=30, after=after), **changes)

    def boxed(self, script: str, **changes: Any) -> SupervisorOrder:
        """A shell script as the worker, in bubblewrap."""
        bwrap = str(require_bwrap())
        argv = (
            *(bwrap, "--ro-bind", "/", "/", "--bind", str(self.repo), str(self.repo)),
            *("--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent"),
            *("--new-session", "--json-status-fd", "{status_fd}", "--", "/bin/sh", "-c", script),
        )
        order = self.order(script, **changes)
        return replace(order, launch=replace(order.launch, argv=argv, contains_children=True))

    def lock(self) -> FileLock:
        """The repository lock, taken."""
        lock = repository_lock(self.state, self.repo)
        lock.acquire(me("t-0000", "2026-01-01T00:00:00Z"))
        return lock

    def start(self, name: str, order: SupervisorOrder | str) -> subprocess.Popen[bytes]:
        """Claim and start; our own share of the repository lock is given up."""
        order = self.order(order) if isinstance(order, str) else order
        lock = self.lock()
        try:
            process = start(order, self.ledger.claim(name), lock)
        finally:
            lock.close()
        self.processes.append(process)
        return process

    def runner(self, name: str, script: str, **env: str) -> subprocess.Popen[bytes]:
        """A process of its own that starts a worker run and ends; `env` may arm a fail-point."""
        here = Path(__file__).parents[2]
        return subprocess.Popen(
            [sys.executable, "-c", RUN, here, self.root, self.marker, name, script],
            env={"PATH": os.environ["PATH"], **env},
            stderr=subprocess.PIPE,
        )

    async def run(
        self, order: SupervisorOrder, name: str = "w1", **waiting: Any
    ) -> SupervisedResult:
        """Start and wait."""
        process = await asyncio.to_thread(self.start, name, order)
        return await wait(self.ledger, name, process=process, **waiting)

    def text(self, name: str, file: str = "stdout") -> str:
        """What a worker printed."""
        return (self.ledger.dir(name) / file).read_text()

    def left(self) -> list[int]:
        """Processes of our workers that still live."""
        return marked(self.marker)
