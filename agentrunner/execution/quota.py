"""When a candidate with a spent quota, or one that cannot work, is asked again. Pure.

The channel `cooling` has a UTC time for each such candidate: "worker:NAME" or "meta:NAME" for a
quota, "unable:NAME" for a worker whose command cannot work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal

from agentrunner.state.run_state import Counters
from agentrunner.state.worker_runs import Wait
from agentrunner.text.times import moment

Cause = Literal["worker", "meta", "unable"]

QUOTA_BACKOFF_SEC = (30.0, 60.0, 120.0, 240.0, 480.0, 900.0)
"""Waits for a quota without a reset time, or with a wrong one. The last one repeats."""
SETTLE_SEC = 1.0
"""Added to a reset time that a provider gave: clocks differ, and asking too early costs a whole
wait."""


class MustWait(Exception):
    """A node must wait until a quota is available again; the wrapper sends it to `wait`."""

    def __init__(self, wait: Wait, counters: Counters) -> None:
        """`counters` are kept, with what was spent so far; the node runs again from its top."""
        super().__init__(wait.reason)
        self.wait = wait
        self.counters = counters
        self.kept: dict[str, object] = {}
        """Channels that the node knew already, so that it need not find them out again."""


def cooling_until(
    cooling: Mapping[str, str], cause: Cause, name: str, now: datetime
) -> datetime | None:
    """Return when a candidate may be asked again; None where it may be asked now."""
    until = moment(cooling.get(f"{cause}:{name}", ""))
    return until if until is not None and until > now else None


def free_workers(cooling: Mapping[str, str], names: Iterable[str], now: datetime) -> list[str]:
    """Return those of these workers that are left alone for no cause, in the same order."""
    return [
        name
        for name in names
        if cooling_until(cooling, "worker", name, now) is None
        and cooling_until(cooling, "unable", name, now) is None
    ]


def cooled(
    cooling: Mapping[str, str], cause: Cause, name: str, until: str, now: datetime
) -> dict[str, str]:
    """Return the channel `cooling` with this candidate added and expired ones removed."""
    unexpired = {key: at for key, at in cooling.items() if (ends := moment(at)) and ends > now}
    return {**unexpired, f"{cause}:{name}": until}


def next_try(waits: int, reset_at: str, now: datetime) -> tuple[datetime, bool]:
    """Return when a candidate whose quota is spent is asked again, and whether the provider gave
    that time.

    `waits` is the number of waits in a row. A provider is trusted once: where its quota is spent
    again right after the reset time it gave, the waits grow all the same, or it would be asked in a
    tight loop.
    """
    reset = moment(reset_at)
    guess = now + timedelta(seconds=QUOTA_BACKOFF_SEC[min(waits, len(QUOTA_BACKOFF_SEC) - 1)])
    if reset is None:
        return guess, False
    reset = max(reset, now) + timedelta(seconds=SETTLE_SEC)
    return (reset, True) if not waits or reset >= guess else (guess, False)


def seconds_of(wait: Wait) -> float:
    """Return the length of a wait in seconds."""
    until, since = moment(wait.until), moment(wait.since)
    return (until - since).total_seconds() if until and since else 0.0
