"""What a worker adapter is asked: a call becomes a command, its output becomes facts.

Adapters start nothing and read no disk but to find their binary. What a worker changed comes
from snapshots and what passed from our own checks; the stream is only a witness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from agentrunner.config.agents import WorkerSpec
from agentrunner.supervisor.watching import OutputWatch as OutputWatch

WireName = Literal["", "openai", "anthropic", "gemini"]


@dataclass(frozen=True)
class WorkerRequest:
    """One order to a worker, checked against what the task allows."""

    worker_run_id: str
    prompt: str
    workdir: Path
    home: Path
    """Writable folder of the run for the CLI's configuration and sessions; it is in the sandbox."""
    prompt_file: Path
    """The prompt as a file that the sandbox can read."""
    mode: Literal["exec", "resume"] = "exec"
    session_id: str | None = None
    """The session to resume."""
    new_session_id: str = ""
    """A UUID for a CLI whose new sessions can be given their id."""
    model: str | None = None
    flags: tuple[str, ...] = ()
    tool_specific: Mapping[str, str] = field(default_factory=dict)
    """Settings by the names of the adapter's `tool_rules`, each allowed by it."""
    base_url: str | None = None
    """Where its model is from inside the sandbox: the gateway. None: the provider's own address."""
    login: bool = False
    """Its credential is a login's token, which some CLIs take in another way than a key."""
    sandboxed: bool = True
    """False with sandbox `none`: the CLI's own sandbox is used in place of its bypass flag."""


@dataclass(frozen=True)
class WorkerCommand:
    """What runs in the sandbox."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    """Not secret: homes, switches. The caller adds the task's `worker.env`."""
    key_env: str = ""
    """Where the caller puts the first credential it finds under `key_names`; "" wants none."""
    folders: tuple[Path, ...] = ()
    """Made before the start."""
    files: Mapping[Path, str] = field(default_factory=dict)
    """Written before the start, below `WorkerRequest.home`. Not secret."""
    stop_signal: Literal["INT", "TERM"] = "TERM"
    """INT: interrupt first and give it 2 s, then TERM, 5 s, KILL."""
    watch: OutputWatch = field(default_factory=OutputWatch)


@dataclass(frozen=True)
class WorkerEvent:
    """A line of the live view: `kind` and fields as in the reference of --json."""

    kind: Literal["text", "command_started", "command_finished", "file_changed", "usage", "error"]
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class CommandRun:
    """A command the worker says it ran."""

    command: str
    exit_code: int | None = None
    status: str = ""


ProcessOutcome = Literal[
    "exited", "lingered", "timeout", "idle_timeout", "retry_storm", "login_prompt", "output_limit",
    "disk_limit", "oom", "egress", "interrupted", "lost", "infra",
]  # fmt: skip
"""How a worker's process came to its end, as the supervisor saw it.

`lingered`: it had told its last event, did not exit, and was ended. `retry_storm`, `login_prompt`:
it was ended for what its `OutputWatch` looks for.
"""


@dataclass(frozen=True)
class Ended:
    """How the process ended, as the supervisor recorded it."""

    exit_code: int | None
    outcome: ProcessOutcome
    stdout: Path
    stderr: Path
    home: Path = Path("/nonexistent")
    """`WorkerRequest.home`, for CLIs that leave their account in a file."""
    session_tokens: tuple[int, int] = (0, 0)
    """Input and output tokens already booked for this session's earlier runs.

    Some CLIs report a resumed session's total; the adapter subtracts these from it.
    """

    @property
    def by_itself(self) -> bool:
        """Whether it came to its end on its own: exited, or only forgot to."""
        return self.outcome in ("exited", "lingered")


FailureKind = Literal[
    "auth", "model", "rate_limit", "context", "server", "network", "protocol", "budget"
]


@dataclass(frozen=True)
class Failure:
    """Why a worker's model, or its CLI, said no."""

    kind: FailureKind
    message: str
    reset_at: str = ""
    """When a quota is there again, as far as told: UTC, ISO 8601."""


@dataclass(frozen=True)
class WorkerReading:
    """What the output tells once the worker has ended."""

    completed: bool
    """Exit 0 *and* the CLI's own terminal event, clean; never true unless it ended by itself."""
    cut_off: bool = False
    """Its stream has no last word of the CLI, which always says one."""
    summary: str = ""
    """At most 600 characters, like `error`: they go into the state."""
    commands: tuple[CommandRun, ...] = ()
    actions: int | None = None
    """Tools it used, commands among them; None where its CLI does not tell."""
    session_id: str | None = None
    session_lost: bool = False
    """It was to resume a session that its CLI does not know."""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    """What its CLI says it cost; None where it does not tell."""
    model: str = ""
    """The model that its CLI says it used."""
    denied: tuple[str, ...] = ()
    """Tools it wanted and was not let."""
    failure: Failure | None = None
    """Why it came to nothing, where its words tell."""
    error: str = ""


@dataclass(frozen=True)
class Reports:
    """What a CLI can tell of itself, as far as it was tried."""

    exit_codes: bool = False
    """Of the commands it runs."""
    actions: bool = False
    """Every use of a tool, so that "nothing was done" can be seen."""
    tokens: bool = False
    cost: bool = False
    resume: bool = False
    """Whether a session can be gone on with."""
    schema: bool = False
    """Whether its answer can be held to a JSON Schema."""


@dataclass(frozen=True)
class Probe:
    """What is installed: `path` is None where nothing is found, `problem` says what to do."""

    path: Path | None
    version: str = ""
    tested: str = ""
    problem: str = ""
    cure: str = ""
    """One command that helps against the problem."""


class EventReader(Protocol):
    """Turns an output stream into events, line by line; tolerant of anything."""

    def feed(self, chunk: bytes) -> list[WorkerEvent]:
        """Events that this chunk completes."""


class Worker(Protocol):
    """An adapter for one CLI."""

    kind: str
    needs_model: bool
    """Whether it calls a model over the network."""
    key_names: tuple[str, ...]
    """Credential variables, the one to use first."""
    wire: WireName
    """What its model calls look like; "" where it makes none that a gateway could pass on."""
    reports: Reports
    verified: str
    """How it was tried: "codex 0.169.0, real", or what it was built from."""
    confines_itself: bool
    """Whether it can be run without our sandbox: it has one, or a mode that is not all-allowing."""
    memory: str
    """What a sandbox should give it at least, as in "1g"; "" for no matter."""
    hosts: tuple[str, ...]
    """Hosts it needs beside a model that the gateway serves, as in `network.allow`."""

    @property
    def provider_url(self) -> str:
        """The provider's base URL, as the task names it or its own; "" where `wire` is."""

    flag_rules: Mapping[str, str]
    """Flags that a planner may set, each with a regex for its value ("" takes none)."""
    tool_rules: Mapping[str, str]
    """Names of `tool_specific` that a planner may set, each with a regex for its value."""

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        """Keep the settings; raises UsageError for a setting that cannot work.

        No program is taken from inside `repo`: a repository must not choose what runs as a
        worker's CLI.
        """

    def probe(self) -> Probe:
        """Find the binary and its version; never raises."""

    def program(self) -> str:
        """First word of the command, whose toolchain must be visible in the sandbox.

        A bare name where this machine has none: an image may.
        """

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """The command line for this call; pure but for finding the binary once."""

    def events(self) -> EventReader:
        """A fresh reader for one run's stdout."""

    def read(self, ended: Ended) -> WorkerReading:
        """Facts from the captured output; never raises on what a worker printed."""
