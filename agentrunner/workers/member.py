"""Who may work in a run: a candidate of the task, its adapter, and what is installed of it."""

from __future__ import annotations

from dataclasses import dataclass

from agentrunner.config.spec import TaskSpec
from agentrunner.workers.base import Probe, Worker
from agentrunner.workers.make import make_worker


@dataclass(frozen=True)
class Member:
    """One candidate."""

    name: str
    """Tells it apart from the others, also in what the planner is told."""
    spec: TaskSpec
    """The task, with this candidate as its `runner.worker`."""
    worker: Worker
    probe: Probe


def make_members(spec: TaskSpec) -> tuple[Member, ...]:
    """The candidates of a task in order of preference; the forced one alone where one is named.

    Raises UsageError for an unknown kind or a setting that cannot work.
    """
    force = spec.runner.profiles.worker.force
    members = []
    for name, own in spec.candidates:
        if not force or name == force:
            worker = make_worker(own)
            members.append(Member(name, own, worker, worker.probe()))
    return tuple(members)
