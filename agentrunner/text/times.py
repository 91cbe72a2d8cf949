"""Times as they are kept and sent."""

from __future__ import annotations

import re
from datetime import UTC, datetime

DURATION_PART = r"(\d+(?:\.\d+)?) ?(ms|s|m|h|d)[a-z]*"
"""A number and a unit of a duration in somebody else's words: "6m", "17ms", "2 hours"."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def stamp(moment: datetime) -> str:
    """Return a time in UTC, ISO 8601, with milliseconds and a Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stamp_now() -> str:
    """Return the current time in the same form."""
    return stamp(datetime.now(UTC))


def moment(text: object) -> datetime | None:
    """Return the time, in UTC, that such a text stands for; None where it is no time."""
    try:
        found = datetime.fromisoformat(str(text))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def seconds_in(duration: str) -> float:
    """Return the seconds of a duration like "1m30s", the sum of all its parts."""
    parts = re.findall(DURATION_PART, duration, re.IGNORECASE)
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)
