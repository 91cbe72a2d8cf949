"""A planner in one file: it orders one worker run after the other until the tests are green.

runner:
  meta: { kind: until-green }
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import UsageError
from agentrunner.planners.base import PlannerRequest, Reply


class UntilGreen:
    """A program in place of a model. It spends nothing."""

    kind = "until-green"
    by_code = True  # asking again gives the same answer, so nobody waits for a better one
    calls_model = False
    reads_prompts = False  # `request.facts` is enough

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str]) -> None:
        if spec.task.test is None:
            raise UsageError("The planner `until-green` needs a test command.", path="--test")
        self._spec = spec

    def describe(self) -> str:
        """For the header, one line."""
        return "until-green (no model)"

    async def complete(self, request: PlannerRequest) -> Reply:
        """One answer; `request.schema` is the JSON Schema that it has to satisfy."""
        answers = {
            "plan_task": self._criteria,
            "next_action": self._next_action,
            "completion_assessment": self._assessment,
        }
        if request.type not in answers:
            raise UsageError("The planner `until-green` makes no plans.", path="--planner")
        payload = answers[request.type](request.facts)
        reply = {"type": request.type, "version": 1, "payload": payload}
        return Reply(text=json.dumps(reply), model=self.kind, known="counted")

    async def close(self) -> None:
        """Nothing is held open."""

    def _criteria(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        green = {"id": "AC-1", "description": "The tests pass.", "check": {"kind": "test"}}
        own = [{"id": one.id, "description": one.description} for one in self._spec.criteria]
        return {"acceptance_criteria": own or [green]}

    def _next_action(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        tests = facts.get("test_result") or {}
        if facts.get("worker_runs_count") and tests.get("green"):
            return {"decision": {"action": "mark_complete", "reason": "The tests are green."}}
        order = {
            "worker_type": self._spec.runner.worker.kind,
            "mode": "exec",
            "prompt": f"{self._spec.title}\n\n{self._spec.prd_text}",
        }
        decision = {"action": "run_worker", "reason": "The tests are not green."}
        return {"decision": decision, "worker_call": order}

    def _assessment(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Its word is a claim. Tests and checks decide."""
        green = bool((facts.get("test_result") or {}).get("green"))
        status = "passed" if green else "failed"
        ids = [one["id"] for one in facts.get("acceptance_criteria", [])]
        return {
            "summary": "The tests are green." if green else "The tests are red.",
            "all_criteria_satisfied": green,
            "by_criterion": [{"id": one, "status": status, "comment": "tests"} for one in ids],
        }
