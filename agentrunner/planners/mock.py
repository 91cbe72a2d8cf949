"""A planner with fixed answers: no key, no model, no error, two decisions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import UsageError
from agentrunner.planners.base import PlannerRequest, Reply


def _task(temp_id: str, title: str, *dependencies: str) -> dict[str, object]:
    return {
        "id": temp_id,
        "title": title,
        "description": f"What {title} is about",
        "acceptance_criteria": [f"{title} is done"],
        "dependencies": list(dependencies),
        "wbs_level": 3,
        "estimated_effort": "small",
    }


_CRITERION = {"id": "AC-1", "description": "Mock AC 1", "type": "mock", "critical": True}
_TASKS = [_task("temp-1", "Mock task 1"), _task("temp-2", "Mock task 2", "temp-1")]
_CREATE = {"op": "create", "temp_id": "temp-1", "title": "Another mock task"}
_ANSWERS: Mapping[str, dict[str, object]] = {
    "plan_task": {"task_id": "TASK-MOCK", "acceptance_criteria": [_CRITERION]},
    "decompose": {
        "understanding": "Mock understanding",
        "phases": [{"name": "Mock phase", "milestone": "mock", "tasks": _TASKS}],
    },
    "plan_patch": {"understanding": "Mock understanding", "operations": [_CREATE]},
}
"""The answers that depend on nothing, by type of message."""


class MockPlanner:
    """One criterion, one worker run, then done."""

    kind = "mock"
    by_code = True
    calls_model = False
    reads_prompts = False

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str]) -> None:
        self._worker = spec.candidates[0][0]

    def describe(self) -> str:
        return "mock (no model)"

    async def complete(self, request: PlannerRequest) -> Reply:
        """Return the fixed answer to this type of message."""
        reply = {"type": request.type, "version": 1, "payload": self._payload(request)}
        return Reply(text=json.dumps(reply, ensure_ascii=False), model="mock", known="counted")

    async def close(self) -> None:
        """Nothing to release."""

    def _payload(self, request: PlannerRequest) -> dict[str, object]:
        if request.type == "next_action":
            return self._next_action(int(request.facts.get("worker_runs_count", 0)))
        if request.type == "completion_assessment":
            return _assessment(request.facts)
        if request.type in _ANSWERS:
            return _ANSWERS[request.type]
        raise UsageError(f'the mock planner has no answer to "{request.type}"')

    def _next_action(self, worker_runs: int) -> dict[str, object]:
        if worker_runs:
            return {"decision": {"action": "mark_complete", "reason": "Mock complete"}}
        return {
            "decision": {"action": "run_worker", "reason": "Mock run"},
            "worker_call": {
                "worker_type": self._worker,
                "mode": "exec",
                "prompt": "echo 'Hello from Mock Worker'",
            },
        }


def _assessment(facts: Mapping[str, Any]) -> dict[str, object]:
    ids = [criterion["id"] for criterion in facts.get("acceptance_criteria", [])]
    return {
        "summary": "Mock assessment",
        "all_criteria_satisfied": True,
        "by_criterion": [{"id": id_, "status": "passed"} for id_ in ids],
        "details": {"passed_criteria": ids, "remaining_risks": []},
    }
