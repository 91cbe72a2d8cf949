"""Google's wire format, generateContent, as far as a real client needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.kit.scenario import Tool
from tests.kit.wire import Answer, Ask, Event, Json, Usage, new_id, text_of

_PATH = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent)(\?|$)")
_STATUS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE",
}  # fmt: skip


def gemini_of(path: str) -> Gemini | None:
    """The format of a request to this path; None where it is another one's."""
    found = _PATH.search(path)
    return Gemini(found[1], stream=found[2].startswith("stream")) if found else None


class Gemini:
    """POST /v1beta/models/MODEL:generateContent and :streamGenerateContent."""

    def __init__(self, model: str, *, stream: bool) -> None:
        self._model = model
        self._stream = stream

    def ask(self, body: Json) -> Ask:
        groups = body.get("tools") or []
        offered = [tool for group in groups for tool in group.get("functionDeclarations") or []]
        turns = [
            (text_of(content.get("parts")), any("functionCall" in p for p in content["parts"]))
            for content in body.get("contents", [])
            if content.get("role") == "model"
        ]
        tools = {
            tool["name"]: Tool(tool.get("parametersJsonSchema") or tool.get("parameters") or {})
            for tool in offered
        }
        return Ask(self._model, turns, tools, self._stream)

    def whole(self, ask: Ask, answer: Answer) -> Json:
        parts: list[Json] = [{"text": answer.text}] if answer.text else []
        parts += [
            {"functionCall": {"name": call.name, "args": dict(call.arguments)}}
            for call in answer.calls
        ]
        finish = "MAX_TOKENS" if answer.finish_reason == "length" else "STOP"
        content = {"role": "model", "parts": parts}
        return {
            "candidates": [{"content": content, "index": 0, "finishReason": finish}],
            "usageMetadata": _usage(answer.usage),
            "modelVersion": ask.model,
            "responseId": new_id("g"),
        }

    def events(self, ask: Ask, answer: Answer) -> Iterator[Event]:
        yield "", self.whole(ask, answer)


def gemini_error(status: int, message: str) -> Json:
    """The body of an HTTP error."""
    return {
        "error": {"code": status, "message": message, "status": _STATUS.get(status, "INTERNAL")}
    }


def _usage(usage: Usage) -> Json:
    return {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    }
