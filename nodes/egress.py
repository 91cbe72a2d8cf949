"""What may leave the box, by the task's word and the worker's need."""

from __future__ import annotations

from agentrunner.task.spec import NetworkSpec, TaskSpec
from agentrunner.workers.base import Worker


def network_of(spec: TaskSpec, worker: Worker) -> NetworkSpec:
    """The policy in force: the task's, else no more than the worker's model asks for."""
    written = spec.runner.sandbox.network
    return written or NetworkSpec(policy="allowlist" if worker.needs_model else "none")
