"""A planner without a model: it takes the task's criteria and lets only executed checks decide.

The worker gets the requirements and what is red or missing, until nothing is. Criteria that no
check decides are left to a person: no further worker is started for them. Where nothing can be
executed it never claims completion: the run reaches its limit of rounds and then asks a person.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import UsageError
from agentrunner.planners.base import PlannerRequest, Reply
from agentrunner.prompts import render
from agentrunner.state.summary import FROM_PERSON, NOTICED, REFUSED

_NOTHING = ("", "nothing to execute")
_TEST = "the test command"
"""The summary's name for a check that is the whole test command."""
_HARD = ("checked", "tested", "accepted")

Facts = Mapping[str, Any]


class ChecklistPlanner:
    """Steers by the list of criteria and their checks."""

    kind = "checklist"
    by_code = True
    from_facts = True
    calls_model = False
    reads_prompts = False

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str]) -> None:
        self._spec = spec

    def describe(self) -> str:
        return "checklist (no model)"

    async def complete(self, request: PlannerRequest) -> Reply:
        """Return the answer that follows from the facts."""
        if request.type == "plan_task":
            payload = self._plan()
        elif request.type == "next_action":
            payload = self._next_action(request.facts)
        elif request.type == "completion_assessment":
            payload = self._assessment(request.facts)
        else:
            raise UsageError(
                "The planner checklist reads criteria and talks about no plan.",
                path="--planner",
                remedy="--planner openai-chat, codex-cli or claude-code; plan run takes checklist",
            )
        reply = {"type": request.type, "version": 1, "payload": payload}
        return Reply(text=json.dumps(reply, ensure_ascii=False), model="checklist", known="counted")

    async def close(self) -> None:
        """Nothing to release."""

    def _plan(self) -> dict[str, object]:
        """Return the task's criteria; if it has none, one for the test command or the title."""
        if self._spec.criteria:
            own = [{"id": c.id, "description": c.description} for c in self._spec.criteria]
            return {"acceptance_criteria": own}
        test = self._spec.task.test
        criterion: dict[str, object] = {
            "id": "AC-1",
            "description": self._phrase("criterion", test_command=test.command if test else ""),
        }
        if test is not None:
            criterion["check"] = {"kind": "test"}
        return {"acceptance_criteria": [criterion]}

    def _next_action(self, facts: Facts) -> dict[str, object]:
        wanting, can_execute = _wanting(facts), _can_execute(facts)
        if can_execute and not wanting:
            if facts.get("state") != "FIXING":
                return self._decision("mark_complete", "all_green")
            if undecided := _only_a_person_decides(facts):
                return self._decision("mark_complete", "undecided", ids=", ".join(undecided))
        if not _map(facts, "evidence").get("exists"):
            reason = "first"
        else:
            reason = "wanting" if wanting else "refused" if can_execute else "nothing"
        decision = self._decision("run_worker", reason, ids=", ".join(wanting))
        decision["worker_call"] = {
            "worker_type": self._spec.candidates[0][0],
            "mode": "resume" if _has_session(facts) else "exec",
            "prompt": self._worker_prompt(facts),
        }
        decision["used_patterns"] = ["implement_feature", "run_all_checks"]
        return decision

    def _decision(self, action: str, reason: str, **values: Any) -> dict[str, object]:
        return {"decision": {"action": action, "reason": self._phrase(reason, **values)}}

    def _phrase(self, which: str, **values: Any) -> str:
        known = {"title": self._spec.title, **values}
        return render("checklist_texts", self._spec.language, which=which, **known)

    def _worker_prompt(self, facts: Facts) -> str:
        return render(
            "checklist_prompt",
            self._spec.language,
            title=self._spec.title,
            prd=self._spec.prd_text.strip(),
            runs=facts.get("worker_runs_count", 0),
            last_error=_map(facts, "last_worker_result").get("error", ""),
            tests=_red_tests(facts),
            checks=[c for c in _checks(facts) if c.get("outcome") == "failed"],
            findings=[f for f in _map(facts, "evidence").get("findings", []) if f.get("blocks")],
            notes=[n for n in facts.get("notes", []) if not n.startswith(FROM_PERSON)],
            can_execute=_can_execute(facts),
        )

    def _assessment(self, facts: Facts) -> dict[str, object]:
        """Judge green criteria as passed and red ones as failed; skip what nothing executed."""
        criteria = facts.get("acceptance_criteria", [])
        executable = [criterion for criterion in criteria if _is_executable(criterion, facts)]
        green = [criterion["id"] for criterion in executable if _is_green(criterion, facts)]
        verdicts = [
            {
                "id": criterion["id"],
                "status": "passed" if criterion["id"] in green else "failed",
                "comment": str(criterion.get("proof") or criterion["check"]),
            }
            for criterion in executable
        ]
        critical = [criterion["id"] for criterion in criteria if criterion.get("critical")]
        by_suite = not executable and _map(facts, "test_result").get("green")
        which = "suite" if by_suite else "assessed"
        return {
            "summary": self._phrase(which, green=len(green), criteria=len(criteria)),
            "all_criteria_satisfied": bool(green) and set(critical) <= set(green),
            "by_criterion": verdicts,
            "details": {"passed_criteria": green, "remaining_risks": []},
        }


def _map(facts: Facts, key: str) -> Facts:
    value = facts.get(key)
    return value if isinstance(value, Mapping) else {}


def _checks(facts: Facts) -> list[Facts]:
    return list(_map(facts, "evidence").get("checks", []))


def _has_session(facts: Facts) -> bool:
    return any(worker.get("session_available") for worker in facts.get("workers", []))


def _outcomes(criterion: Facts, facts: Facts) -> list[str]:
    """Outcomes of the criterion's own checks on the present tree."""
    return [c["outcome"] for c in _checks(facts) if c["criterion_id"] == criterion["id"]]


def _is_executable(criterion: Facts, facts: Facts) -> bool:
    """Whether code decides the criterion. A check that turned out to run nothing does not."""
    if criterion.get("check") == _TEST:
        return bool(_map(facts, "task").get("test_command"))
    described = criterion.get("check") not in (None, *_NOTHING)
    return described and "not_run" not in _outcomes(criterion, facts)


def _can_execute(facts: Facts) -> bool:
    """Whether code can decide anything at all by running or reading it."""
    return bool(_map(facts, "task").get("test_command")) or any(
        _is_executable(criterion, facts) for criterion in facts.get("acceptance_criteria", [])
    )


def _red_tests(facts: Facts) -> list[Facts]:
    """Return the run of the test command as a list if it was red, else []."""
    run = _map(facts, "test_result")
    return [run] if run.get("executed") and not run.get("green") else []


def _is_green(criterion: Facts, facts: Facts) -> bool:
    """Whether the criterion's own check passed on the present tree."""
    if outcomes := _outcomes(criterion, facts):
        return all(outcome == "passed" for outcome in outcomes)
    if criterion.get("check") == _TEST:
        return bool(_map(facts, "test_result").get("green"))
    return criterion.get("status") == "passed" and criterion.get("evidence") in _HARD


def _unmet(facts: Facts) -> list[Facts]:
    """Critical criteria not yet shown to be met."""
    criteria = facts.get("acceptance_criteria", [])
    return [c for c in criteria if c.get("critical") and not _is_green(c, facts)]


def _only_a_person_decides(facts: Facts) -> list[str]:
    """Return ids of criteria that no check decides, if nothing else made completion be refused.

    A worker cannot change that; a worker is still needed for what a person said meanwhile.
    """
    evidence = _map(facts, "evidence")
    unproven = not evidence.get("proof") and facts.get("completion") != "judged"
    findings = any(finding.get("blocks") for finding in evidence.get("findings", []))
    steered = any(not note.startswith((REFUSED, NOTICED)) for note in facts.get("notes", []))
    if unproven or findings or steered or _red_tests(facts):
        return []
    return [str(c["id"]) for c in _unmet(facts) if not _is_executable(c, facts)]


def _wanting(facts: Facts) -> list[str]:
    """Ids of critical criteria that are executable but not green; `test` for the test command."""
    wanting = [str(c["id"]) for c in _unmet(facts) if _is_executable(c, facts)]
    # A failure with only the old tests is a finding: reported once, then a question for a person.
    if _map(facts, "task").get("test_command") and not _map(facts, "test_result").get("green"):
        wanting.append("test")
    return wanting
