"""The sandbox of a planner that is a program: its own, with an empty folder as the repository.

The program sees its own installation, a folder for this call, and the gateway, which holds the real
key. With `see_repo: read` it also sees the repository, read-only, at its own path.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agentrunner.config.agents import reads_repo
from agentrunner.config.spec import TaskSpec
from agentrunner.environment import home_of, prices_file
from agentrunner.folders import remove_tree
from agentrunner.gateway.order import Allowance, GatewayOrder, Upstream
from agentrunner.launching.launch import CliLaunch, read_paths, resource_limits, run_to_end
from agentrunner.launching.route import EGRESS_LOG, Cassette, EgressRoute, route_of
from agentrunner.money.counters import Usage, read_usage
from agentrunner.planners.workplace import Workplace
from agentrunner.sandboxes.base import CommandResult, Owner, Sandbox, SandboxOrder
from agentrunner.sandboxes.choose import open_sandbox
from agentrunner.sandboxes.deny import holds
from agentrunner.storage.run_folder import make_private


class CliFolders(Struct, frozen=True):
    """The folders of one call."""

    home: Path
    """For this call only: configuration, scratch space and input files."""
    work: Path
    """The empty folder that takes the repository's place."""
    repo: Path | None
    """The repository, where it may be read."""
    isolated: bool
    """Whether there is a sandbox at all."""


class CliOutcome(Struct, frozen=True):
    """How a call ended."""

    result: CommandResult | None
    """None where the time limit ended the call."""
    usage: Usage
    """What the gateway counted; empty where there was no gateway."""


class CliSandbox:
    """A sandbox of the run's kind; opened by the first call."""

    def __init__(
        self,
        workplace: Workplace,
        spec: TaskSpec,
        program: str,
        environ: Mapping[str, str],
        cassette: Cassette,
    ) -> None:
        self._workplace = workplace
        self._spec = spec
        self._program = program
        self._environ = environ
        self._cassette = cassette
        self._root = workplace.folder.root.resolve() / "planner" / spec.runner.meta.kind
        self._sandbox: Sandbox | None = None

    @property
    def isolates(self) -> bool:
        """Whether the run has a sandbox, and therefore a gateway."""
        return self._workplace.sandbox.isolates

    async def place(self) -> CliFolders:
        """Return fresh folders for one call, with nothing left of an earlier one."""
        home, work = self._root / "box" / "call", self._root / "repo"
        await asyncio.to_thread(_make_fresh, home, work)
        see = reads_repo(self._spec.runner.meta)
        return CliFolders(
            home=home,
            work=work,
            repo=Path(self._spec.repo) if see else None,
            isolated=self.isolates,
        )

    def route(self, upstream: Upstream | None, number: int, allowance: Allowance) -> EgressRoute:
        """Return the egress route of call `number`: to its model, and nowhere else."""
        folder = self._workplace.folder
        return route_of(
            GatewayOrder(
                sockets=folder.sock_dir,
                egress_log=folder.root / EGRESS_LOG,
                usage_log=_unused(folder.planner_dir, f"{number:04d}-usage"),
                label=f"meta-{number:04d}",
                upstream=upstream,
                allowance=allowance,
                prices=prices_file(self._environ),
                record=self._cassette.record,
                replay=self._cassette.replay,
                workdir=str(self._root),
                secrets={"planner's key": upstream.credential}
                if upstream and upstream.credential
                else {},
            )
        )

    async def run(self, launch: CliLaunch, home: Path) -> CliOutcome:
        """Run a call to its end or time limit, then delete `home`.

        Raises SandboxUnavailable, SandboxError or InfraError (`gateway`) where sandbox or gateway
        do not work.
        """
        await asyncio.to_thread(launch.lay_out, home)
        sandbox = await self._opened()
        try:
            result = await run_to_end(launch, sandbox, self._environ)
        finally:
            await asyncio.to_thread(remove_tree, str(home))
        order = launch.route.order
        used = await asyncio.to_thread(read_usage, order.usage_log) if order else Usage()
        return CliOutcome(result, used)

    async def close(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await sandbox.close()

    async def _opened(self) -> Sandbox:
        # The run's sandbox may have changed its kind since the previous call.
        if self._sandbox is not None and self._sandbox.kind == self._workplace.sandbox.kind:
            return self._sandbox
        await self.close()
        state_dir = self._workplace.state_dir.resolve()
        home = home_of(self._environ)
        kind = self._workplace.sandbox.kind
        self._sandbox = await open_sandbox(
            kind, self._order(), self._environ, home, state_root=state_dir
        )
        return self._sandbox

    def _order(self) -> SandboxOrder:
        return SandboxOrder(
            repo=self._root / "repo",
            home=self._root / "box",
            programs=(self._program, "sh"),
            read_paths=self._read_paths(),
            image=self._workplace.sandbox.image,
            worker_kind=self._spec.runner.meta.kind,
            limits=resource_limits(self._spec.runner.sandbox),
            sockets=self._workplace.folder.sock_dir,
            owner=Owner(self._workplace.folder.run_id, self._spec.task_id),
        )

    def _read_paths(self) -> tuple[Path, ...]:
        """Return what the run's sandbox may read, without the repository unless it may be seen."""
        repo, paths = Path(self._spec.repo), read_paths(self._spec)
        if reads_repo(self._spec.runner.meta):
            return (*paths, repo)
        return tuple(p for p in paths if not holds(p.resolve(), repo) and not holds(repo, p))


def _unused(folder: Path, name: str) -> Path:
    """Return an unused log path: a call number repeated after a crash is a new call."""
    path, count = folder / f"{name}.jsonl", 1
    while path.exists():
        count += 1
        path = folder / f"{name}-{count}.jsonl"
    return path


def _make_fresh(home: Path, work: Path) -> None:
    """Empty both folders; keep `work` and the parent of `home`, which a sandbox may hold."""
    make_private(home.parent)
    make_private(work)
    for entry in (home, *work.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
    home.mkdir(mode=0o700)
