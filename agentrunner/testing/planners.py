"""What every planner promises: an answer is text with honest figures, or a named failure.

    from agentrunner.testing.planners import check_planner

    results = await check_planner(lambda: MyPlanner(spec, os.environ))

It asks one question for each type of message, one that may be answered by a look at the repository,
and one whose schema is made for a task: seven calls, which a planner with a model behind it is paid
for. A planner that does not take part in plans refuses their two types with a UsageError.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

from agentrunner.errors import AgentRunnerError
from agentrunner.planners.base import (
    ChatMessage,
    PlannerClient,
    PlannerRequest,
    PlannerUnavailable,
    Reply,
)
from agentrunner.protocol import (
    Choices,
    CompletionAssessment,
    Message,
    message_schema,
    parse_reply,
    take_reply,
)
from agentrunner.protocol.message import MessageType
from agentrunner.testing.sandboxes.workbench import CheckResult, expect, outcome_of

Make = Callable[[], PlannerClient]
Check = Callable[[PlannerClient], Awaitable[None]]
TASK = "The task: calc.add(a, b) has to return the sum; it returns the difference."
QUESTIONS: Mapping[MessageType, str] = {
    "plan_task": f"{TASK} Which acceptance criteria does it have?",
    "next_action": f"{TASK} A worker of kind coder can be ordered; none was. What is next?",
    "completion_assessment": f"{TASK} The tests are green. Are AC-1 and AC-2 met?",
    "decompose": "The goal: a calculator that adds and multiplies. Split it into phases and tasks.",
    "plan_patch": "The plan has TASK-0001, add. A task for multiplying is wanted. Change the plan.",
}
FACTS: Mapping[str, Any] = {
    "task": {"title": "Add two numbers", "test_command": "python3 -m unittest"},
    "state": "VALIDATING",
    "acceptance_criteria": [
        {"id": "AC-1", "description": "add returns the sum", "critical": True},
        {"id": "AC-2", "description": "the tests pass", "critical": True},
    ],
    "test_result": {"green": True, "failing": []},
    "workers": [{"name": "coder", "session_available": False}],
    "worker_runs_count": 1,
}
"""The same as data, for planners that are programs."""
CHOICES = Choices(criteria=("AC-1", "AC-2"))


async def check_planner(make: Make) -> list[CheckResult]:
    """Try the promises of `planners.base.PlannerClient` on clients that `make` makes."""
    results = list[CheckResult]()
    for check in CHECKS:
        client = make()
        try:
            with outcome_of(check, results):
                await check(client)
        finally:
            await client.close()
    return results


async def it_says_what_it_is(client: PlannerClient) -> None:
    """It has a kind, and a line for the header that spends nothing."""
    expect(isinstance(client.kind, str) and client.kind, "kind is a name")
    expect("\n" not in client.describe(), "describe is one line")


def it_answers(type_: MessageType) -> Check:
    """Return the check of one type of message; its name is `it_answers_` and the type."""

    async def check(client: PlannerClient) -> None:
        """An answer is a Reply that can be read; a failure is one of ours."""
        await _ask(client, type_, message_schema(type_))

    check.__name__ = f"it_answers_{type_}"
    return check


async def a_look_is_one_that_can_be_answered(client: PlannerClient) -> None:
    """Where it may look at the repository, it answers or asks for looks that can be read."""
    await _ask(client, "next_action", message_schema("next_action", looks=True), looks=True)


async def it_keeps_to_the_schema_of_a_task(client: PlannerClient) -> None:
    """Where a schema lists the criteria of the task, an answer judges no others."""
    schema = message_schema("completion_assessment", CHOICES)
    message = await _ask(client, "completion_assessment", schema)
    if message is not None:
        assert isinstance(message.payload, CompletionAssessment)
        named = {*message.payload.passed_ids(), *message.payload.failed_ids()}
        expect(named <= set(CHOICES.criteria), "a judgement is about the criteria of the task")


async def _ask(
    client: PlannerClient, type_: MessageType, schema: Mapping[str, Any], *, looks: bool = False
) -> Message | None:
    """Return the answer to the question of this type; None where the planner says why not."""
    try:
        reply = await client.complete(_request(type_, schema))
    except PlannerUnavailable as error:
        expect(error.message, "a failure says what it is")
        return None
    except AgentRunnerError as error:
        expect(error.exit_code in (2, 5), "what the caller or the machine lacks has a class")
        return None
    expect(isinstance(reply, Reply), "complete returns a Reply")
    expect(reply.finish_reason in ("stop", "length", "content_filter", "refusal"), "it ended so")
    expect(min(reply.input_tokens, reply.output_tokens, reply.cached_tokens) >= 0, "counts count")
    expect(reply.cached_tokens <= reply.input_tokens, "what was cached is part of what was read")
    if looks:
        return take_reply(reply.text, type_, finish_reason=reply.finish_reason, looks=True)
    return parse_reply(reply.text, type_, finish_reason=reply.finish_reason)


async def closing_twice_is_once(client: PlannerClient) -> None:
    """Close is idempotent."""
    await client.close()
    await client.close()


CHECKS: tuple[Check, ...] = (
    it_says_what_it_is,
    *(it_answers(type_) for type_ in get_args(MessageType)),
    a_look_is_one_that_can_be_answered,
    it_keeps_to_the_schema_of_a_task,
    closing_twice_is_once,
)


def _request(type_: MessageType, schema: Mapping[str, Any]) -> PlannerRequest:
    rules = f"You plan the work of a coding agent. Answer with one JSON object, of type {type_}."
    asked = f"{QUESTIONS[type_]}\n\nThe schema of the answer:\n{json.dumps(schema)}"
    return PlannerRequest(
        type=type_,
        messages=(ChatMessage("system", rules), ChatMessage("user", asked)),
        schema=schema,
        facts=FACTS,
        call_number=0,
        simpler=message_schema(type_),
    )
