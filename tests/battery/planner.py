"""The planner of the battery: plans as the case says, orders each round, then says all is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.planners.base import PlannerRequest, Reply
from tests.battery.case import Case, case_named
from tests.kit.metas import reply, run_worker

KIND = "battery"
ROUND = "This is round {number} of the work."


class Planner:
    """Asks for completion whatever it is told, and calls every criterion passed."""

    kind = KIND

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str]) -> None:
        self._spec = spec
        self._case = case_named(spec.task_id)

    def describe(self) -> str:
        """For the header."""
        return KIND

    async def complete(self, request: PlannerRequest) -> Reply:
        """The plan, a round of work for each script of the case, and then only completion."""
        if request.type == "plan_task":
            return reply("plan_task", {"acceptance_criteria": _criteria(self._case, self._spec)})
        if request.type == "completion_assessment":
            return reply("completion_assessment", _all_passed(request.facts))
        done = request.facts["worker_runs_count"]
        if done < len(self._case.worker):
            prompt = ROUND.format(number=done + 1)
            return reply("next_action", run_worker(self._spec.runner.worker.kind, prompt))
        decision = {"action": "mark_complete", "reason": "Everything is done."}
        return reply("next_action", {"decision": decision})

    async def close(self) -> None:
        """Nothing is held."""


def _criteria(case: Case, spec: TaskSpec) -> list[dict[str, Any]]:
    if case.plan is not None:
        return case.plan
    if spec.criteria:
        return [{"id": c.id, "description": c.description} for c in spec.criteria]
    criterion: dict[str, Any] = {"id": "AC-1", "description": case.prd.strip().splitlines()[0]}
    if spec.task.test is not None:
        criterion["check"] = {"kind": "test"}
    return [criterion]


def _all_passed(facts: Mapping[str, Any]) -> dict[str, Any]:
    ids = [criterion["id"] for criterion in facts["acceptance_criteria"]]
    return {
        "summary": "All criteria are met and all tests pass.",
        "all_criteria_satisfied": True,
        "by_criterion": [{"id": name, "status": "passed", "comment": "sure"} for name in ids],
        "details": {"passed_criteria": ids, "remaining_risks": []},
    }
