"""The dependencies of the nodes: everything that is no state and so is never checkpointed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.execution.saved_rounds import SavedRounds
from agentrunner.gateway.prices import Prices
from agentrunner.git.snapshots import Snapshots
from agentrunner.launching.route import Cassette
from agentrunner.money.bill import MadeCalls
from agentrunner.planners.panel import Panel
from agentrunner.prompts import Pattern
from agentrunner.sandboxes.base import Sandbox
from agentrunner.state.run_state import TaskContext
from agentrunner.state.state_model import FileRef, StateModel
from agentrunner.storage.events import EventLog
from agentrunner.storage.locks import FileLock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from agentrunner.storage.worker_ledger import Ledger
from agentrunner.text.redaction import Redactor
from agentrunner.text.times import stamp
from agentrunner.text.unicode import clean
from agentrunner.verification.evidence.verifier import Verifier
from agentrunner.verification.proof.run_prover import RunProver
from agentrunner.workers.member import Member

Update = TaskContext
"""What a node changes: channels of the state and their new values."""


class Stopped(Exception):
    """A signal arrived during a node that starts nothing lasting; the node runs again on resume."""


class Clock:
    """Wall time for what people read, monotonic time for what is measured, and sleeping."""

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.now(UTC)

    def stamp(self) -> str:
        """Return the time in UTC as ISO 8601 with milliseconds."""
        return stamp(self.now())

    def monotonic(self) -> float:
        """Return monotonic time in seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep, for instance before a server is asked again."""
        await asyncio.sleep(seconds)


@dataclass
class Deps:
    """The dependencies of the nodes, opened for one run."""

    spec: TaskSpec
    folder: RunFolder
    log: RunLog
    events: EventLog
    snapshots: Snapshots
    ledger: Ledger
    verifier: Verifier
    prover: RunProver
    panel: Panel
    members: tuple[Member, ...]
    """The workers' candidates in order of preference; at least one."""
    sandbox: Sandbox
    redactor: Redactor
    patterns: Mapping[str, Pattern]
    environ: Mapping[str, str]
    repository: FileLock
    """Held by driver and supervisor together."""
    prices: Prices = field(default_factory=Prices)
    """Prices of models, the person's own among them."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values that are redacted, for the gateway's own redactor."""
    cassette: Cassette = field(default_factory=Cassette)
    clock: Clock = field(default_factory=Clock)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first signal."""
    cooled: dict[str, str] = field(default_factory=dict)
    """What the present node adds to the channel `cooling`; the wrapper around the nodes saves
    it."""
    servers: tuple[TaskSpec, list[tuple[str, str]]] | None = None
    """Addresses and models of the planners' own servers, for this task."""
    calls: MadeCalls = field(init=False)
    """The calls of the planner, as the log has them."""
    rounds: SavedRounds = field(init=False)
    """What prompts tell of the past, as the log has it."""

    def __post_init__(self) -> None:
        self.calls = MadeCalls(self.log)
        self.rounds = SavedRounds(self.log, self.folder)

    def member(self, name: str) -> Member:
        """Return the candidate of this name, or the first for one that is no longer a candidate."""
        return next((member for member in self.members if member.name == name), self.members[0])

    def emit(self, event: str, **fields: Any) -> None:
        """Emit an event; models become plain data."""
        self.events.emit(event, **{name: _cleaned(_plain(value)) for name, value in fields.items()})

    def record(self, state: TaskContext, kind: str, key: str, data: Any) -> None:
        """Append to the run log under this attempt and loop.

        The record is on the disk before the state that builds on it, see `RunLog.sync`.
        """
        self.log.append(
            kind,
            key,
            _plain(data),
            attempt=state["run"].attempt,
            loop=state["counters"].loops,
            at=self.clock.stamp(),
            sync=False,
        )

    def keep(self, name: str, text: str) -> FileRef:
        """Write a new file of the run, which is on the disk before the state that names it."""
        kept = self.folder.write(name, text, sync=False, new=True)
        self.log.names(self.folder.root / name)
        return kept

    def warn(self, state: TaskContext, code: str, message: str) -> None:
        """Emit a warning, and record it for the note."""
        self.emit("warning", code=code, message=message)
        key = f"{code}-{state['counters'].decisions}-{state['counters'].worker_runs}"
        self.record(state, "warning", key, {"code": code, "message": message})


def _cleaned(value: Any) -> Any:
    """Return the value with lone surrogates replaced: names of files may not be valid UTF-8."""
    if isinstance(value, str):
        return value if value.isascii() else clean(value)
    if isinstance(value, dict):
        return {name: _cleaned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, StateModel):
        return value.model_dump(mode="json")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
