"""Everything that can go wrong by name, and who should act on it.

    AgentRunnerError          exit code, a code for `agentrunner explain`, a place, a remedy
    ├── UsageError      (2)   the caller's mistake: task file, option, unknown run, stale answer
    │   └── ProtocolError     a reply of the planner that can't be read (asked again first)
    ├── Surroundings    (5)   missing key, binary, sandbox; lock held; state damaged; disk full
    │   ├── SandboxUnavailable
    │   ├── EnvironmentNotReady
    │   ├── Busy
    │   └── CheckpointCorrupt
    └── TaskFailed      (1)   the task ends FAILED: the planner, its API, a worker, a budget

A non-zero exit code of a worker or a test is a result, not an error.
"""

from __future__ import annotations


class AgentRunnerError(Exception):
    """Something went wrong that has a name.

    `code` names the page under docs/errors (`agentrunner explain CODE`), `path` the place
    ("task.yaml:21", "runner.worker.kind"), `source_line` that line's text, `remedy` one
    command or change to try, `details` further "label: text" lines.
    """

    exit_code = 1
    default_code = "internal"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        path: str = "",
        source_line: str = "",
        remedy: str = "",
        details: tuple[tuple[str, str], ...] = (),
        nothing_spent: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.path = path
        self.source_line = source_line
        self.remedy = remedy
        self.details = details
        self.nothing_spent = nothing_spent

    def as_dict(self) -> dict[str, str]:
        """The `error` object of the result and of `parse`."""
        return {
            "code": self.code,
            "path": self.path,
            "message": self.message,
            "remedy": self.remedy,
        }


class UsageError(AgentRunnerError):
    """The caller asked for something that cannot be done as asked."""

    exit_code = 2
    default_code = "usage"


class ProtocolError(UsageError):
    """A reply of the planner is not the message that was asked for.

    Codes: empty, too_large, incomplete, refusal, not_found, ambiguous, syntax, forbidden_yaml,
    duplicate_key, unsupported_version, wrong_type, missing, invalid, placeholder.
    `path` is dotted with indices, "" for the whole reply.
    """

    def __init__(self, code: str, path: str, message: str) -> None:
        super().__init__(message, code=code, path=path)

    def __str__(self) -> str:
        return f"{self.code} at {self.path or 'the whole reply'}: {self.message}"


class InfraError(AgentRunnerError):
    """The machine, not the model or the task, is in the way."""

    exit_code = 5
    default_code = "surroundings"


class SandboxUnavailable(InfraError):
    """The sandbox could not be started."""

    default_code = "sandbox-unavailable"


class EnvironmentNotReady(InfraError):
    """A command that decides about completion cannot start in the box."""

    default_code = "environment-not-ready"


class LockHeld(InfraError):
    """Another process holds this run or this repository."""

    default_code = "busy"


class CheckpointCorrupt(InfraError):
    """The saved state of a run is damaged, foreign, empty or of a newer version."""

    default_code = "state-damaged"


class TaskFailed(AgentRunnerError):
    """The task cannot go on and ends FAILED."""

    default_code = "task-failed"
