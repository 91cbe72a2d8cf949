"""What a worker adapter is asked: a call becomes a command, its output becomes facts.

Adapters start nothing and read no disk but to find their binary. What a worker changed comes
from snapshots and what passed from our own checks; the stream is only a witness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from agentrunner.task.spec import WorkerSpec

WireName = Literal["", "openai", "anthropic", "gemini"]


@dataclass(frozen=True)
class WorkerCall:
    """One order to a worker, checked against what the task allows."""

    worker_run_id: str
    prompt: str
    workdir: Path
    home: Path
    """Writable folder of the run for the CLI's configuration and sessions; exists in the box."""
    prompt_file: Path
    """The prompt as a file that the box can read."""
    mode: Literal["exec", "resume"] = "exec"
    session_id: str | None = None
    model: str | None = None
    flags: tuple[str, ...] = ()
    base_url: str | None = None
    """Where its model is from inside the box: the gateway. None: the provider's own address."""
    sandboxed: bool = True
    """False with sandbox `none`: the CLI's own sandbox is used in place of its bypass flag."""


@dataclass(frozen=True)
class WorkerCommand:
    """What runs in the box."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    """Not secret: homes, switches. The caller adds the task's `worker.env`."""
    key_env: str = ""
    """Where the caller puts the first credential it finds under `key_names`; "" wants none."""
    folders: tuple[Path, ...] = ()
    """Made before the start."""
    stop_signal: Literal["INT", "TERM"] = "TERM"
    """INT: interrupt first and give it 2 s, then TERM, 5 s, KILL."""


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


@dataclass(frozen=True)
class Ended:
    """How the process ended, as the supervisor recorded it."""

    exit_code: int | None
    outcome: Literal[
        "exited", "timeout", "idle_timeout", "output_limit", "disk_limit", "oom", "egress",
        "interrupted", "lost", "infra",
    ]  # fmt: skip
    stdout: Path
    stderr: Path
    session_tokens: tuple[int, int] = (0, 0)
    """Input and output tokens already booked for this session's earlier runs.

    Some CLIs report a resumed session's total; the adapter subtracts these from it.
    """


@dataclass(frozen=True)
class WorkerReading:
    """What the output tells once the worker has ended."""

    completed: bool
    """Exit 0 *and* the CLI's own terminal event, clean; never true unless it ended by itself."""
    summary: str = ""
    """At most 600 characters, like `error`: they go into the state."""
    commands: tuple[CommandRun, ...] = ()
    session_id: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    error: str = ""


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

    @property
    def provider_url(self) -> str:
        """The provider's base URL, as the task names it or its own; "" where `wire` is."""

    flag_rules: Mapping[str, str]
    """Flags that a meta-agent may set, each with a regex for its value ("" takes none)."""

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        """Keep the settings; raises UsageError for a setting that cannot work.

        No program is taken from inside `repo`: a repository must not choose what runs as a
        worker's CLI.
        """

    def probe(self) -> Probe:
        """Find the binary and its version; never raises."""

    def program(self) -> str:
        """First word of the command, whose toolchain must be visible in the box.

        A bare name where this machine has none: an image may.
        """

    def command(self, call: WorkerCall) -> WorkerCommand:
        """The command line for this call; pure but for finding the binary once."""

    def events(self) -> EventReader:
        """A fresh reader for one run's stdout."""

    def read(self, ended: Ended) -> WorkerReading:
        """Facts from the captured output; never raises on what a worker printed."""
