"""The interface of worker adapters: a call becomes a command, its output becomes facts.

Adapters start nothing and read the disk only to find their binary. What a worker changed is known
from snapshots, and what passed from our own checks; its output is only a witness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from agentrunner.config.agents import WorkerSpec
from agentrunner.supervisor.watching import OutputWatch as OutputWatch
from agentrunner.supervisor.watching import ProcessOutcome as ProcessOutcome

WireName = Literal["", "openai", "anthropic", "gemini"]


@dataclass(frozen=True)
class WorkerRequest:
    """One order to a worker, already checked against what the task allows."""

    worker_run_id: str
    prompt: str
    workdir: Path
    home: Path
    """Writable folder of the run for the CLI's configuration and sessions, in the sandbox too."""
    prompt_file: Path
    """The prompt as a file that the sandbox can read."""
    mode: Literal["exec", "resume"] = "exec"
    session_id: str | None = None
    """The session to resume."""
    new_session_id: str = ""
    """A UUID for a CLI that accepts an id for a new session."""
    model: str | None = None
    flags: tuple[str, ...] = ()
    tool_specific: Mapping[str, str] = field(default_factory=dict)
    """Settings by the names of the adapter's `tool_rules`, each allowed by its rule."""
    base_url: str | None = None
    """The model's address in the sandbox: the gateway's. None: the provider's own address."""
    login: bool = False
    """Its credential is a login's token, which some CLIs take differently from a key."""
    sandboxed: bool = True
    """False with sandbox `none`: the CLI's own sandbox is used instead of its bypass flag."""


@dataclass(frozen=True)
class WorkerCommand:
    """The command that runs in the sandbox."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    """Not secret: homes, switches. The caller adds the task's `worker.env`."""
    key_env: str = ""
    """Where the caller puts the first credential it finds under `key_names`; "" for none."""
    folders: tuple[Path, ...] = ()
    """Created before the start."""
    files: Mapping[Path, str] = field(default_factory=dict)
    """Written before the start, below `WorkerRequest.home`. Not secret."""
    stop_signal: Literal["INT", "TERM"] = "TERM"
    """INT: interrupt first, TERM after 2 s, KILL after 5 s more."""
    watch: OutputWatch = field(default_factory=OutputWatch)


class WorkerEvent(Struct, frozen=True):
    """A line of the live view: `kind` and fields as in the reference of --json."""

    kind: Literal["text", "command_started", "command_finished", "file_changed", "usage", "error"]
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class CommandRun:
    """A command that the worker claims to have run."""

    command: str
    exit_code: int | None = None
    status: str = ""


class Ended(Struct, frozen=True):
    """How the process ended, as the supervisor recorded it."""

    exit_code: int | None
    outcome: ProcessOutcome
    stdout: Path
    stderr: Path
    home: Path = Path("/nonexistent")
    """`WorkerRequest.home`, for CLIs that write their report to a file."""
    session_tokens: tuple[int, int] = (0, 0)
    """Input and output tokens already counted for this session's earlier runs.

    Some CLIs report a resumed session's total; the adapter subtracts these from it.
    """

    @property
    def by_itself(self) -> bool:
        """Whether it ended on its own: it exited, or only forgot to."""
        return self.outcome in ("exited", "lingered")


FailureKind = Literal[
    "auth", "model", "rate_limit", "context", "server", "network", "protocol", "budget"
]


@dataclass(frozen=True)
class Failure:
    """Why a worker's model, or its CLI, refused or failed."""

    kind: FailureKind
    message: str
    reset_at: str = ""
    """When a spent quota is available again, if known: UTC, ISO 8601."""


@dataclass(frozen=True)
class WorkerReading:
    """What the output says, once the worker has ended."""

    completed: bool
    """Exit 0 *and* the CLI's own terminal event, clean; never true unless it ended by itself."""
    cut_off: bool = False
    """The stream lacks the CLI's last word, which the CLI always prints."""
    summary: str = ""
    """At most 600 characters, like `error`, because both go into the state."""
    commands: tuple[CommandRun, ...] = ()
    actions: int | None = None
    """How many tools it used, including commands; None if its CLI does not report them."""
    session_id: str | None = None
    session_lost: bool = False
    """Its CLI does not know the session that was to be resumed."""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    """The cost that its CLI reports; None if it reports none."""
    model: str = ""
    """The model that its CLI reports."""
    denied: tuple[str, ...] = ()
    """Tools that it wanted to use but was not allowed to."""
    failure: Failure | None = None
    """Why it failed, if its messages say so."""
    error: str = ""


@dataclass(frozen=True)
class Reports:
    """What a CLI reports about itself, as far as tested."""

    exit_codes: bool = False
    """Those of the commands it runs."""
    actions: bool = False
    """Every use of a tool, so that "nothing was done" is visible."""
    tokens: bool = False
    cost: bool = False
    resume: bool = False
    """Whether a session can be resumed."""
    schema: bool = False
    """Whether its answer can be constrained by a JSON Schema."""


@dataclass(frozen=True)
class Probe:
    """What is installed: `path` is None if nothing is found, `problem` says what to do."""

    path: Path | None
    version: str = ""
    tested: str = ""
    problem: str = ""
    cure: str = ""
    """One command that fixes the problem."""


class EventReader(Protocol):
    """Turns an output stream into events, line by line; tolerates any input."""

    def feed(self, chunk: bytes) -> list[WorkerEvent]:
        """Return the events that this chunk completes."""


class Worker(Protocol):
    """An adapter for one CLI."""

    kind: str
    needs_model: bool
    """Whether it calls a model over the network."""
    key_names: tuple[str, ...]
    """Credential variables, the preferred one first."""
    wire: WireName
    """The API of its model calls; "" if it makes none that a gateway could pass on."""
    reports: Reports
    verified: str
    """How it was tested: "codex 0.169.0, real", or what it was built from."""
    confines_itself: bool
    """Whether it may run without our sandbox: it has one, or a mode that restricts it."""
    memory: str
    """The least memory that a sandbox should give it, like "1g"; "" if it does not matter."""
    hosts: tuple[str, ...]
    """Hosts it needs besides a model that the gateway serves, as in `network.allow`."""

    @property
    def provider_url(self) -> str:
        """The provider's base URL, the task's or its own; "" if `wire` is ""."""

    flag_rules: Mapping[str, str]
    """Flags that a planner may set, each with a regex for its value ("" takes none)."""
    tool_rules: Mapping[str, str]
    """Names of `tool_specific` that a planner may set, each with a regex for its value."""

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        """Keep the settings; raises UsageError for an unusable setting.

        No program inside `repo` is used: a repository must not choose what runs as a worker's CLI.
        """

    def probe(self) -> Probe:
        """Find the binary and its version; never raises."""

    def program(self) -> str:
        """Return the first word of the command, whose toolchain must be visible in the sandbox.

        It is a bare name if this machine has none: an image may have it.
        """

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return the command line for this call; pure except for finding the binary once."""

    def events(self) -> EventReader:
        """Return a new reader for one run's stdout."""

    def read(self, ended: Ended) -> WorkerReading:
        """Return the facts in the captured output; never raises, whatever a worker printed."""


@runtime_checkable
class RunsScript(Protocol):
    """What a worker may have besides, where its program is to run a script of this machine."""

    def script(self) -> Path | None:
        """Return the script, if it is not in the repository; it may be missing in a sandbox."""


@runtime_checkable
class LacksScript(Protocol):
    """What a worker may have besides, where it knows that its program's script is not there."""

    def lacking_script(self) -> Path | None:
        """Return the script, if it is not on this machine; a sandbox's image may have it."""
