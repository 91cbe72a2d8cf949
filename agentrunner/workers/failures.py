"""What messages of a CLI, or of its model provider, mean for the run."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.times import DURATION_PART, seconds_in
from agentrunner.workers.base import Failure, FailureKind

_STATUSES: dict[int, FailureKind] = {
    401: "auth", 402: "rate_limit", 403: "auth", 404: "model", 408: "network", 413: "context",
    429: "rate_limit", 529: "rate_limit",
}  # fmt: skip

_WORDS: dict[FailureKind, str] = {
    "auth": (
        r"\b40[13]\b|api.?key|environment variable|unauthori[sz]ed|unauthenticated"
        r"|authentication|not logged in|log ?in again|run /login|permission_denied"
    ),
    "rate_limit": (
        r"\b(402|429|529)\b|rate.?limit|quota|too many requests|usage limit|limit reached"
        r"|credit balance|resource_exhausted|overloaded"
    ),
    "context": r"context.?(window|length)|too long|maximum context|request_too_large",
    "model": (
        r"\b404\b|model.{0,200}(not found|not exist|not supported|not have access)"
        r"|selected model|model_not_found|unknown model|invalid model"
    ),
    "server": r"\b5\d\d\b|high demand|internal server|server error|api_error",
    "network": (
        r"stream disconnected|idle timeout|connect|network|error sending request|dns|timed out"
        r"|fetch failed|ECONN|ENOTFOUND|EAI_AGAIN|socket hang up|\bterminated\b|other side closed"
    ),
    "protocol": (
        r"\b4(00|22)\b|invalid.request|unexpected status|bad request|malformed response"
        r"|without a finish reason|without sending any chunks|incomplete json"
        r"|empty or invalid response"
    ),
}
"""Patterns for the kind of a message; the first match wins."""

_FLAG = r"['\"`]?(?P<flag>-{0,2}[\w][\w.-]*)"
_UNKNOWN_FLAG = lazy_regex(
    rf"(?:unexpected argument|unknown options?|unknown arguments?|unrecognized arguments?"
    rf"|no such option|invalid value \S+ for|error: option):? {_FLAG}",
    re.IGNORECASE,
)
"""The wording of clap, commander, yargs, argparse and click."""

_IN = lazy_regex(
    rf"(?:again|retry|retry.after|reset|resets|available|wait)\W{{0,3}}(?:in|after|for)?\W{{0,3}}"
    rf"((?:{DURATION_PART},? ?(?:and )?)+)",
    re.IGNORECASE,
)
_MOMENT = lazy_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?")
_EPOCH = lazy_regex(r"(?:reset\w*\W{1,6}(?:at\W{1,3})?|\|)(\d{10})\b", re.IGNORECASE)
_HOUR = lazy_regex(
    r"(?:resets?|again)(?: at)? (\d{1,2})(?::(\d\d))? ?(am|pm)?(?: ?\(?(?:UTC|GMT)\)?)?\b",
    re.IGNORECASE,
)
_MOST_DAYS = 366


def classify(message: str) -> FailureKind | None:
    """Return the failure kind of a message; None if it is unknown."""
    return next(
        (kind for kind, words in _WORDS.items() if re.search(words, message, re.IGNORECASE)), None
    )


def kind_of_status(status: object) -> FailureKind | None:
    """Return the failure kind of an HTTP status; None if it is not an error, or not a status."""
    if not isinstance(status, int) or isinstance(status, bool) or not 400 <= status < 600:
        return None
    return _STATUSES.get(status, "protocol" if status < 500 else "server")


def failure_of(message: str, now: datetime, *, kind: FailureKind | None = None) -> Failure | None:
    """Return a message as a failure, with its reset time if it is about a quota; None if unknown.

    `kind` comes from the record's own code and overrides the words. A 400 may be of any kind.
    """
    words = classify(message)
    found = words or kind if kind == "protocol" else kind or words
    if found is None:
        return None
    return Failure(found, message, reset_time(message, now) if found == "rate_limit" else "")


def reset_time(message: str, now: datetime) -> str:
    """Return when a quota is available again, if a message says so: UTC, ISO 8601, else "".

    Recognises "try again in 1m30s", "retry after 5 seconds", "resets at 2026-11-21T15:00:00Z",
    "limit reached|1795274400" and "resets 3pm (UTC)". An hour without a zone is read as UTC.
    """
    moment = _moment(message, now)
    if moment is None or not now <= moment < now + timedelta(days=_MOST_DAYS):
        return ""
    # Round up to a full second, so that it is never too early.
    whole = moment.astimezone(UTC) + timedelta(microseconds=999_999)
    return whole.isoformat(timespec="seconds").replace("+00:00", "Z")


def unknown_flag(stderr: str) -> str:
    """Return the flag, or the value, that a CLI reports as unknown; "" if it reports none."""
    found = _UNKNOWN_FLAG.search(stderr)
    return found["flag"] if found else ""


def _moment(message: str, now: datetime) -> datetime | None:
    if found := _MOMENT.search(message):
        try:
            moment = datetime.fromisoformat(found[0].replace(" ", "T", 1).replace(" ", ""))
        except ValueError:
            return None
        return moment.replace(tzinfo=moment.tzinfo or UTC)
    if found := _EPOCH.search(message):
        return datetime.fromtimestamp(int(found[1]), UTC)
    if found := _IN.search(message):
        seconds = min(seconds_in(found[1]), (_MOST_DAYS + 1) * 86_400.0)
        return now + timedelta(seconds=seconds)
    if found := _HOUR.search(message):
        return _next_hour(found[1], found[2], found[3], now)
    return None


def _next_hour(hour: str, minute: str | None, half: str | None, now: datetime) -> datetime | None:
    number = int(hour)
    if half:
        number = number % 12 + (12 if half.lower() == "pm" else 0)
    if number > 23 or int(minute or 0) > 59 or not (half or minute):
        return None
    at = now.astimezone(UTC).replace(hour=number, minute=int(minute or 0), second=0, microsecond=0)
    return at if at >= now else at + timedelta(days=1)
