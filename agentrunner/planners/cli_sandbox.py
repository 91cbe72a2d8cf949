"""The box of a planner that is a program: its own, with an empty folder for a repository.

The program sees its own installation, a folder for one call, and the gateway, which has the real
key. With `see_repo: read` the repository is there too, at its own path, and cannot be written.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from agentrunner.config.agents import reads_repo
from agentrunner.config.spec import TaskSpec
from agentrunner.environment import home_of, prices_file
from agentrunner.gateway.order import (
    GATEWAY_PORT,
    GATEWAY_SOCKET,
    Allowance,
    GatewayOrder,
    Upstream,
)
from agentrunner.gateway.process import running
from agentrunner.gateway.usage import Usage, read_usage
from agentrunner.planners.workplace import Workplace
from agentrunner.sandboxes.base import (
    Door,
    ErrorKind,
    Owner,
    Request,
    Result,
    Sandbox,
    SandboxError,
    SandboxOrder,
)
from agentrunner.sandboxes.choose import open_sandbox
from agentrunner.sandboxes.deny import holds
from agentrunner.storage.run_folder import make_private, write_private
from agentrunner.workers.base import WorkerCommand
from agentrunner.workers.launching import read_paths, resource_limits

KEEP_BYTES = 8 << 20
"""Of each stream: room for any reply, and the events before it."""


@dataclass(frozen=True)
class Tape:
    """Where model calls are recorded to, or replayed from."""

    record: Path | None = None
    replay: Path | None = None


@dataclass(frozen=True)
class CliFolders:
    """Where a call works."""

    home: Path
    """For this call only: configuration, scratch, what it is told by files."""
    work: Path
    """The empty folder that stands for a repository."""
    repo: Path | None
    """The repository, where it may be read."""
    base_url: str | None
    """Where the model is from inside the box; None without a gateway."""
    walls: bool
    """Whether there is a box at all."""


@dataclass(frozen=True)
class CliOutcome:
    """How it ended."""

    result: Result | None
    """None where it was ended for its time limit."""
    usage: Usage
    """What the gateway counted; nothing where there was none."""


class CliSandbox:
    """Opened with the first call, in the kind of box that the run is in."""

    def __init__(
        self, bench: Workplace, spec: TaskSpec, program: str, environ: Mapping[str, str], tape: Tape
    ) -> None:
        self._bench = bench
        self._spec = spec
        self._program = program
        self._environ = environ
        self._tape = tape
        self._root = bench.folder.root.resolve() / "planner" / spec.runner.meta.kind
        self._box: Sandbox | None = None

    @property
    def walls(self) -> bool:
        """Whether the run has a box, and so a gateway."""
        return self._bench.sandbox.isolates

    async def place(self) -> CliFolders:
        """A fresh place for one call; nothing of an earlier one is left in it."""
        home, work = self._root / "box" / "call", self._root / "repo"
        await asyncio.to_thread(_make_fresh, home, work)
        see = reads_repo(self._spec.runner.meta)
        return CliFolders(
            home=home,
            work=work,
            repo=Path(self._spec.repo) if see else None,
            base_url=f"http://127.0.0.1:{GATEWAY_PORT}" if self.walls else None,
            walls=self.walls,
        )

    async def run(
        self,
        place: CliFolders,
        command: WorkerCommand,
        upstream: Upstream | None,
        number: int,
        seconds: float,
        allowance: Allowance,
    ) -> CliOutcome:
        """Run to its end, or for `seconds`; nothing of it is left running on return.

        Raises SandboxUnavailable, SandboxError or InfraError (`gateway`) where box or gateway
        do not work.
        """
        await asyncio.to_thread(_lay_out, command)
        box = await self._opened()
        sockets = self._bench.folder.sock_dir
        log = _unused(self._bench.folder.meta_dir, f"{number:04d}-usage")
        door = Door(sockets, {GATEWAY_PORT: GATEWAY_SOCKET}) if upstream else None
        request = Request(
            command=command.argv,
            workdir=place.work,
            env=command.env,
            stdin=command.stdin,
            timeout_sec=seconds,
            keep_bytes=KEEP_BYTES,
            door=door,
        )
        gateway = (
            running(self._order(upstream, number, log, allowance), self._environ)
            if upstream
            else nullcontext()
        )
        result: Result | None = None
        try:
            async with gateway:
                result = await box.run(request)
        except SandboxError as error:
            if error.kind is not ErrorKind.TIMEOUT:
                raise
        finally:
            await asyncio.to_thread(shutil.rmtree, place.home, ignore_errors=True)
        return CliOutcome(result, await asyncio.to_thread(read_usage, log))

    async def close(self) -> None:
        """End everything and remove the box."""
        box, self._box = self._box, None
        if box is not None:
            await box.close()

    async def _opened(self) -> Sandbox:
        # The run's box may have become one of another kind since the call before.
        if self._box is not None and self._box.kind == self._bench.sandbox.kind:
            return self._box
        await self.close()
        state_dir = self._bench.state_dir.resolve()
        home = home_of(self._environ)
        kind = self._bench.sandbox.kind
        self._box = await open_sandbox(
            kind, self._sandbox_order(), self._environ, home, state_root=state_dir
        )
        return self._box

    def _sandbox_order(self) -> SandboxOrder:
        return SandboxOrder(
            repo=self._root / "repo",
            home=self._root / "box",
            programs=(self._program, "sh"),
            read_paths=self._read_paths(),
            image=self._bench.sandbox.image,
            worker_kind=self._spec.runner.meta.kind,
            limits=resource_limits(self._spec.runner.sandbox),
            sockets=self._bench.folder.sock_dir,
            owner=Owner(self._bench.folder.run_id, self._spec.task_id),
        )

    def _read_paths(self) -> tuple[Path, ...]:
        """What the run's box may read, without the repository unless it may be seen."""
        repo, paths = Path(self._spec.repo), read_paths(self._spec)
        if reads_repo(self._spec.runner.meta):
            return (*paths, repo)
        return tuple(p for p in paths if not holds(p.resolve(), repo) and not holds(repo, p))

    def _order(
        self, upstream: Upstream, number: int, log: Path, allowance: Allowance
    ) -> GatewayOrder:
        return GatewayOrder(
            sockets=self._bench.folder.sock_dir,
            egress_log=self._bench.folder.root / "egress.jsonl",
            usage_log=log,
            label=f"meta-{number:04d}",
            upstream=upstream,
            allowance=allowance,
            prices=prices_file(self._environ),
            record=self._tape.record,
            replay=self._tape.replay,
            workdir=str(self._root),
            secrets={"planner's key": upstream.credential} if upstream.credential else {},
        )


def _unused(folder: Path, name: str) -> Path:
    """A log that nobody has: a call whose number comes again after a crash is another call."""
    path, count = folder / f"{name}.jsonl", 1
    while path.exists():
        count += 1
        path = folder / f"{name}-{count}.jsonl"
    return path


def _make_fresh(home: Path, work: Path) -> None:
    """Empty folders; `work` and the one above `home` stay the same, as a box may hold them."""
    make_private(home.parent)
    make_private(work)
    for left in (home, *work.iterdir()):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink(missing_ok=True)
    home.mkdir(mode=0o700)


def _lay_out(command: WorkerCommand) -> None:
    for folder in command.folders:
        folder.mkdir(mode=0o700)
    for path, text in command.files.items():
        write_private(path, text.encode(), sync=False)
