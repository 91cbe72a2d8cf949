"""What every sandbox is asked and what it answers.

A sandbox is one sandbox for one task. It is opened once, runs many commands, and is closed at the
end. Checks and tests are run by us (`run`); a worker is started by the supervisor, which
outlives us, from what `launch` says.
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
    """Who is at fault when a request has no result."""

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
    """A request came to no exit code: it timed out, the sandbox died, or it made no sense."""

    exit_code = 5

    def __init__(
        self, kind: ErrorKind, op: str, cause: str, *, result: CommandResult | None = None
    ) -> None:
        super().__init__(f"{kind} in {op}: {cause}", code=OF_KIND[kind].code)
        self.kind = kind
        self.op = op
        self.cause = cause
        self.result = result
        """What was printed until then, where the command had started."""


@dataclass(frozen=True)
class Mount:
    """A host path made visible in the sandbox."""

    source: Path
    target: Path
    read_only: bool = True
    layer: bool = False
    """The command may write to it, and what it wrote is thrown away with its end; the source never
    changes. `read_only` has no meaning then."""
    over: tuple[Path, ...] = ()
    """Of a layer that the kernel lays: folders seen below the source, the lowest first."""
    upper: Path | None = None
    """Of a layer that a container engine lays: the folder for what the command writes."""
    kept: bool = False
    """Of a layer that the kernel lays: what the command writes goes into the source and stays."""


@dataclass(frozen=True)
class Cache:
    """A folder of downloaded packages of the user's, shown below the sandbox's home."""

    ecosystem: str
    source: Path
    place: str
    """Below the home."""
    layer: bool = False
    """Whether the command may write, which is thrown away; else it is read-only."""
    hidden: tuple[str, ...] = ()
    """Below it: files and folders that are shown empty."""


@dataclass(frozen=True)
class Caches:
    """The package caches of a sandbox, and what tools are told of them. `{home}` is its home."""

    folders: tuple[Cache, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    offline: Mapping[str, str] = field(default_factory=dict)
    """Added where a command can reach no network."""
    notices: tuple[str, ...] = ()
    """Sentences for people: what is left out, and why."""

    @property
    def ecosystems(self) -> tuple[str, ...]:
        """Those of which there is anything."""
        return tuple(dict.fromkeys(folder.ecosystem for folder in self.folders))


@dataclass(frozen=True)
class ResourceLimit:
    """Empty means unlimited. `memory` as in "512m" or "4g"."""

    cpus: float | None = None
    memory: str | None = None
    pids: int | None = None
    disk: str | None = None
    """Bytes by which the work tree may grow, as in "10g"; watched, not reserved."""


@dataclass(frozen=True)
class Door:
    """The one way out of a sandbox without a network: ports of its own loopback that lead to us.

    Each port leads to a Unix socket on this host. Who listens there (gateway, proxy) may end and
    come back; a connection made meanwhile is refused, or waits.
    """

    folder: Path
    """The run's `sock` folder on this host, which holds the sockets; for its owner only."""
    ports: Mapping[int, str]
    """Port on the sandbox's 127.0.0.1 to the name of a socket in `folder`."""


@dataclass(frozen=True)
class Owner:
    """Whose sandbox it is, so that what a dead run left can be told from what a living one uses."""

    run_id: str = ""
    task_id: str = ""


@dataclass(frozen=True)
class SandboxOrder:
    """What a sandbox is made of; fixed for the whole task."""

    repo: Path
    """Writable, at its own absolute path."""
    home: Path
    """The run's `runs/<id>/box`, writable at its own path: worker config and sessions."""
    network: Network = "none"
    """The most that a request may ask for."""
    programs: tuple[str, ...] = ()
    """Words whose toolchains must be visible: the worker's binary, first words of commands."""
    read_paths: tuple[Path, ...] = ()
    image: str = ""
    """Of a container; other sandboxes have none."""
    image_from: Path | None = None
    """Without `image`: a Dockerfile or devcontainer.json of the repository that makes one."""
    worker_kind: str = ""
    """Without either: whose default image it is."""
    pull: Literal["never", "missing", "always"] = "never"
    """Whether a container's image may be fetched or built."""
    on_progress: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    """Told, a line at a time, how far that is; in the event loop's thread."""
    limits: ResourceLimit = field(default_factory=ResourceLimit)
    sockets: Path | None = None
    """The run's `runs/<id>/sock`, where doors lead to; None for a sandbox that has none."""
    caches: Caches = field(default_factory=Caches)
    """The user's package caches that every command is shown."""
    owner: Owner = field(default_factory=Owner)


@dataclass(frozen=True)
class Request:
    """One command in the sandbox."""

    command: tuple[str, ...]
    workdir: Path
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the sandbox's own minimal environment; nothing is inherited from ours."""
    stdin: bytes = field(default=b"", repr=False)
    network: Network = "none"
    timeout_sec: float = 600
    keep_bytes: int = 1 << 20
    """Of each stream the first 64 KiB and the last of this many bytes are kept."""
    stop_bytes: int = 1 << 30
    """A command that prints more is ended."""
    repo_copy: Path | None = None
    """A copy of the repository that stands in its place for this command (the tamper guard's)."""
    mounts: tuple[Mount, ...] = ()
    """Further host paths for this command, laid over the rest (the copy's ignored folders)."""
    private: bool = False
    """Whether it must see nothing of `SandboxOrder.home`, where workers keep what is theirs."""
    home: Path | None = None
    """A folder of this host that is the command's home; None for an empty one in memory. What
    commands that write to it (no `home_layer`) write into package caches is kept beside it, in a
    folder of the same name with `.caches`, and shown to all that have this home."""
    home_layer: bool = False
    """Whether what the command writes into its home is thrown away; else it stays in `home`."""
    door: Door | None = None
    """Only with network `none`, or with `full` for the gateway that keeps the key."""


class Ending(StrEnum):
    """Why a command ended, from our own record and never from its text."""

    EXITED = "exited"
    OUTPUT_LIMIT = "output_limit"
    OOM = "oom"
    """The kernel ended it, or a process of it, for its memory."""
    DISK_LIMIT = "disk_limit"


@dataclass(frozen=True)
class CommandResult:
    """A command that started and ended. A non-zero exit code is a result like any other."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    started_at: datetime
    """UTC."""
    ended_at: datetime
    duration_sec: float
    """By the monotonic clock."""
    ending: Ending = Ending.EXITED
    stdout_bytes: int = 0
    """How many were printed, kept or not."""
    stderr_bytes: int = 0


@dataclass(frozen=True)
class Launch:
    """How a process on this host starts a request in the sandbox: for the supervisor.

    In `argv` the text `{status_fd}` stands for the number of a pipe on which the sandbox helper
    reports its child (bwrap's --json-status-fd); absent where there is none.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """All of it, built from nothing: the helper's and so the command's. Never in argv."""
    cwd: Path
    contains_children: bool = True
    """Whether the end of the helper is the end of everything it started."""


OnOutput = Callable[[Literal["stdout", "stderr"], bytes], None]


class Sandbox(Protocol):
    """One sandbox for one task."""

    @property
    def kind(self) -> str:
        """The name it has in a task file."""

    @property
    def isolates(self) -> bool:
        """Whether commands are kept away from this machine: its files, network and processes."""

    @property
    def byte_code(self) -> Path | None:
        """Where Python keeps byte code in the sandbox, for a mount; None where none can be made."""

    @property
    def image(self) -> str:
        """The id of the very image it stands on; "" where there is none."""

    def describe(self) -> str:
        """What it isolates, in one line for the header: "bwrap 0.8.0; no route out, …"."""

    def isolation(self) -> Mapping[str, str]:
        """What it holds and by which means, for doctor: "memory" to "4g, cgroup v1", …

        The same names for every back end: processes, files, network, system calls, privileges,
        user, memory, cpus, pids, disk.
        """

    def mounts(self) -> list[Mount]:
        """What is visible from the host, for --dry-run and doctor."""

    async def open(self) -> None:
        """Make the sandbox; raises SandboxUnavailable with the reason and a cure."""

    def launch(self, request: Request) -> Launch:
        """How the supervisor starts this request; raises SandboxError(INVALID_REQUEST)."""

    async def run(self, request: Request, on_output: OnOutput | None = None) -> CommandResult:
        """Run to the end; raises SandboxError. On return nothing of it is left running."""

    async def pause(self) -> None:
        """Freeze what runs in the sandbox, where the sandbox can."""

    async def unpause(self) -> None:
        """Go on."""

    async def kill_all(self) -> None:
        """End everything that runs in the sandbox; the sandbox stays usable."""

    async def close(self) -> None:
        """End everything and remove the sandbox. Safe to call twice."""
