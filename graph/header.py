"""What is printed before anything starts: who, where, with what, how long at most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentrunner.graph.workshop import Crew
from agentrunner.survey import read_branch
from agentrunner.task.spec import TaskSpec
from agentrunner.workers.make import network_of


def header_of(spec: TaskSpec, crew: Crew, *, box: str, max_loops: int) -> dict[str, Any]:
    """The `header` of the first event, and of --dry-run; `max_loops` are the attempt's."""
    worker = spec.runner.worker
    version = f" {crew.probe.version}" if crew.probe.version else ""
    model = f", {worker.model}" if worker.model else ""
    test = spec.task.test
    return {
        "repo": spec.repo,
        "branch": read_branch(Path(spec.repo)),
        "planner": crew.meta.describe() if crew.meta else f"{spec.runner.meta.kind}, not ready",
        "worker": f"{worker.kind}{version}{model}",
        "box": box,
        "network": network_of(spec, crew.worker).policy,
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
