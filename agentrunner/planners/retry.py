"""Whether and when an attempt on the wire is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from agentrunner.gateway.upstream_errors import classify
from agentrunner.planners.base import PlannerUnavailable
from agentrunner.text.server_errors import in_words
from agentrunner.text.times import moment, stamp

if TYPE_CHECKING:
    from agentrunner.workers.base import FailureKind

BACKOFF_SEC = (1.0, 2.0, 4.0)
"""Waits before the first, second and third retry, after which we give up: 4 attempts."""
RETRY_AFTER_CAP_SEC = 60.0
BODY_CHARS = 2000
"""How much of a server's error text is kept."""
BY_CLASS: Mapping[str, FailureKind] = {
    "auth": "auth", "model": "model", "quota": "rate_limit", "overload": "rate_limit",
    "context": "context", "request": "protocol", "server": "server", "network": "network",
    "budget": "budget",
}  # fmt: skip
"""The failure kind for each of the gateway's error classes."""
_ACCOUNT_IS_EMPTY = ("insufficient_quota", "credit balance", "billing_")
"""Words in a 429 that no short wait will help."""


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed later: time-out, rate limit or server error."""
    return status in (408, 429) or status >= 500


def wait_before_retry(failure: PlannerUnavailable, retries_made: int) -> float | None:
    """Return the seconds to wait before the next try; None if no other try makes sense.

    A server's wish (Retry-After) replaces the back-off, up to 60 s. A quota that is spent for
    longer is not waited for here: another candidate may answer, or the run waits.
    """
    if not failure.retryable or retries_made >= len(BACKOFF_SEC):
        return None
    wish = failure.retry_after
    if failure.kind == "rate_limit" and wish is not None and wish > RETRY_AFTER_CAP_SEC:
        return None
    if wish is not None and wish >= 0:
        return min(wish, RETRY_AFTER_CAP_SEC)
    return BACKOFF_SEC[retries_made]


def http_failure(
    status: int,
    body: str,
    retry_after: float | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    now: datetime | None = None,
    whose: str = "OpenAI API error:",
) -> PlannerUnavailable:
    """Return the failure for an HTTP answer other than 200, which `whose` says to have come from.

    With `now`, the time of the answer, it states when a quota is available again: after
    `retry_after` seconds, else as body and `headers` say.
    """
    when = now or datetime.fromtimestamp(0, UTC)
    waits = {} if retry_after is None else {"retry-after": str(retry_after)}
    error = classify(status, {**(headers or {}), **waits}, body.encode("utf-8", "replace"), when)
    reset = error.reset_at if now is not None else None
    empty = any(word in body.lower() for word in _ACCOUNT_IS_EMPTY)
    return PlannerUnavailable(
        f"{whose} {status} {capped(in_words(body))}".rstrip(),
        retryable=is_retryable(status) and not (error.kind == "quota" and empty),
        retry_after=retry_after,
        kind=BY_CLASS[error.kind],
        reset_at=stamp(reset) if reset else "",
        reason=error.kind,
        status=status if status >= 300 else None,
    )


def network_failure(message: str) -> PlannerUnavailable:
    """Return the failure of a server that gave no answer, and may give one a moment later."""
    return PlannerUnavailable(message, retryable=True, kind="network")


def seconds_until(text: str, now: datetime) -> float | None:
    """Return the seconds until a time, not below 0; None for "" and for text that is no time."""
    until = moment(text)
    return None if until is None else max(0.0, (until - now).total_seconds())


def capped(text: str, limit: int = BODY_CHARS) -> str:
    """Return `text`, cut after `limit` characters with a note of its full length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds of a Retry-After header (a number or a date); None for anything else.

    `now` is in seconds since the epoch.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    return max(seconds, 0.0) if seconds == seconds else None  # NaN is not equal to itself
