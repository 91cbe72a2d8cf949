"""The real Codex CLI and the real Claude Code as planners, one attempt at a time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentrunner.errors import Surroundings
from agentrunner.gateway.usage import read_usage
from agentrunner.meta.base import MetaUnavailable
from tests.integration.meta.conftest import KEY_OF, REAL_KEY, SECRET, Desk, desk_of, request
from tests.kit.planner_server import PlannerServer
from tests.kit.process import living
from tests.kit.scenario import Shell, Turn

DONE = {
    "type": "next_action",
    "version": 1,
    "payload": {
        "decision": {"action": "mark_complete", "reason": "All green."},
        "worker_call": None,
        "used_patterns": [],
        "question": None,
        "options": [],
    },
}


EVERYWHERE = [(k, b) for k in ("codex-cli", "claude-code") for b in ("bwrap", "docker", "none")]


@pytest.mark.parametrize("desk", EVERYWHERE, indirect=True, ids="-".join)
async def test_an_answer_and_what_it_cost(desk: Desk) -> None:
    with PlannerServer([DONE]) as server:
        reply = await desk.ask(server, number=3, model="planner-1")
    assert json.loads(reply.text) == DONE
    assert (reply.finish_reason, reply.model) == ("stop", "planner-1")
    assert (reply.input_tokens, reply.output_tokens) == (
        server.told.input_tokens,
        server.told.output_tokens,
    )
    assert reply.known == ("counted" if desk.box != "none" else "reported")
    assert not reply.subscription
    counted = read_usage(desk.folder.meta_dir / "0003-usage.jsonl")
    assert counted.calls == (len(server.served) if desk.box != "none" else 0)
    assert {call.bearer for call in server.requests if call.method == "POST"} == {REAL_KEY}
    (asked,) = [call.body for call in server.requests if call.method == "POST"]
    assert "You decide." in str(asked) and "The state." in str(asked)
    assert living(desk.place) == {}
