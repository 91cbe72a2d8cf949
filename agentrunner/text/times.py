"""Times as they are kept and sent."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(moment: datetime) -> str:
    """Return a time in UTC, ISO 8601, with milliseconds and a Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stamp_now() -> str:
    """Return the current time in the same form."""
    return stamp(datetime.now(UTC))
