"""Who may work in a run: a candidate of the task, its adapter, and its installed binary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from agentrunner.config.agents import WorkerSpec
from agentrunner.config.sandbox import NetworkSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.registry import WORKERS, canonical_worker_type, load
from agentrunner.workers.base import Probe, Worker


def make_worker(spec: TaskSpec | WorkerSpec) -> Worker:
    """Return the adapter for this task's worker.

    Raises UsageError for an unknown kind or an unusable setting.
    """
    if isinstance(spec, TaskSpec):
        return _make(spec.runner.worker, Path(spec.repo))
    return _make(spec, None)


def probe(kind: str) -> Probe:
    """Return what is installed for a kind with default settings; raises UsageError if unknown.

    Kind `command` has no defaults: it is probed through `make_worker(spec).probe()`.
    """
    return make_worker(WorkerSpec(kind=kind)).probe()


def _make(spec: WorkerSpec, repo: Path | None) -> Worker:
    adapter = load(WORKERS, canonical_worker_type(spec.kind), "Worker kind")
    return cast("Worker", adapter(spec, repo))


def network_of(spec: TaskSpec, worker: Worker) -> NetworkSpec:
    """Return the policy in force: the task's, or else no more than the worker's model needs."""
    written = spec.runner.sandbox.network
    return written or NetworkSpec(policy="allowlist" if worker.needs_model else "none")


def has_gateway(spec: TaskSpec, worker: Worker) -> bool:
    """Whether the worker's model calls go through the gateway, so that it needs no real key."""
    isolates = spec.runner.sandbox.isolates
    return bool(worker.wire) and isolates and network_of(spec, worker).policy != "none"


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
        return network_of(self.spec, self.worker)

    @cached_property
    def has_gateway(self) -> bool:
        """Whether its model calls go through the gateway, so that it needs no real key."""
        return has_gateway(self.spec, self.worker)

    @property
    def subscribed(self) -> bool:
        """Whether its calls are part of a subscription, so that they cost nothing extra."""
        return self.spec.runner.worker.auth == "login"


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
