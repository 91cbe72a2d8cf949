"""Check the replies of a Chat Completions server before the library reads them."""

from __future__ import annotations

import json
from typing import Any

from agentrunner.planners.base import PlannerUnavailable
from agentrunner.planners.retry import http_failure
from agentrunner.planners.streaming import with_sane_usage

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Large enough for any reply; a server that sends more is refused."""


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
