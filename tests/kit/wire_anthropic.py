"""Anthropic's wire format, Messages, as far as a real client needs it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.kit.scenario import Tool
from tests.kit.wire import Answer, Ask, Event, Json, Usage, chunks, new_id, text_of

CACHED_TOKENS = 200
"""Of the input of every answer."""
_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
    404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip


def anthropic_error(status: int, message: str) -> Json:
    """The body of an HTTP error."""
    error = {"type": _ERRORS.get(status, "api_error"), "message": message}
    return {"type": "error", "error": error, "request_id": new_id("req_")}


class Anthropic:
    """POST /v1/messages."""

    def ask(self, body: Json) -> Ask:
        messages = [one for one in body.get("messages", []) if one.get("role") == "assistant"]
        return Ask(
            model=str(body.get("model")),
            turns=[(text_of(one["content"]), _calls_tool(one["content"])) for one in messages],
            tools={
                tool["name"]: Tool(tool["input_schema"])
                for tool in body.get("tools") or []
                if "input_schema" in tool
            },
            stream=bool(body.get("stream")),
        )

    def whole(self, ask: Ask, answer: Answer) -> Json:
        blocks: list[Json] = [{"type": "text", "text": answer.text}] if answer.text else []
        for call in answer.calls:
            use = {"type": "tool_use", "id": new_id("toolu_"), "name": call.name}
            blocks.append({**use, "input": dict(call.arguments)})
        return {
            "id": new_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": ask.model,
            "content": blocks,
            "stop_reason": _reason(answer),
            "stop_sequence": None,
            "usage": _usage(answer.usage),
        }

    def events(self, ask: Ask, answer: Answer) -> Iterator[Event]:
        for data in self._events(ask, answer):
            yield data["type"], data

    def _events(self, ask: Ask, answer: Answer) -> Iterator[Json]:
        message = self.whole(ask, answer)
        begun = {**message["usage"], "output_tokens": 1}
        start = {**message, "content": [], "stop_reason": None, "usage": begun}
        yield {"type": "message_start", "message": start}
        for index, block in enumerate(message["content"]):
            empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
            yield {"type": "content_block_start", "index": index, "content_block": empty}
            for delta in _deltas(block):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        usage = {"output_tokens": answer.usage.output_tokens}
        yield {"type": "message_delta", "delta": end, "usage": usage}
        yield {"type": "message_stop"}


def _calls_tool(content: object) -> bool:
    parts = content if isinstance(content, list) else []
    return any(part.get("type") == "tool_use" for part in parts)


def _deltas(block: Json) -> Iterator[Json]:
    if block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        return
    for piece in chunks(block["text"]):
        yield {"type": "text_delta", "text": piece}


def _reason(answer: Answer) -> str:
    if answer.finish_reason:
        return "max_tokens" if answer.finish_reason == "length" else answer.finish_reason
    return "tool_use" if answer.calls else "end_turn"


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input_tokens - CACHED_TOKENS,
        "cache_read_input_tokens": CACHED_TOKENS,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.output_tokens,
    }
