"""Who may work in a run: a candidate of the task, its adapter, and its installed binary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from agentrunner.config.agents import WorkerSpec
from agentrunner.config.sandbox import NetworkSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.registry import WORKERS, canonical_worker_type, make
from agentrunner.workers.base import Probe, Worker
from agentrunner.workers.mock import MockWorker


def make_worker(spec: TaskSpec | WorkerSpec) -> Worker:
    """Return the adapter for this task's worker.

    Raises UsageError for an unknown kind or an unusable setting.
    """
    repo = Path(spec.repo) if isinstance(spec, TaskSpec) else None
    written = spec.runner.worker if isinstance(spec, TaskSpec) else spec
    kind = canonical_worker_type(written.kind)
    return cast("Worker", make(WORKERS, kind, "Worker kind", written, repo))


@dataclass(frozen=True)
class Member:
    """One candidate."""

    name: str
    """Distinguishes it from the others, also for the planner."""
    spec: TaskSpec
    """The task, with this candidate as its `runner.worker`."""
    worker: Worker
    probe: Probe

    @cached_property
    def network(self) -> NetworkSpec:
        """What it may reach: what the task says, or else no more than its model needs."""
        written = self.spec.runner.sandbox.network
        return written or NetworkSpec(policy="allowlist" if self.worker.needs_model else "none")

    @cached_property
    def has_gateway(self) -> bool:
        """Whether its model calls go through the gateway, so that it needs no real key."""
        isolates = self.spec.runner.sandbox.isolates
        return bool(self.worker.wire) and isolates and self.network.policy != "none"

    @property
    def subscribed(self) -> bool:
        """Whether its calls are part of a subscription, so that they cost nothing extra."""
        return self.spec.runner.worker.auth == "login"

    @property
    def is_mock(self) -> bool:
        """Whether it only tries the program out: it takes an order for any worker, and does
        nothing."""
        return isinstance(self.worker, MockWorker)

    @property
    def can_call_model(self) -> bool:
        """Whether it may reach a model at all: a command in a sandbox without a network cannot."""
        open_ = not self.spec.runner.sandbox.isolates or self.network.policy != "none"
        return self.worker.needs_model or (open_ and not self.is_mock)

    @property
    def may_cost(self) -> bool:
        """Whether a run of it may cost money."""
        return self.can_call_model and not self.subscribed


def make_members(spec: TaskSpec) -> tuple[Member, ...]:
    """Return the candidates of a task by preference; only the forced one if the task names one.

    Raises UsageError for an unknown kind or an unusable setting.
    """
    force = spec.runner.profiles.worker.force
    members = []
    for name, own in spec.candidates:
        if not force or name == force:
            worker = make_worker(own)
            members.append(Member(name, own, worker, worker.probe()))
    return tuple(members)
