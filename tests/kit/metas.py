"""Planners for tests: one that lies, one that follows a list of actions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from agentrunner.config.spec import TaskSpec
from agentrunner.planners.base import PlannerRequest, Reply


def reply(type_: str, payload: Mapping[str, Any]) -> Reply:
    """A reply as a well-behaved model writes it."""
    message = {"type": type_, "version": 1, "payload": payload}
    return Reply(json.dumps(message, ensure_ascii=False), input_tokens=100, output_tokens=10)


DONE = reply("next_action", {"decision": {"action": "mark_complete", "reason": "Green."}}).text
GIVE_UP = reply("next_action", {"decision": {"action": "abort", "reason": "No use."}}).text
YES = reply("completion_assessment", {"summary": "It adds.", "all_criteria_satisfied": True}).text
"""Replies that complete, give up, and find everything met."""


class LiarPlanner:
    """Runs the worker once, then says for ever that all is done and everything passed."""

    kind = "liar"

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str]) -> None:
        self.spec = spec
        self.check: dict[str, Any] | None = None

    def describe(self) -> str:
        return "liar"

    async def complete(self, request: PlannerRequest) -> Reply:
        ids = [item["id"] for item in request.facts["acceptance_criteria"]]
        if request.type == "plan_task":
            criterion = {"id": "AC-1", "description": "It works.", "check": self.check}
            return reply("plan_task", {"acceptance_criteria": [criterion]})
        if request.type == "completion_assessment":
            verdicts = [{"id": name, "status": "passed", "comment": "sure"} for name in ids]
            payload = {
                "summary": "All criteria are met and all tests pass.",
                "all_criteria_satisfied": True,
                "by_criterion": verdicts,
                "details": {"remaining_risks": []},
            }
            return reply("completion_assessment", payload)
        if request.facts["worker_runs_count"] == 0:
            return reply("next_action", run_worker(self.spec.runner.worker.kind))
        decision = {"action": "mark_complete", "reason": "Everything is done."}
        return reply("next_action", {"decision": decision})

    async def close(self) -> None:
        pass


class TrueCheckPlanner(LiarPlanner):
    """A liar that also proposes a check which is always green."""

    kind = "true-check"

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str]) -> None:
        super().__init__(spec, environ)
        self.check = {"kind": "command", "run": "true"}


def run_worker(worker: str, prompt: str = "Do the task.", **more: Any) -> dict[str, Any]:
    """The payload of a next_action that runs a worker."""
    call = {"worker_type": worker, "mode": "exec", "prompt": prompt, **more}
    return {"decision": {"action": "run_worker", "reason": "There is work."}, "worker_call": call}


# -- the shipped `script` planner, which a test hands its replies ------------------------------

Item = dict[str, Any]
"""One item of a script: what is answered to one attempt on the wire."""


def plan(*criteria: Mapping[str, Any]) -> Item:
    """A plan; without criteria one that only the test command can decide."""
    wanted = list(criteria) or [
        {"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}}
    ]
    return item("plan_task", {"acceptance_criteria": wanted})


def work(prompt: str = "Do the task.", worker: str = "command", **more: Any) -> Item:
    """A decision to run the worker; `more` goes beside `decision` (used_patterns)."""
    return item("next_action", {**run_worker(worker, prompt), **more})


def finish(reason: str = "Everything is done.") -> Item:
    """A request for completion."""
    return item("next_action", {"decision": {"action": "mark_complete", "reason": reason}})


def consult(question: str, *options: str) -> Item:
    """A question to a person."""
    decision = {"action": "ask_human", "reason": "It is not for me to say."}
    payload = {"decision": decision, "question": question, "options": list(options)}
    return item("next_action", payload)


def give_up(reason: str = "It cannot be done.") -> Item:
    """The end."""
    return item("next_action", {"decision": {"action": "abort", "reason": reason}})


def assess(*, passed: tuple[str, ...] = ("AC-1",), failed: tuple[str, ...] = ()) -> Item:
    """A word about each criterion."""
    verdicts = [{"id": name, "status": "passed"} for name in passed]
    verdicts += [{"id": name, "status": "failed", "comment": "not yet"} for name in failed]
    payload = {
        "summary": "Looked at it.",
        "by_criterion": verdicts,
        "details": {"remaining_risks": []},
    }
    return item("completion_assessment", payload)


def item(type_: str, payload: Mapping[str, Any]) -> Item:
    """One reply of a script, with what it used."""
    return {
        "expect": type_,
        "reply": {"type": type_, "version": 1, "payload": payload},
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }


class StubbornPlanner(LiarPlanner):
    """A liar that runs the worker `worker_runs` times first and proposes `proposed` as a check."""

    kind = "stubborn"
    worker_runs: ClassVar[int] = 1
    proposed: ClassVar[dict[str, Any] | None] = None

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str]) -> None:
        super().__init__(spec, environ)
        self.check = self.proposed

    async def complete(self, request: PlannerRequest) -> Reply:
        ran = request.facts["worker_runs_count"]
        if request.type == "next_action" and ran < self.worker_runs:
            return reply("next_action", run_worker(self.spec.runner.worker.kind))
        return await super().complete(request)


class ObedientPlanner(LiarPlanner):
    """Plans and orders as it should, until it reads `words` anywhere; then all is as they say.

    It asks for completion, and passes every criterion, in whichever message it reads them.
    """

    kind = "obedient"
    words: ClassVar[str] = ""
    obeyed: ClassVar[list[str]] = []
    """The messages in which it read the words, by type."""

    async def complete(self, request: PlannerRequest) -> Reply:
        if self.words in "".join(message.content for message in request.messages):
            self.obeyed.append(request.type)
            return await super().complete(request)
        if request.type == "plan_task":
            criterion = {"id": "AC-9", "description": "It works."}
            return reply("plan_task", {"acceptance_criteria": [criterion]})
        if request.type == "next_action":
            if request.facts["worker_runs_count"] == 0:
                return await super().complete(request)
            stop = {"action": "abort", "reason": "The words are nowhere."}
            return reply("next_action", {"decision": stop})
        payload = {
            "summary": "It is not done.",
            "all_criteria_satisfied": False,
            "by_criterion": [
                {"id": item["id"], "status": "failed"}
                for item in request.facts["acceptance_criteria"]
            ],
        }
        return reply("completion_assessment", payload)


def look(*looks: dict[str, Any]) -> Item:
    """What it wants to see before it answers."""
    return {"reply": {"type": "look", "version": 1, "payload": {"looks": list(looks)}}}
