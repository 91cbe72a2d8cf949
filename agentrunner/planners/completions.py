"""What a server of the Chat Completions API sends back, looked at before the library reads it."""

from __future__ import annotations

import json
from typing import Any

from agentrunner.planners.base import PlannerUnavailable
from agentrunner.planners.retry import http_failure
from agentrunner.planners.streaming import with_sane_usage

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Room for any reply; a server that sends more is not waited for."""


def causes(problem: BaseException | None) -> set[str]:
    """Names of an exception's class and of those behind it: libraries wrap each other's."""
    found: set[str] = set()
    while problem is not None and type(problem).__name__ not in found:
        found.add(type(problem).__name__)
        problem = problem.__cause__
    return found


async def whole_body(response: Any) -> list[bytes]:
    """The body of an answer that comes in one piece, no more than fits."""
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
    """The completion, for the library; raises PlannerUnavailable for what it would stumble over."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.get("error"):
        raise http_failure(200, body)
    if not data.get("choices") and "output" not in data:  # `output`: the Responses API
        raise PlannerUnavailable("no choices returned from LLM", retryable=False, kind="protocol")
    return with_sane_usage(data)
