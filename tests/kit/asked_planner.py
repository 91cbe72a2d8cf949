"""A planner that asks a server of the test's own, once."""

from __future__ import annotations

from typing import Any

import pytest

from agentrunner.planners.base import ChatMessage, PlannerRequest, PlannerUnavailable, Reply
from agentrunner.planners.factory import make_planner
from agentrunner.protocol import message_schema
from tests.kit.fault_server import FaultServer, MakeSpec

KEY = "sk-secret-0123456789"


def request(**changes: Any) -> PlannerRequest:
    """For the next action."""
    values: dict[str, Any] = {
        "type": "next_action",
        "messages": (ChatMessage("system", "Decide."), ChatMessage("user", "The state.")),
        "schema": message_schema("next_action"),
        "facts": {},
        "call_number": 0,
        **changes,
    }
    return PlannerRequest(**values)


async def ask(
    make_spec: MakeSpec, server: FaultServer, asked: PlannerRequest | None = None, **meta: Any
) -> Reply:
    """What it replies."""
    client = make_planner(make_spec(**{"base_url": server.url, **meta}), {"OPENAI_API_KEY": KEY})
    try:
        return await client.complete(asked or request())
    finally:
        await client.close()


async def fail(make_spec: MakeSpec, server: FaultServer, **meta: Any) -> PlannerUnavailable:
    """Why it has no reply; the key is not told."""
    with pytest.raises(PlannerUnavailable) as caught:
        await ask(make_spec, server, **meta)
    assert KEY not in str(caught.value)
    return caught.value
