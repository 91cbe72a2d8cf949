"""What is printed before anything starts: who, where, with what, how long at most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentrunner.graph.workshop import Crew
from agentrunner.nodes.credentials import credential
from agentrunner.nodes.egress import has_gateway
from agentrunner.survey import read_branch
from agentrunner.task.spec import TaskSpec
from agentrunner.workers.base import Worker
from agentrunner.workers.make import network_of


def header_of(
    spec: TaskSpec, crew: Crew, environ: Mapping[str, str], *, box: str, max_loops: int
) -> dict[str, Any]:
    """The `header` of the first event, and of --dry-run; `max_loops` are the attempt's."""
    worker = spec.runner.worker
    version = f" {crew.probe.version}" if crew.probe.version else ""
    model = f", {worker.model}" if worker.model else ""
    test = spec.task.test
    return {
        "repo": spec.repo,
        "branch": read_branch(Path(spec.repo)),
        "planner": crew.meta.describe() if crew.meta else f"{spec.runner.meta.kind}, not ready",
        "worker": f"{worker.kind}{version}{model}{_model_host(spec, crew.worker)}",
        "key": _key(spec, crew.worker, environ),
        "box": box,
        "network": network_of(spec, crew.worker).policy,
        "reach": reach_of(spec, crew.worker),
        "tests": test.command if test else None,
        "tests_where": Path(spec.task_file.path).name
        if spec.task_file and spec.task_file.path
        else None,
        "limits": {
            "max_loops": max_loops,
            "run_time_sec": worker.max_run_time_sec,
            "wall_sec": spec.runner.budget.wall_sec,
        },
        "completion": spec.completion,
        "policies": [source.model_dump() for source in spec.policies],
        "notices": crew.notices,
    }


def reach_of(spec: TaskSpec, worker: Worker) -> str:
    """What a worker reaches from its box."""
    network = network_of(spec, worker)
    if spec.runner.sandbox.kind == "none" or network.policy == "full":
        return "all that this machine reaches"
    if network.policy == "none":
        return "nothing"
    hosts = ["its model"] * bool(worker.wire) + network.allow
    return ", ".join(hosts) + " alone" * (len(hosts) == 1) if hosts else "nothing"


def reach_of_all(spec: TaskSpec, worker: Worker) -> dict[str, str]:
    """What each kind of command reaches, by its name."""
    reach = {"worker": reach_of(spec, worker)}
    for name, section in (("set-up", spec.task.setup), ("tests", spec.task.test)):
        if section is not None:
            open_ = spec.runner.sandbox.kind == "none"
            hosts = ", ".join(section.network) or "nothing"
            reach[name] = "all that this machine reaches" if open_ else hosts
    return reach


def _model_host(spec: TaskSpec, worker: Worker) -> str:
    """Where the worker's key is shown; a login knows its place itself."""
    if not worker.provider_url or spec.runner.worker.auth == "login":
        return ""
    return f" at {urlsplit(worker.provider_url).netloc.rpartition('@')[2]}"


def _key(spec: TaskSpec, worker: Worker, environ: Mapping[str, str]) -> str:
    """What of the worker's secrets stays out of the box; "" where nothing does."""
    if not has_gateway(spec, worker, spec.runner.sandbox.kind):
        return ""
    if spec.runner.worker.auth == "login":
        return f"the {worker.kind} login's token stays out of the box"
    name = credential(spec, worker, environ)[0]
    return f"{name} stays out of the box" if name else ""
