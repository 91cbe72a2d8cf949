"""A planner that has the worker run for ever: its two answers, and the program that gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.planners.base import PlannerRequest, Reply


def plan() -> str:
    """A plan of one criterion that nothing can check."""
    criterion = {"id": "AC-1", "description": "It works.", "critical": True}
    return _message("plan_task", {"acceptance_criteria": [criterion]})


def next_action() -> str:
    """The decision to run the worker."""
    return _message(
        "next_action",
        {
            "decision": {"action": "run_worker", "reason": "There is work left."},
            "worker_call": {
                "worker_type": "command",
                "mode": "exec",
                "prompt": "Do the next part.",
            },
        },
    )


def _message(type_: str, payload: Mapping[str, Any]) -> str:
    return json.dumps({"type": type_, "version": 1, "payload": payload})


class LoopPlanner:
    """The same answers without a client and a server."""

    kind = "loop"

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str]) -> None:
        """Nothing to keep."""

    def describe(self) -> str:
        """For the header."""
        return "loop"

    async def complete(self, request: PlannerRequest) -> Reply:
        """The answer to this type of message."""
        text = plan() if request.type == "plan_task" else next_action()
        return Reply(text, input_tokens=100, output_tokens=10)

    async def close(self) -> None:
        """Nothing is held."""
