"""Captured output of worker CLIs, read as a run reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import (
    Ended,
    ProcessOutcome,
    Worker,
    WorkerCommand,
    WorkerReading,
    WorkerRequest,
)
from agentrunner.workers.member import make_worker
from agentrunner.workers.outcome import WorkerOutcome, outcome_of

STREAMS = Path(__file__).parents[1] / "data" / "worker_streams"
HOME = Path("/state/box")
PROMPT_FILE = HOME / "prompt.md"


def adapter(kind: str, **spec: Any) -> Worker:
    """With a model, unless `spec` says otherwise."""
    return make_worker(WorkerSpec(**{"kind": kind, "model": "some-model", **spec}))


def command(kind: str, **call: Any) -> WorkerCommand:
    """What is run for a call through the gateway."""
    fields: dict[str, Any] = {
        "worker_run_id": "w1",
        "prompt": "do it",
        "workdir": Path("/src/repo"),
        "home": HOME,
        "prompt_file": PROMPT_FILE,
        "new_session_id": "00000000-0000-4000-8000-000000000001",
        "base_url": "http://127.0.0.1:8787",
    }
    return adapter(kind).command(WorkerRequest(**fields | call))


def read(
    kind: str,
    stdout: str,
    exit_code: int | None = 0,
    *,
    stderr: str = "none",
    outcome: ProcessOutcome = "exited",
    home: Path = HOME,
    booked: tuple[int, int] = (0, 0),
    changed: int = 0,
) -> tuple[WorkerReading, WorkerOutcome]:
    """What a captured stream tells, and what the run comes to without a gateway."""
    worker = adapter(kind)
    ended = Ended(exit_code, outcome, STREAMS / stdout, STREAMS / stderr, home, booked)
    reading = worker.read(ended)
    return reading, outcome_of(
        ended, reading, gateway_error=None, changed=changed, reports=worker.reports
    )


def cut(place: Path, stdout: str, lines: int) -> str:
    """A stream without its last lines, as one that was killed leaves; its path."""
    kept = (STREAMS / stdout).read_text("utf-8").splitlines(keepends=True)[:-lines]
    path = place / stdout
    path.write_text("".join(kept), "utf-8")
    return str(path)
