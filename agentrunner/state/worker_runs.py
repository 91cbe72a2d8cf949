"""Orders for workers, their outcomes, and what a run waits for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentrunner.state.state_model import FileRef, StateModel


class WorkerOrder(StateModel):
    """A decision to run a worker, saved before the worker is started."""

    worker_run_id: str
    worker: str
    """Its kind."""
    member: str = ""
    """The candidate's name among `runner.workers`."""
    mode: Literal["exec", "resume"] = "exec"
    prompt: FileRef
    """The prompt as it will be given, in the run's folder."""
    own_begins: int = 0
    own_ends: int = 0
    """Which characters of the prompt are about this order; the others stand in every prompt. Both 0
    where that is not known."""
    model: str | None = None
    flags: list[str] = []
    env: dict[str, str] = {}
    tool_specific: dict[str, str] = {}
    reason: str = ""
    loop: int = 0
    round: int = 0
    """Its round, counted from 1 over all attempts; 0 in an order of an earlier version."""
    tries: int = 0
    """How often it was started again without a new decision: after waits and lost sessions."""
    waits: int = 0
    """Waits in a row for the same problem, without any result."""
    waited_sec: float = 0
    """Seconds of all waits for it whose end was a guess, since it was decided or a person was
    asked."""


class Wait(StateModel):
    """The run waits until a quota is available again, or a provider answers."""

    until: str
    """UTC, ISO 8601."""
    since: str
    reason: str
    """One sentence: who refused, and with what message."""
    role: Literal["worker", "meta"] = "worker"
    candidate: str = ""
    """Whose quota it is."""
    back_to: str = "run_worker"
    """The node that runs after the wait."""
    told: bool = True
    """Whether the provider gave the time; else it is a guess."""


class Stuck(StateModel):
    """How often the same thing has led nowhere, in a row."""

    prompt: str = ""
    """Digest of the latest worker prompt."""
    prompts: int = 0
    """Runs of that prompt that changed nothing."""
    evidence: str = ""
    """Digest of what is red."""
    evidences: int = 0
    """Rounds in a row in which exactly that was red."""
    told: bool = False
    """Whether the planner got a remark about it."""
    run: str = ""
    """Id of the latest worker run that is counted."""


Outcome = Literal[
    "completed",
    "failed",
    "timeout",
    "idle_timeout",
    "output_limit",
    "disk_limit",
    "oom",
    "egress",
    "no_op",
    "denied",
    "auth",
    "model",
    "rate_limit",
    "context",
    "server",
    "network",
    "protocol",
    "budget",
    "interrupted",
    "lost",
    "infra",
]


class CommandSeen(StateModel):
    """A command that a worker reports to have run."""

    command: str = Field(max_length=200)
    exit_code: int | None = None


class WorkerRun(StateModel):
    """One ended worker run, as a reference into the run's folder."""

    worker_run_id: str
    worker: str
    member: str = ""
    """The candidate's name among `runner.workers`."""
    loop: int
    round: int = 0
    """As in its order."""
    outcome: Outcome
    exit_code: int | None = None
    started_at: str = ""
    ended_at: str = ""
    duration_sec: float = 0
    summary: str = Field("", max_length=600)
    error: str = Field("", max_length=600)
    changed_files: int = 0
    diff_stat: str = ""
    """What it changed, in one line: "2 files changed, +12 -3"."""
    changes: list[str] = []
    """The first twenty changed files: "app/links.py +10 -3"."""
    tree_before: str = ""
    tree_after: str = ""
    session_id: str | None = None
    session_lost: bool = False
    """Whether it should have resumed a session that its CLI no longer knows."""
    reset_at: str = ""
    """When a spent quota is available again, if the provider said so: UTC, ISO 8601."""
    commands: list[CommandSeen] = []
    """The last ten commands it ran, as its CLI reports them."""
    output: FileRef | None = None
    """Its standard output."""
    errors: FileRef | None = None
    """Its standard error, where it wrote any."""
