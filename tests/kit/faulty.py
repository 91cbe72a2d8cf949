"""A worker whose model says no: a `command` worker that tells by a line of JSON why it failed.

    runner={"worker": faulty(says("rate_limit", reset_at="…"), does("make"))}

Each step is what one start of it does; the last one is repeated. It has sessions, and notes for
each start how it was called.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner import registry
from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import (
    Ended,
    Failure,
    FailureKind,
    WorkerCommand,
    WorkerReading,
    WorkerRequest,
)
from agentrunner.workers.command import CommandWorker
from tests.kit.runs import Run

KIND = "faulty"


class FaultyWorker(CommandWorker):
    """Believes the last line of JSON that its command prints."""

    kind = KIND

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        super().__init__(spec, repo)
        self._name = spec.name or KIND

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """How it was called goes to the command, which notes it."""
        called = f"{call.mode} {call.session_id or '-'} {call.model or '-'}"
        env = {"CALLED": called, "CALLS": str(calls_file(call.home, self._name))}
        return replace(super().command(call), env=env)

    def read(self, ended: Ended) -> WorkerReading:
        """What the command told."""
        told: dict[str, Any] = {}
        for line in ended.stdout.read_text().splitlines():
            told |= json.loads(line) if line.startswith("{") else {}
        failure = None
        if kind := told.get("failure"):
            failure = Failure(kind, told["message"], told["reset_at"])
        return WorkerReading(
            completed=ended.outcome == "exited" and ended.exit_code == 0,
            session_id=told.get("session"),
            session_lost=bool(told.get("lost")),
            failure=failure,
            error=failure.message if failure else "",
        )


@pytest.fixture
def faulty_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind is known."""
    monkeypatch.setitem(registry.WORKERS, KIND, "tests.kit.faulty:FaultyWorker")


def faulty(*steps: str, name: str = "", **more: Any) -> dict[str, Any]:
    """The section of a task for such a worker."""
    cases = "".join(f"{number}) {step};; " for number, step in enumerate(steps[:-1], start=1))
    script = (
        'echo "$CALLED" >> "$CALLS"; case $(wc -l < "$CALLS") in ' + f"{cases}*) {steps[-1]};; esac"
    )
    named = {"name": name} if name else {}
    return {"kind": KIND, "command": ["sh", "-c", script], **named, **more}


def says(
    failure: FailureKind, *, reset_at: str = "", session: str | None = "s-1", lost: bool = False
) -> str:
    """A start that fails for this reason."""
    told = {
        "failure": failure,
        "message": f"the provider says: {failure}",
        "reset_at": reset_at,
        "session": session,
        "lost": lost,
    }
    return f"echo '{json.dumps(told)}'; exit 1"


def does(command: str, session: str = "s-1") -> str:
    """A start that works."""
    return f"{command}; echo '{json.dumps({'session': session})}'"


def calls_file(home: Path, name: str) -> Path:
    """Where each start notes how it was called."""
    return home / f"{name}.calls"


def calls_of(run: Run, name: str = KIND) -> list[str]:
    """Every start in order: mode, session and model, `-` for none."""
    path = calls_file(run.folder.sandbox_dir, name)
    return path.read_text().splitlines() if path.exists() else []
