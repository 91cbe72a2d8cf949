"""The real Claude Code, where it is installed, and a provider that speaks to it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.kit.gateway import Handler
from tests.kit.missing import missing
from tests.kit.wire import chunks, new_id

INSTALLED = Path(__file__).parents[2] / ".tools" / "claude" / "node_modules" / ".bin" / "claude"
USAGE = {
    "input_tokens": 1000, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 0,
    "output_tokens": 34,
}  # fmt: skip
"""Of every answer."""

Step = tuple[str, str]
"""What the model says, and the shell command that it then runs; "" runs none."""


def require_claude() -> Path:
    """The binary: AGENTRUNNER_CLAUDE, `.tools/` (scripts/install-claude.sh), or PATH.

    Where it is missing the test is skipped; under CI=true it fails.
    """
    named = os.environ.get("AGENTRUNNER_CLAUDE") or (
        str(INSTALLED) if INSTALLED.exists() else shutil.which("claude")
    )
    if not named:
        missing("Claude Code is not installed. Run scripts/install-claude.sh.")
    return Path(named).resolve()


def anthropic_messages(steps: Sequence[Step], seen: list[web.Request]) -> Handler:
    """A provider that plays the steps, by how many of its own turns a request holds."""

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        body = await request.json()
        done = sum(message["role"] == "assistant" for message in body["messages"])
        said, command = steps[min(done, len(steps) - 1)] if body.get("tools") else ("A title", "")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in _events(body["model"], said, command):
            data = json.dumps(event)
            await response.write(f"event: {event['type']}\ndata: {data}\n\n".encode())
        return response

    return answer


def _events(model: str, said: str, command: str) -> Iterator[dict[str, Any]]:
    message: dict[str, Any] = {
        "id": new_id("msg_"), "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": {**USAGE, "output_tokens": 1},
    }  # fmt: skip
    yield {"type": "message_start", "message": message}
    text: dict[str, Any] = {"type": "text", "text": ""}
    yield {"type": "content_block_start", "index": 0, "content_block": text}
    for piece in chunks(said):
        delta = {"type": "text_delta", "text": piece}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    if command:
        tool = {"type": "tool_use", "id": new_id("toolu_"), "name": "Bash", "input": {}}
        yield {"type": "content_block_start", "index": 1, "content_block": tool}
        arguments = json.dumps({"command": command, "description": "A step"})
        delta = {"type": "input_json_delta", "partial_json": arguments}
        yield {"type": "content_block_delta", "index": 1, "delta": delta}
        yield {"type": "content_block_stop", "index": 1}
    end = {"stop_reason": "tool_use" if command else "end_turn", "stop_sequence": None}
    usage = {"output_tokens": USAGE["output_tokens"]}
    yield {"type": "message_delta", "delta": end, "usage": usage}
    yield {"type": "message_stop"}
