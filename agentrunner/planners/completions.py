"""The two APIs of OpenAI-compatible servers: what is sent, and how an answer is read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from agentrunner.planners.base import PlannerRequest, PlannerUnavailable, Reply, in_turns
from agentrunner.planners.chat_reply import finish_reason
from agentrunner.planners.retry import http_failure
from agentrunner.planners.streaming import with_sane_usage

Api = Literal["chat/completions", "responses"]
"""Below the base URL. Some models of OpenAI are only behind the latter."""
MAX_BODY_BYTES = 8 * 1024 * 1024
"""Large enough for any reply; a server that sends more is refused."""


def asked_body(
    request: PlannerRequest, api: Api, model: str, schema: tuple[str, Mapping[str, Any]] | None
) -> dict[str, Any]:
    """Return the body of a request without `model` and streaming; `schema` is a name and a schema
    that the reply has to follow.
    """
    system = "developer" if re.match(r"o\d", model) else "system"
    turns = [
        {"role": system if one.role == "system" else one.role, "content": one.content}
        for one in in_turns(request.messages)
    ]
    body: dict[str, Any] = {"input" if api == "responses" else "messages": turns}
    if schema is not None:
        form = {"name": schema[0], "schema": schema[1], "strict": True}
        if api == "responses":
            body["text"] = {"format": {"type": "json_schema", **form}}
        else:
            body["response_format"] = {"type": "json_schema", "json_schema": form}
    if request.max_output_tokens is not None:
        limit = "max_output_tokens" if api == "responses" else "max_completion_tokens"
        body[limit] = request.max_output_tokens
    return body


def reply_in(body: Mapping[str, Any]) -> Reply:
    """Return the reply in a body that `checked_completion` has let through.

    Raises LookupError, TypeError or AttributeError for one in which no message is.
    """
    if "output" in body:  # the Responses API
        ended, tokens = body, ("input_tokens", "output_tokens")
        messages = [one for one in body["output"] if one.get("type") == "message"]
        blocks = [block for one in messages for block in one["content"]]
        refusal = "".join(str(block.get("refusal") or "") for block in blocks)
    else:
        ended, tokens = body["choices"][0], ("prompt_tokens", "completion_tokens")
        refusal, blocks = ended["message"].get("refusal"), ended["message"].get("content")
    usage = body["usage"] or {}
    cached = usage.get(f"{tokens[0]}_details") or {}
    return Reply(
        text=refusal or _text_of(blocks),
        finish_reason="refusal" if refusal else finish_reason(ended),
        input_tokens=usage.get(tokens[0], 0),
        output_tokens=usage.get(tokens[1], 0),
        model=str(body.get("model") or ""),
        cached_tokens=cached.get("cached_tokens") or 0,
        known="counted" if usage else "unknown",
    )


def _text_of(content: str | list[Any] | None) -> str:
    """Return the text of a message, whose blocks may hold thinking besides."""
    if not isinstance(content, list):
        return content or ""
    return "".join(str(block.get("text") or "") for block in content)


def causes(problem: BaseException | None) -> set[str]:
    """Return the class names of an exception and its causes, since libraries wrap each other's."""
    found: set[str] = set()
    while problem is not None and type(problem).__name__ not in found:
        found.add(type(problem).__name__)
        problem = problem.__cause__
    return found


async def whole_body(response: Any) -> list[bytes]:
    """Return the body of an answer in one piece; raises PlannerUnavailable if it is too big."""
    size = 0
    chunks: list[bytes] = []
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise PlannerUnavailable(
                f"The planner's server sent more than {MAX_BODY_BYTES >> 20} MiB.",
                retryable=False,
                kind="protocol",
            )
        chunks.append(chunk)
    return chunks


def checked_completion(body: str) -> dict[str, object]:
    """Parse and return the completion; raises PlannerUnavailable if the library would choke."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.get("error"):
        raise http_failure(200, body)
    if not data.get("choices") and "output" not in data:  # `output`: the Responses API
        raise PlannerUnavailable("no choices returned from LLM", retryable=False, kind="protocol")
    return with_sane_usage(data)
