"""The mock planner, word for word, and how a planner is chosen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentrunner.errors import InfraError, UsageError
from agentrunner.planners.base import PlannerRequest
from agentrunner.planners.factory import make_planner, reply_format
from agentrunner.planners.mock import MockPlanner
from agentrunner.protocol import parse_reply
from agentrunner.protocol.message import MessageType
from tests.kit.fault_server import MakeSpec


async def answer(client: MockPlanner, type_: MessageType, **facts: Any) -> Any:
    request = PlannerRequest(type=type_, messages=(), schema={}, facts=facts, call_number=0)
    reply = await client.complete(request)
    parse_reply(reply.text, type_, finish_reason=reply.finish_reason)
    return json.loads(reply.text)


async def test_word_for_word(make_spec: MakeSpec) -> None:
    mock = MockPlanner(make_spec(kind="mock", model="ignored"), {})
    assert await answer(mock, "plan_task") == {
        "type": "plan_task",
        "version": 1,
        "payload": {
            "task_id": "TASK-MOCK",
            "acceptance_criteria": [
                {"id": "AC-1", "description": "Mock AC 1", "type": "mock", "critical": True}
            ],
        },
    }
    assert (await answer(mock, "next_action", worker_runs_count=0))["payload"] == {
        "decision": {"action": "run_worker", "reason": "Mock run"},
        "worker_call": {
            "worker_type": "codex-cli",
            "mode": "exec",
            "prompt": "echo 'Hello from Mock Worker'",
        },
    }
    for runs in (1, 7):
        assert (await answer(mock, "next_action", worker_runs_count=runs))["payload"] == {
            "decision": {"action": "mark_complete", "reason": "Mock complete"}
        }
    criteria = [{"id": "AC-1"}, {"id": "B"}]
    assessed = await answer(mock, "completion_assessment", acceptance_criteria=criteria)
    assert assessed["payload"] == {
        "summary": "Mock assessment",
        "all_criteria_satisfied": True,
        "by_criterion": [{"id": "AC-1", "status": "passed"}, {"id": "B", "status": "passed"}],
        "details": {"passed_criteria": ["AC-1", "B"], "remaining_risks": []},
    }


async def test_the_worker_is_the_configured_one(make_spec: MakeSpec) -> None:
    mock = MockPlanner(make_spec(kind="mock", worker="command"), {})
    payload = (await answer(mock, "next_action", worker_runs_count=0))["payload"]
    assert payload["worker_call"]["worker_type"] == "command"


@pytest.mark.parametrize(
    ("kind", "says"),
    [("mock", "mock (no model)"), ("checklist", "checklist (no model)")],
)
def test_kinds_that_need_nothing(make_spec: MakeSpec, kind: str, says: str) -> None:
    client = make_planner(make_spec(kind=kind), {})
    assert client.kind == kind and client.describe() == says


def test_kinds_that_need_something(make_spec: MakeSpec) -> None:
    with pytest.raises(InfraError, match="OPENAI_API_KEY"):
        make_planner(make_spec(), {})
    assert make_planner(make_spec(), {"OPENAI_API_KEY": "k"}).kind == "openai-chat"
    assert make_planner(make_spec(kind="script", script_text="[]"), {}).kind == "script"


def test_an_unknown_kind_names_the_known(make_spec: MakeSpec) -> None:
    with pytest.raises(
        UsageError, match="openai-chat, chat, claude-code, codex-cli, mock"
    ) as caught:
        make_planner(make_spec(kind="checkist"), {})
    assert caught.value.remedy == "did you mean checklist?"


def test_json_unless_said_otherwise(make_spec: MakeSpec) -> None:
    formats = [reply_format(make_spec(format=name)) for name in ("auto", "json", "yaml")]
    assert formats == ["json", "json", "yaml"]
