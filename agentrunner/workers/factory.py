"""From a kind's name to its adapter."""

from __future__ import annotations

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
