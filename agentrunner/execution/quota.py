"""When a spent quota is asked for again, and who is left alone until then. Pure.

The channel `cooling` has a UTC time for each such candidate, as "worker:NAME" or "meta:NAME".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from agentrunner.state.run_state import Counters
from agentrunner.state.worker_runs import Wait

Role = Literal["worker", "meta"]

QUOTA_BACKOFF_SEC = (30.0, 60.0, 120.0, 240.0, 480.0, 900.0)
"""Waits for a quota whose reset nobody told, or told wrongly; the last one again and again."""
SETTLE_SEC = 1.0
"""Added to a reset that was told: clocks differ, and to come too early costs a whole wait."""


class MustWait(Exception):
    """A node cannot go on before a quota is there again; the wrapper sends it to `wait`."""

    def __init__(self, wait: Wait, counters: Counters) -> None:
        """`counters` are kept, with what was spent so far; the node runs again from its top."""
        super().__init__(wait.reason)
        self.wait = wait
        self.counters = counters
        self.kept: dict[str, object] = {}
        """Channels that the node knew already, so that it need not find them out again."""


def moment(text: str) -> datetime | None:
    """A time of the state; None where it is none, or no time of this world."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def stamp(at: datetime) -> str:
    """A time as the state keeps it: UTC, ISO 8601, milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def cooling_until(
    cooling: Mapping[str, str], role: Role, name: str, now: datetime
) -> datetime | None:
    """When a candidate may be asked again; None where it may be now."""
    until = moment(cooling.get(f"{role}:{name}", ""))
    return until if until is not None and until > now else None


def cooled(
    cooling: Mapping[str, str], role: Role, name: str, until: str, now: datetime
) -> dict[str, str]:
    """The channel with this candidate in it, and without those whose time has come."""
    left = {key: at for key, at in cooling.items() if (ends := moment(at)) and ends > now}
    return {**left, f"{role}:{name}": until}


def next_try(waits: int, reset_at: str, now: datetime) -> tuple[datetime, bool]:
    """When one whose quota is spent is asked again, and whether that was told.

    `waits` is how often it was waited for in a row. A provider is believed once: where its quota
    is spent again right after the reset it told, the waits grow all the same, or it would be
    asked in a tight circle.
    """
    reset = moment(reset_at)
    guess = now + timedelta(seconds=QUOTA_BACKOFF_SEC[min(waits, len(QUOTA_BACKOFF_SEC) - 1)])
    if reset is None:
        return guess, False
    reset = max(reset, now) + timedelta(seconds=SETTLE_SEC)
    return (reset, True) if not waits or reset >= guess else (guess, False)


def seconds_of(wait: Wait) -> float:
    """How long a wait is when it begins."""
    until, since = moment(wait.until), moment(wait.since)
    return (until - since).total_seconds() if until and since else 0.0
