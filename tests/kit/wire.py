"""OpenAI's two wire formats, as far as real clients need them: Responses and Chat Completions."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.kit.scenario import Tool, ToolCall

Json = dict[str, Any]
Event = tuple[str, Json]
"""Name ("" for none) and data of a server-sent event."""


@dataclass(frozen=True)
class Usage:
    """Tokens that an answer reports."""

    input_tokens: int = 1200
    output_tokens: int = 34


@dataclass(frozen=True)
class Ask:
    """What a request asks, whatever its format."""

    model: str
    turns: Sequence[tuple[str, bool]]
    """The model's turns so far: text, and whether it called a tool."""
    tools: Mapping[str, Tool]
    stream: bool


@dataclass(frozen=True)
class Answer:
    """What the model answers, whatever the format."""

    text: str
    calls: Sequence[ToolCall] = ()
    finish_reason: str = ""
    usage: Usage = Usage()


class Wire(Protocol):
    """One wire format."""

    def ask(self, body: Json) -> Ask: ...

    def whole(self, ask: Ask, answer: Answer) -> Json: ...

    def events(self, ask: Ask, answer: Answer) -> Iterator[Event]: ...


def error_body(status: int, message: str) -> Json:
    """The body of an HTTP error, the same in both formats."""
    codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
    code = codes.get(status, "server_error")
    kind = "invalid_request_error" if status < 429 else code
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class Responses:
    """POST /v1/responses."""

    def ask(self, body: Json) -> Ask:
        items = body["input"] if isinstance(body.get("input"), list) else []
        offered = list(body.get("tools") or [])
        for item in items:  # Codex with newer models: tools ride in the input
            if item.get("type") == "additional_tools":
                offered += item.get("tools") or []
        return Ask(
            model=str(body.get("model")),
            turns=list(_turns(items)),
            tools=dict(_tools(offered)),
            stream=bool(body.get("stream")),
        )

    def whole(self, ask: Ask, answer: Answer) -> Json:
        return self._final(ask, answer, _items(ask, answer))

    def events(self, ask: Ask, answer: Answer) -> Iterator[Event]:
        items = _items(ask, answer)
        final = self._final(ask, answer, items)
        begun = {**final, "output": [], "status": "in_progress", "usage": None}
        events: list[Event] = [("response.created", {"response": begun})]
        for index, item in enumerate(items):
            events += _item_events(index, item)
        end = "response.incomplete" if answer.finish_reason == "length" else "response.completed"
        events.append((end, {"response": final}))
        for number, (name, data) in enumerate(events):
            yield name, {**data, "type": name, "sequence_number": number}

    def _final(self, ask: Ask, answer: Answer, items: Sequence[Json]) -> Json:
        usage = answer.usage
        cut = answer.finish_reason == "length"
        return {
            "id": new_id("resp_"),
            "object": "response",
            "created_at": int(time.time()),
            "model": ask.model,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": list(items),
            "usage": {
                "input_tokens": usage.input_tokens,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": usage.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.input_tokens + usage.output_tokens,
            },
        }


class Chat:
    """POST /v1/chat/completions."""

    def ask(self, body: Json) -> Ask:
        return Ask(
            model=str(body.get("model")),
            turns=[
                (text_of(message.get("content")), bool(message.get("tool_calls")))
                for message in body.get("messages", [])
                if message.get("role") == "assistant"
            ],
            tools={
                tool["function"]["name"]: Tool(tool["function"].get("parameters") or {})
                for tool in body.get("tools") or []
                if tool.get("type") == "function"
            },
            stream=bool(body.get("stream")),
        )

    def whole(self, ask: Ask, answer: Answer) -> Json:
        message: Json = {"role": "assistant", "content": answer.text}
        if calls := _chat_calls(answer):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
        return {
            **_chat_base(ask, "chat.completion"),
            "choices": [choice],
            "usage": _chat_usage(answer.usage),
        }

    def events(self, ask: Ask, answer: Answer) -> Iterator[Event]:
        base = _chat_base(ask, "chat.completion.chunk")

        def chunk(delta: Json, finish: str | None = None) -> Event:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return "", {**base, "choices": [choice]}

        yield chunk({"role": "assistant", "content": ""})
        for piece in chunks(answer.text):
            yield chunk({"content": piece})
        for index, call in enumerate(_chat_calls(answer)):
            yield chunk({"tool_calls": [{**call, "index": index}]})
        yield chunk({}, _finish(answer))
        yield "", {**base, "choices": [], "usage": _chat_usage(answer.usage)}


def new_id(prefix: str) -> str:
    """An id as APIs make them."""
    return prefix + uuid.uuid4().hex[:24]


def text_of(content: Any) -> str:
    """The text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or [] if isinstance(part, dict))


def chunks(text: str, size: int = 12) -> list[str]:
    """The text in pieces, as a stream brings it."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def _turns(items: Sequence[Json]) -> Iterator[tuple[str, bool]]:
    """Consecutive items of the model (message, reasoning, calls) make one turn."""
    text, calls, in_turn = "", False, False
    for item in items:
        call = item.get("type") in ("function_call", "custom_tool_call", "local_shell_call")
        mine = call or item.get("role") == "assistant" or item.get("type") == "reasoning"
        if in_turn and not mine:
            yield text, calls
            text, calls = "", False
        if mine:
            text, calls = text + text_of(item.get("content")), calls or call
        in_turn = mine
    if in_turn:
        yield text, calls


def _tools(offered: Sequence[Json], namespace: str = "") -> Iterator[tuple[str, Tool]]:
    for tool in offered:
        match tool.get("type"):
            case "namespace":
                yield from _tools(tool.get("tools") or [], tool["name"])
            case "function":
                yield tool["name"], Tool(tool.get("parameters") or {}, namespace=namespace)
            case "custom":
                yield tool["name"], Tool(freeform=True, namespace=namespace)
            case "local_shell":
                yield "local_shell", Tool({"properties": {"command": {"type": "array"}}})


def _items(ask: Ask, answer: Answer) -> list[Json]:
    items: list[Json] = []
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        items.append(
            {
                "type": "message",
                "id": new_id("msg_"),
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    return items + [_call_item(call, ask.tools[call.name]) for call in answer.calls]


def _call_item(call: ToolCall, tool: Tool) -> Json:
    item: Json = {"id": new_id("it_"), "status": "completed", "call_id": new_id("call_")}
    if call.name == "local_shell":
        action = {"type": "exec", "command": call.arguments["command"], "env": {}}
        return {**item, "type": "local_shell_call", "action": action}
    item["name"] = call.name
    if tool.namespace:
        item["namespace"] = tool.namespace
    if call.text is not None:
        return {**item, "type": "custom_tool_call", "input": call.text}
    return {**item, "type": "function_call", "arguments": json.dumps(call.arguments)}


def _item_events(index: int, item: Json) -> Iterator[Event]:
    where = {"item_id": item["id"], "output_index": index}
    start = {**item, "status": "in_progress"}
    if item["type"] == "message":
        start["content"] = []
    yield "response.output_item.added", {"output_index": index, "item": start}
    if item["type"] == "message":
        part = item["content"][0]
        inside = {**where, "content_index": 0}
        yield "response.content_part.added", {**inside, "part": {**part, "text": ""}}
        for piece in chunks(part["text"]):
            yield "response.output_text.delta", {**inside, "delta": piece}
        yield "response.output_text.done", {**inside, "text": part["text"]}
        yield "response.content_part.done", {**inside, "part": part}
    elif item["type"] == "function_call":
        arguments = item["arguments"]
        yield "response.function_call_arguments.delta", {**where, "delta": arguments}
        yield "response.function_call_arguments.done", {**where, "arguments": arguments}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _chat_base(ask: Ask, kind: str) -> Json:
    return {
        "id": new_id("chatcmpl-"),
        "object": kind,
        "created": int(time.time()),
        "model": ask.model,
    }


def _chat_calls(answer: Answer) -> list[Json]:
    return [
        {
            "id": new_id("call_"),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in answer.calls
    ]


def _chat_usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _finish(answer: Answer) -> str:
    return answer.finish_reason or ("tool_calls" if answer.calls else "stop")
