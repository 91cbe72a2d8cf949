"""What an error of a model provider means for the run, and when it will be over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from msgspec import Struct

from agentrunner.gateway.usage import ErrorClass
from agentrunner.gateway.wires import parse
from agentrunner.text.times import DURATION_PART, seconds_in

_DURATION = rf"(?:{DURATION_PART},? ?)+"
MAX_DETAIL = 300
"""Characters of a provider's own message that are kept."""

_WORDS: Mapping[ErrorClass, str] = {
    "quota": (
        "insufficient_quota|usage_limit_reached|usage_not_included|rate_limit|resource_exhausted"
        "|credit balance|billing_|exceeded your current quota"
    ),
    "context": (
        "context_length|context_window|prompt is too long|maximum context length"
        "|exceeds the context|input token count .* exceeds|request_too_large"
    ),
    "model": (
        "model_not_found|not_found_error.*model|unknown model|invalid model|model.{0,200}"
        "(does not exist|not found|not supported|no access|do not have access)"
    ),
    "auth": (
        "invalid_api_key|authentication_error|permission_error|unauthenticated"
        "|permission_denied|api key not valid|api_key_invalid|token_expired"
    ),
    "overload": "overloaded|unavailable|at capacity|experiencing high demand",
    "server": "server_error|api_error|internal",
}
"""Patterns for texts and codes of an error; the first match decides."""

_BY_STATUS: Mapping[int, ErrorClass] = {
    401: "auth", 402: "quota", 403: "auth", 404: "model", 408: "network", 413: "context",
    429: "quota", 503: "overload", 529: "overload",
}  # fmt: skip


class UpstreamError(Struct, frozen=True):
    """An error of the provider."""

    kind: ErrorClass
    reset_at: datetime | None = None
    """When a quota is available again, if known; in UTC."""
    detail: str = ""
    """The provider's message, cut short; may contain parts of a key."""


def classify(
    status: int, headers: Mapping[str, str], body: bytes, now: datetime
) -> UpstreamError:  # fmt: skip
    """Return what a reply with an error status means, or with status 200 an event that is an error.

    `headers` are looked up case-insensitively; `now` is when the reply came.
    """
    data = parse(body)
    lower = {name.lower(): value for name, value in headers.items()}
    text = body[:20_000].decode("utf-8", "replace")
    kind = _kind(status, text)
    reset = _reset_at(lower, data, text, now) if kind in ("quota", "overload") else None
    return UpstreamError(kind, reset, _detail(data, text))


def _kind(status: int, text: str) -> ErrorClass:
    # These statuses are unambiguous; the words of their texts may mislead.
    if status in (401, 429, 503, 529):
        return _BY_STATUS[status]
    if 300 <= status < 400:
        return "server"
    lower = text.lower()
    for kind, pattern in _WORDS.items():
        # A refusal may quote the request, and with it any word.
        ours = 400 <= status < 500 and kind in ("overload", "server")
        if not ours and re.search(pattern, lower, re.DOTALL):
            return kind
    return _BY_STATUS.get(status, "request" if 400 <= status < 500 else "server")


# -- when it is over ------------------------------------------------------------------------------


def _reset_at(
    headers: Mapping[str, str], data: Any, text: str, now: datetime
) -> datetime | None:  # fmt: skip
    """Return the reset time from the first of Retry-After, the body and limits in headers."""
    wait = _retry_after(headers, now)
    if wait is None:
        wait = next(_waits_in_body(data, text, now), None)
    if wait is None:
        wait = _longest_used_up(headers, now)
    if wait is None or not 0 <= wait < 366 * 86_400:
        return None
    return now + timedelta(seconds=wait)


def _retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    if (ms := _number(headers.get("retry-after-ms"))) is not None:
        return ms / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError):
        return None


def _waits_in_body(data: Any, text: str, now: datetime) -> Iterator[float]:
    """Yield the waiting times in seconds that a body names, the most reliable first."""
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict):
        if (seconds := _number(error.get("resets_in_seconds"))) is not None:
            yield seconds
        if (moment := _number(error.get("resets_at"))) is not None:
            yield moment - now.timestamp()
        for item in error.get("details") or []:  # Gemini's google.rpc.RetryInfo
            delay = item.get("retryDelay") if isinstance(item, dict) else None
            if isinstance(delay, str) and (seconds := _duration(delay)) is not None:
                yield seconds
    found = re.search(rf"(?:try again|retry) in ({_DURATION})", text)
    if found and (seconds := _duration(found[1])) is not None:
        yield seconds


def _longest_used_up(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the longest wait of the limits that are used up, or of all limits if none is known."""
    used_up: list[float] = []
    others: list[float] = []
    for name, value in headers.items():
        if "ratelimit" not in name or "-reset" not in name:
            continue
        if (seconds := _wait(value, now)) is not None:
            remaining = headers.get(name.replace("-reset", "-remaining"))
            (used_up if remaining == "0" else others).append(seconds)
    return max(used_up or others, default=None)


def _wait(value: str, now: datetime) -> float | None:
    """Return the seconds until a moment, or of a duration; headers contain both."""
    number = _number(value)
    if number is not None:
        return number - now.timestamp() if number > 1e9 else number
    if (seconds := _duration(value)) is not None:
        return seconds
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()


def _duration(text: str) -> float | None:
    """Return the seconds of "1s", "6m0s", "17ms", "1.5s", "2 hours"."""
    return seconds_in(text) if re.fullmatch(_DURATION, text.strip()) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if abs(number) < 1e12 else None


def _detail(data: Any, text: str) -> str:
    error = data.get("error") if isinstance(data, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    words = message if isinstance(message, str) else text
    return " ".join(words.split())[:MAX_DETAIL]
