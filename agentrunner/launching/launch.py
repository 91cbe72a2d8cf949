"""Starts a CLI in a sandbox: while we wait, or with a supervisor that outlives us."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from agentrunner.config.sandbox import SandboxSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.gateway.gateway_process import companion, running
from agentrunner.launching.access import CliCredential
from agentrunner.launching.route import EgressRoute
from agentrunner.sandboxes.base import (
    CommandResult,
    ErrorKind,
    Mount,
    Network,
    Request,
    ResourceLimit,
    Sandbox,
    SandboxError,
)
from agentrunner.sandboxes.homes import SANDBOX_HOME
from agentrunner.sandboxes.limits import DISK, memory_bytes
from agentrunner.storage.locks import FileLock
from agentrunner.storage.run_folder import write_private
from agentrunner.storage.worker_ledger import Claim
from agentrunner.supervisor.client import SupervisorOrder, start
from agentrunner.workers.base import WorkerCommand

KEEP_BYTES = 8 << 20
"""Of each stream: enough for any reply, and the events before it."""
SHARED = frozenset({".cache", ".config", ".local", "bin", "lib", "share", "state"})
"""Folders of a home in which several tools have their own, as freedesktop.org has it."""


@dataclass(frozen=True)
class CliLaunch:
    """A command line, and everything that it gets in its sandbox."""

    command: WorkerCommand
    credential: CliCredential
    route: EgressRoute
    workdir: Path
    seconds: float
    """How long it may take."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the task adds. It overrides the command's variables; the credential overrides both."""
    network: Network = "none"
    mounts: tuple[Mount, ...] = ()
    home: Path | None = None
    """A home that it finds and cannot change: what it writes there is thrown away with it."""

    def request(self) -> Request:
        """Return what the sandbox runs."""
        return Request(
            command=self.command.argv,
            workdir=self.workdir,
            env=self._environment(),
            stdin=self.command.stdin,
            network=self.network,
            timeout_sec=self.seconds,
            keep_bytes=KEEP_BYTES,
            mounts=self.mounts,
            home=self.home,
            home_layer=self.home is not None,
            door=self.route.door,
        )

    def lay_out(self, home: Path, *, links: bool = True) -> None:
        """Make the folders and files of the command, which are below `home`. Blocks.

        A CLI that has its own folder for HOME finds links there to what the home holds. Not without
        a sandbox: there that home has no place of its own.
        """
        for folder in self.command.folders:
            make_own(folder, home)
        for path, text in self.command.files.items():
            if not path.is_relative_to(home):
                raise ValueError(f"{path} is not below {home}")
            make_own(path.parent, home)
            write_private(path, text.encode("utf-8", "backslashreplace"), sync=False)
        own = Path(self._environment().get("HOME", "/"))
        if links and self.home is not None and own != home and own.is_relative_to(home):
            _link(own, self.home, SANDBOX_HOME, home)

    def _environment(self) -> dict[str, str]:
        """Return the variables added to the sandbox's own; later values override earlier ones."""
        shown = self.credential
        env = {**self.route.environment, **self.command.env, **self.env, **shown.env}
        name = shown.token_env or self.command.key_env
        if name and shown.key:
            env[name] = shown.key
        return env


async def run_to_end(
    launch: CliLaunch, sandbox: Sandbox, environ: Mapping[str, str]
) -> CommandResult | None:
    """Run it to its end; on return no process of it is left.

    Return None if it was ended for its time limit. Raises SandboxError or InfraError (`gateway`) if
    sandbox or gateway do not work.
    """
    order = launch.route.order
    try:
        async with running(order, environ) if order else nullcontext():
            return await sandbox.run(launch.request())
    except SandboxError as error:
        if error.kind is not ErrorKind.TIMEOUT:
            raise
    return None


@dataclass(frozen=True)
class Supervision:
    """What a supervisor watches while a CLI works, and what it runs afterwards."""

    idle_sec: float | None = None
    """Longest silence on both outputs."""
    disk: tuple[tuple[Path, ...], int] | None = None
    """Folders, and by how many bytes they may grow together."""
    after: tuple[str, ...] = ()
    """The command to run when the CLI has ended."""
    secrets: Mapping[bytes, str] = field(default_factory=dict, repr=False)
    """What must not get into the output files: each spelling of a secret, and its mark."""


def start_supervised(
    launch: CliLaunch,
    sandbox: Sandbox,
    environ: Mapping[str, str],
    supervision: Supervision,
    claim: Claim,
    repository: FileLock,
) -> subprocess.Popen[bytes]:
    """Start it under a claim of the ledger, with a supervisor that outlives us. Blocks."""
    command, gateway = launch.command, launch.route.order
    order = SupervisorOrder(
        launch=sandbox.launch(launch.request()),
        stdin=command.stdin,
        wall_sec=launch.seconds,
        idle_sec=supervision.idle_sec,
        stop_signal=command.stop_signal,
        watch=command.watch,
        after=supervision.after,
        disk=supervision.disk,
        companion=companion(gateway, environ) if gateway else None,
        secrets=supervision.secrets,
    )
    return start(order, claim, repository)


def _link(own: Path, found: Path, shown: Path, home: Path) -> None:
    """Link what a folder of the host holds, by where a sandbox shows it, unless `own` has it.

    Folders that several tools share are not links: what a CLI adds to them has to stay.
    """
    for entry in sorted(found.iterdir()):
        place = own / entry.name
        if entry.name in SHARED and entry.is_dir() and not entry.is_symlink():
            make_own(place, home)
            _link(place, entry, shown / entry.name, home)
        elif not os.path.lexists(place):
            place.symlink_to(shown / entry.name)


def make_own(folder: Path, home: Path) -> None:
    """Make a folder below `home`, and missing folders in between, for its owner only.

    A link or file that an earlier CLI left in its place is removed: through a link the next file
    would be written where no sandbox protects anything.
    """
    part = home
    for name in ("", *folder.relative_to(home).parts):
        part /= name
        if part.is_symlink() or part.is_file():
            part.unlink()
        part.mkdir(mode=0o700, exist_ok=True)


def resource_limits(settings: SandboxSpec) -> ResourceLimit:
    """Return the limits for commands in a sandbox."""
    return ResourceLimit(
        cpus=settings.cpus,
        memory=settings.memory,
        pids=settings.pids,
        disk=settings.disk or DISK,
    )


def disk_bytes(settings: SandboxSpec) -> int:
    """Return by how many bytes the folders of a sandbox may grow together."""
    return memory_bytes(settings.disk or DISK, "disk")


def read_paths(spec: TaskSpec) -> tuple[Path, ...]:
    """Return the folders of this machine that the sandbox may read."""
    written = spec.runner.sandbox.read_paths
    return tuple(Path(os.path.normpath(Path(spec.base_dir) / path)) for path in written)
