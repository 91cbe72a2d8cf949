"""Who may work in a run: a candidate of the task, its adapter, and its installed binary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from agentrunner.config.sandbox import NetworkSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.workers.base import Probe, Worker
from agentrunner.workers.factory import has_gateway, make_worker, network_of
from agentrunner.workers.mock import MockWorker


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
