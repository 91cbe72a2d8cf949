"""The scripted planner: each attempt on the wire takes the next item."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentrunner.errors import TaskFailed, UsageError
from agentrunner.planners.base import PlannerRequest, PlannerUnavailable, Reply
from agentrunner.planners.script import ScriptPlanner
from agentrunner.protocol.message import MessageType
from tests.kit.fault_server import MakeSpec, VirtualClock

SCRIPT = """
- expect: plan_task
  reply: |
    type: plan_task
    acceptance_criteria: [{id: AC-1, description: It works.}]
  usage: {input_tokens: 12, output_tokens: 3}
- reply:
    type: next_action
    version: 1
    payload:
      decision: {action: mark_complete, reason: "NO problem: 日本語"}
      critical: true
      date: 2026-11-21
  finish_reason: length
  delay_sec: 0.5
- error: {status: 429, retry_after: 2.5}
- error: {status: 401}
- error: {kind: timeout}
- error: {kind: connection}
- expect: completion_assessment
  reply: ""
"""


@pytest.fixture
def script(make_spec: MakeSpec, clock: VirtualClock) -> ScriptPlanner:
    return ScriptPlanner(make_spec(kind="script", script_text=SCRIPT), {}, sleep=clock.sleep)


async def ask(script: ScriptPlanner, number: int, type_: MessageType = "next_action") -> Reply:
    return await script.complete(
        PlannerRequest(type=type_, messages=(), schema={}, facts={}, call_number=number)
    )


async def test_text_is_sent_as_it_is(script: ScriptPlanner) -> None:
    reply = await ask(script, 0, "plan_task")
    assert reply.text.startswith("type: plan_task\nacceptance_criteria:")
    assert (reply.input_tokens, reply.output_tokens, reply.finish_reason) == (12, 3, "stop")


async def test_a_mapping_is_sent_as_json(script: ScriptPlanner, clock: VirtualClock) -> None:
    reply = await ask(script, 1)
    assert json.loads(reply.text) == {
        "type": "next_action",
        "version": 1,
        "payload": {
            "decision": {"action": "mark_complete", "reason": "NO problem: 日本語"},
            "critical": True,
            "date": "2026-11-21",
        },
    }
    assert reply.finish_reason == "length"
    assert clock.slept == [0.5]


async def test_the_position_is_the_runs_not_the_clients(script: ScriptPlanner) -> None:
    first, again = await ask(script, 1), await ask(script, 1)
    assert first == again


@pytest.mark.parametrize(
    ("number", "retryable", "retry_after", "says"),
    [
        (2, True, 2.5, "The planner: status 429"),
        (3, False, None, "The planner: status 401"),
        (4, True, None, "no answer in time"),
        (5, True, None, "connection failed"),
    ],
)
async def test_errors(
    script: ScriptPlanner, number: int, retryable: bool, retry_after: float | None, says: str
) -> None:
    with pytest.raises(PlannerUnavailable, match=says) as caught:
        await ask(script, number)
    assert (caught.value.retryable, caught.value.retry_after) == (retryable, retry_after)


async def test_an_empty_reply_is_a_reply(script: ScriptPlanner) -> None:
    assert (await ask(script, 6, "completion_assessment")).text == ""


async def test_running_out(script: ScriptPlanner) -> None:
    with pytest.raises(TaskFailed) as caught:
        await ask(script, 7, "plan_task")
    assert not isinstance(caught.value, PlannerUnavailable)
    assert caught.value.code == "script-ended"
    assert "item 8" in str(caught.value) and "plan_task" in str(caught.value)


async def test_another_message_than_expected(script: ScriptPlanner) -> None:
    with pytest.raises(TaskFailed) as caught:
        await ask(script, 6, "next_action")
    assert caught.value.code == "script-mismatch"
    for word in ("Item 7", "completion_assessment", "next_action"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "the script"),
        ("- {}", "item 1.*exactly one of reply and error"),
        ("- {reply: x, error: {status: 500}}", "item 1.*exactly one"),
        ("- {reply: x}\n- {replay: x}", "item 2"),
        ("- {reply: x, expect: next_actoin}", "item 1.*expect"),
        ("- {reply: x, finish_reason: done}", "item 1.*finish_reason"),
        ("- {reply: x, delay_sec: -1}", "item 1.*delay_sec"),
        ("- {reply: x, usage: {input_tokens: -1}}", "item 1.*input_tokens"),
        ("- {error: {status: 200}}", "item 1.*status"),
        ("- {error: {kind: sad}}", "item 1.*kind"),
        ("- {reply: &a x}", "anchor"),
        ("- [", "not valid YAML"),
    ],
)
def test_a_script_that_is_none(make_spec: MakeSpec, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        ScriptPlanner(make_spec(kind="script", script_text=text), {})


def test_a_mistake_is_told_with_its_line(make_spec: MakeSpec) -> None:
    with pytest.raises(UsageError) as caught:
        ScriptPlanner(make_spec(kind="script", script_text="- reply: x\n  delay_sec: soon\n"), {})
    assert caught.value.path == "script:2" and caught.value.source_line == "delay_sec: soon"


def test_no_script_at_all(make_spec: MakeSpec) -> None:
    with pytest.raises(UsageError) as caught:
        ScriptPlanner(make_spec(kind="script"), {})
    assert caught.value.code == "script-missing"


def test_it_says_how_long_it_is(script: ScriptPlanner) -> None:
    assert script.describe() == "script with 7 replies (no model)"


def test_values(make_spec: MakeSpec) -> None:
    items: list[dict[str, Any]] = [{"reply": {"a": [1, "1", True, "true", None, "null"]}}]
    script = ScriptPlanner(make_spec(kind="script", script_text=json.dumps(items)), {})
    assert script.describe().startswith("script with 1")
