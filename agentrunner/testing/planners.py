"""What every planner promises: an answer is text with honest figures, or a named failure.

    from agentrunner.testing.planners import check_planner

    results = await check_planner(lambda: MyPlanner(spec, os.environ))

It asks the planner one question for each type of message: one with a model behind it is paid for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agentrunner.errors import AgentRunnerError
from agentrunner.planners.base import (
    ChatMessage,
    MessageType,
    PlannerClient,
    PlannerRequest,
    PlannerUnavailable,
    Reply,
)
from agentrunner.protocol import message_schema, parse_reply
from agentrunner.testing.sandboxes.workbench import CheckResult, expect

Make = Callable[[], PlannerClient]
QUESTION = (
    ChatMessage("system", "You plan the work of a coding agent. Answer with one JSON object."),
    ChatMessage("user", "The task: calc.add(a, b) must return the sum. What is to be met?"),
)


async def check_planner(make: Make) -> list[CheckResult]:
    """Try the promises of `planners.base.PlannerClient` on clients that `make` makes."""
    results = []
    for check in CHECKS:
        client = make()
        try:
            await check(client)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is this check's result
            detail = str(error) or type(error).__name__
            results.append(CheckResult(check.__name__, "failed", detail))
        else:
            results.append(CheckResult(check.__name__, "passed", str(check.__doc__)))
        finally:
            await client.close()
    return results


async def it_says_what_it_is(client: PlannerClient) -> None:
    """It has a kind, and a line for the header that spends nothing."""
    expect(isinstance(client.kind, str) and client.kind, "kind is a name")
    expect("\n" not in client.describe(), "describe is one line")


async def it_answers_or_says_why_not(client: PlannerClient) -> None:
    """An answer is a Reply that can be read; a failure is one of ours."""
    try:
        reply = await client.complete(_request("plan_task"))
    except PlannerUnavailable as error:
        expect(error.message, "a failure says what it is")
        return
    except AgentRunnerError as error:
        expect(error.exit_code in (2, 5), "what the caller or the machine lacks has a class")
        return
    expect(isinstance(reply, Reply), "complete returns a Reply")
    expect(reply.finish_reason in ("stop", "length", "content_filter", "refusal"), "it ended so")
    expect(min(reply.input_tokens, reply.output_tokens, reply.cached_tokens) >= 0, "counts count")
    expect(reply.cached_tokens <= reply.input_tokens, "what was cached is part of what was read")
    parse_reply(reply.text, "plan_task", finish_reason=reply.finish_reason)


async def closing_twice_is_once(client: PlannerClient) -> None:
    """Close is idempotent."""
    await client.close()
    await client.close()


CHECKS: tuple[Callable[[PlannerClient], Awaitable[None]], ...] = (
    it_says_what_it_is,
    it_answers_or_says_why_not,
    closing_twice_is_once,
)


def _request(type_: MessageType) -> PlannerRequest:
    return PlannerRequest(
        type=type_, messages=QUESTION, schema=message_schema(type_), facts={}, call_number=0
    )
