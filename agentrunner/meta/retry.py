"""When an attempt on the wire is made again, and after how long."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from agentrunner.meta.base import MetaUnavailable

BACKOFF_SEC = (1.0, 2.0, 4.0)
"""Waits before the first, second and third retry; then it is over: 3 retries, 4 attempts."""
RETRY_AFTER_CAP_SEC = 60.0
BODY_CHARS = 2000
"""How much of a server's error text is kept."""


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed later: time-out, rate limit, server error."""
    return status in (408, 429) or status >= 500


def wait_before_retry(failure: MetaUnavailable, retries_made: int) -> float | None:
    """Seconds to wait before trying again; None where it makes no sense or was tried enough.

    A server's wish (Retry-After) takes the place of the back-off, up to 60 s.
    """
    if not failure.retryable or retries_made >= len(BACKOFF_SEC):
        return None
    wish = failure.retry_after
    if wish is not None and wish >= 0:
        return min(wish, RETRY_AFTER_CAP_SEC)
    return BACKOFF_SEC[retries_made]


def http_failure(status: int, body: str, retry_after: float | None = None) -> MetaUnavailable:
    """The failure that stands for an HTTP answer other than 200."""
    return MetaUnavailable(
        f"OpenAI API error: {status} {capped(body)}".rstrip(),
        retryable=is_retryable(status),
        retry_after=retry_after,
    )


def capped(text: str, limit: int = BODY_CHARS) -> str:
    """`text`, cut after `limit` characters and said so."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Seconds of a Retry-After header, given as a number or a date; None for anything else.

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
    return max(seconds, 0.0) if seconds == seconds else None  # a NaN is not equal to itself
