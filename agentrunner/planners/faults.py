"""Plain descriptions of why a planner gives no answer; never a provider's raw JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from agentrunner.planners.base import PlannerUnavailable, PlannerUnusable

OUTAGES = frozenset({"server", "network", "rate_limit"})
"""Failure kinds that pass without anybody's help."""
WORDS: Mapping[str, str] = {
    "quota": "its quota is spent",
    "overload": "its server is overloaded",
    "server": "its server fails",
    "network": "it cannot be reached",
    "auth": "its key or login is refused",
    "model": "its model is not known there",
    "context": "what it was asked is longer than it can read",
    "filter": "a filter of its provider refuses the question or the answer",
    "cut": "its answer was cut off, again and again",
    "budget": "its gateway lets no further call through",
    "rate_limit": "its quota is spent",
    "request": "its server refuses the request",
    "protocol": "what came back is no answer",
    "unusable": "its answers cannot be used",
}
"""The end of a sentence, by the reason or kind of a failure."""
ANSWERS: Mapping[str, str] = {"refusal": "filter", "content_filter": "filter", "length": "cut"}
"""The key of WORDS for a finish reason that made the last answer unusable."""


def reason_of(failure: PlannerUnavailable | PlannerUnusable) -> str:
    """Return the key of WORDS for this failure."""
    if isinstance(failure, PlannerUnusable):
        return ANSWERS.get(failure.finish_reason, "unusable")
    return failure.reason or failure.kind or "protocol"


def words_of_failure(failure: PlannerUnavailable | PlannerUnusable) -> str:
    """Return the end of a sentence about the failure: "its server answers 503, overloaded"."""
    words = WORDS.get(reason_of(failure), WORDS["protocol"])
    status = failure.status if isinstance(failure, PlannerUnavailable) else None
    return f"{words} (HTTP {status})" if status else words


def is_outage(failure: PlannerUnavailable | PlannerUnusable) -> bool:
    """Whether the failure is worth waiting for: the provider is away, and nobody made a mistake."""
    if not isinstance(failure, PlannerUnavailable):
        return False
    if failure.kind == "rate_limit":
        return True
    return failure.kind in OUTAGES and failure.retryable
