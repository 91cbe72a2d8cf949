"""Who is left alone for a while because a quota is spent, and until when. Pure.

The channel `cooling` has a UTC time for each such candidate, as "worker:NAME" or "meta:NAME".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from agentrunner.task.context import Counters, Wait

Role = Literal["worker", "meta"]


class MustWait(Exception):
    """A node cannot go on before a quota is there again; the wrapper sends it to `wait`."""

    def __init__(self, wait: Wait, counters: Counters, cooling: dict[str, str]) -> None:
        """`counters` and `cooling` are kept; the node itself runs again from its top."""
        super().__init__(wait.reason)
        self.wait = wait
        self.counters = counters
        self.cooling = cooling


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
