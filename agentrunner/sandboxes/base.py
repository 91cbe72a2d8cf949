"""The interface that every sandbox implements, with its requests and results.

A sandbox serves one task. It is opened once, runs many commands, and is closed at the end.
AgentRunner runs checks and tests itself (`run`); the supervisor, which outlives AgentRunner, starts
a worker from what `launch` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from agentrunner.errors import AgentRunnerError, InfraError
from agentrunner.errors.sandboxes import (
    BadSandboxRequest,
    SandboxBroken,
    SandboxTimeout,
    SandboxUndecided,
)

Network = Literal["none", "full"]


class ErrorKind(StrEnum):
    """The cause when a request has no result."""

    UNKNOWN = "unknown"
    TIMEOUT = "timeout"
    INFRA = "infra"
    INVALID_REQUEST = "invalid_request"


OF_KIND: Mapping[ErrorKind, type[InfraError]] = {
    ErrorKind.UNKNOWN: SandboxUndecided,
    ErrorKind.TIMEOUT: SandboxTimeout,
    ErrorKind.INFRA: SandboxBroken,
    ErrorKind.INVALID_REQUEST: BadSandboxRequest,
}


class SandboxError(AgentRunnerError):
    """A request ended without an exit code: it timed out, the sandbox died, or it was invalid."""

    exit_code = 5

    def __init__(
        self, kind: ErrorKind, op: str, cause: str, *, result: CommandResult | None = None
    ) -> None:
        super().__init__(f"{kind} in {op}: {cause}", code=OF_KIND[kind].code)
        self.kind = kind
        self.op = op
        self.cause = cause
        self.result = result
        """The output up to the error, if the command had started."""


@dataclass(frozen=True)
class Mount:
    """A host path made visible in the sandbox."""

    source: Path
    target: Path
    read_only: bool = True
    layer: bool = False
    """The command may write to it, but its changes are discarded when it ends; the source never
    changes. `read_only` is ignored then."""
    over: tuple[Path, ...] = ()
    """For a layer mounted by the kernel: folders visible below the source, the lowest first."""
    upper: Path | None = None
    """For a layer mounted by a container engine: the folder that receives the command's writes."""
    kept: bool = False
    """For a layer mounted by the kernel: the command's writes go into the source and are kept."""


@dataclass(frozen=True)
class Cache:
    """A folder of the user's downloaded packages, shown below the sandbox's home."""

    ecosystem: str
    source: Path
    place: str
    """Path below the home."""
    layer: bool = False
    """The command may write to it, but its changes are discarded; otherwise it is read-only."""
    hidden: tuple[str, ...] = ()
    """Files and folders below it that are shown empty."""


@dataclass(frozen=True)
class Caches:
    """The package caches of a sandbox and the variables for its tools. `{home}` is its home."""

    folders: tuple[Cache, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    offline: Mapping[str, str] = field(default_factory=dict)
    """Variables added where a command can reach no network."""
    path: tuple[str, ...] = ()
    """Folders of programs in caches, which PATH ends with."""
    notices: tuple[str, ...] = ()
    """Sentences for people: what is left out, and why."""

    @property
    def ecosystems(self) -> tuple[str, ...]:
        """The ecosystems that have at least one cache folder here."""
        return tuple(dict.fromkeys(folder.ecosystem for folder in self.folders))


@dataclass(frozen=True)
class ResourceLimit:
    """Limits of a sandbox; an empty one is unlimited. `memory` is written like "512m" or "4g"."""

    cpus: float | None = None
    memory: str | None = None
    pids: int | None = None
    disk: str | None = None
    """By how many bytes the work tree may grow, like "10g"; watched, not reserved."""


@dataclass(frozen=True)
class Door:
    """The only way out of a sandbox without a network: ports on its loopback that lead to us.

    Each port leads to a Unix socket on this host. Its listener (gateway, proxy) may end and come
    back; a connection made meanwhile is refused, or waits.
    """

    folder: Path
    """The run's `sock` folder on this host, which holds the sockets; closed to other users."""
    ports: Mapping[int, str]
    """From a port on the sandbox's 127.0.0.1 to the name of a socket in `folder`."""


@dataclass(frozen=True)
class Owner:
    """Who owns a sandbox, to tell leftovers of a dead run from what a living run uses."""

    run_id: str = ""
    task_id: str = ""


@dataclass(frozen=True)
class SandboxOrder:
    """What a sandbox is made from; fixed for the whole task."""

    repo: Path
    """Writable, at its own absolute path."""
    home: Path
    """The run's `runs/<id>/box`, writable at its own path: worker configuration and sessions."""
    network: Network = "none"
    """The most network access that a request may ask for."""
    programs: tuple[str, ...] = ()
    """Words whose toolchains must be visible: the worker's binary, the first words of commands."""
    read_paths: tuple[Path, ...] = ()
    image: str = ""
    """The image of a container; other sandboxes have none."""
    image_from: Path | None = None
    """If `image` is empty: a Dockerfile or devcontainer.json of the repository to build it from."""
    worker_kind: str = ""
    """If both are empty: the worker kind whose default image is used."""
    pull: Literal["never", "missing", "always"] = "never"
    """Whether a container's image may be downloaded or built."""
    on_progress: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    """Called in the event loop's thread with each line of progress of downloading or building."""
    limits: ResourceLimit = field(default_factory=ResourceLimit)
    sockets: Path | None = None
    """The run's `runs/<id>/sock`, which doors lead to; None for a sandbox without doors."""
    caches: Caches = field(default_factory=Caches)
    """The user's package caches, shown to every command."""
    owner: Owner = field(default_factory=Owner)


@dataclass(frozen=True)
class Request:
    """One command to run in the sandbox."""

    command: tuple[str, ...]
    workdir: Path
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the sandbox's own minimal environment; nothing is inherited from ours."""
    stdin: bytes = field(default=b"", repr=False)
    network: Network = "none"
    timeout_sec: float = 600
    keep_bytes: int = 1 << 20
    """Of each stream, the first 64 KiB and the last this many bytes are kept."""
    stop_bytes: int = 1 << 30
    """A command that prints more than this is killed."""
    repo_copy: Path | None = None
    """A copy of the repository that takes its place for this command (the tamper guard's)."""
    mounts: tuple[Mount, ...] = ()
    """More host paths for this command, mounted over the rest (the copy's ignored folders)."""
    private: bool = False
    """The command must see nothing of `SandboxOrder.home`, where workers keep their own data."""
    home: Path | None = None
    """A folder of this host to use as the command's home; None for an empty one in memory. Commands
    that write to it (no `home_layer`) have their writes to package caches kept beside it, in a
    folder of the same name plus `.caches`, which all commands with this home see."""
    home_layer: bool = False
    """Discard what the command writes into its home; otherwise it stays in `home`."""
    door: Door | None = None
    """Only allowed with network `none`, or with `full` for the gateway, which holds the key."""


class Ending(StrEnum):
    """Why a command ended, taken from our own record and never from its output."""

    EXITED = "exited"
    OUTPUT_LIMIT = "output_limit"
    OOM = "oom"
    """The kernel killed it, or one of its processes, for using too much memory."""
    DISK_LIMIT = "disk_limit"


@dataclass(frozen=True)
class CommandResult:
    """A command that started and ended. A non-zero exit code is a normal result."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    started_at: datetime
    """UTC."""
    ended_at: datetime
    duration_sec: float
    """Measured by the monotonic clock."""
    ending: Ending = Ending.EXITED
    stdout_bytes: int = 0
    """Bytes printed, kept or not."""
    stderr_bytes: int = 0


@dataclass(frozen=True)
class Launch:
    """How the supervisor starts a request in the sandbox, as a process on this host.

    In `argv` the text `{status_fd}` stands for the number of a pipe on which the sandbox helper
    reports its child (bwrap's --json-status-fd). It is absent where there is no such pipe.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """The complete environment of helper and command, built from nothing; never part of argv."""
    cwd: Path
    contains_children: bool = True
    """Whether the end of the helper also ends everything it started."""


Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]


class Sandbox(Protocol):
    """One sandbox for one task."""

    @property
    def kind(self) -> str:
        """The sandbox's name in a task file."""

    @property
    def isolates(self) -> bool:
        """Whether commands are kept away from this machine: its files, network and processes."""

    @property
    def byte_code(self) -> Path | None:
        """Where Python keeps byte code in the sandbox, as a mount target; None if nowhere."""

    @property
    def image(self) -> str:
        """The id of the image in use; "" where there is none."""

    def describe(self) -> str:
        """Return what it isolates, in one line for the header: "bwrap 0.8.0; no route out, …"."""

    def isolation(self) -> Mapping[str, str]:
        """Return what it isolates and by what means, for doctor: "memory" to "4g, cgroup v1", …

        Every back end uses the same names: processes, files, network, system calls, privileges,
        user, memory, cpus, pids, disk.
        """

    def mounts(self) -> list[Mount]:
        """Return what is visible from the host, for --dry-run and doctor."""

    async def open(self) -> None:
        """Create the sandbox. Raises SandboxUnavailable with the reason and a remedy."""

    def launch(self, request: Request) -> Launch:
        """Return how the supervisor starts this request; raises SandboxError(INVALID_REQUEST)."""

    async def run(self, request: Request, on_output: OnOutput | None = None) -> CommandResult:
        """Run a request to its end; no process of it is left on return. Raises SandboxError."""

    async def pause(self) -> None:
        """Freeze all processes in the sandbox, where the sandbox supports it."""

    async def unpause(self) -> None:
        """Resume the frozen processes."""

    async def kill_all(self) -> None:
        """Kill everything that runs in the sandbox; the sandbox stays usable."""

    async def close(self) -> None:
        """Kill everything and remove the sandbox. Safe to call twice."""
