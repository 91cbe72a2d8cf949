"""How long a model may take: for its first token, between two tokens, and for a whole answer."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from agentrunner.config.agents import PlannerSpec
from agentrunner.errors.command_line import BadEnvironment

NEAR = (1800.0, 600.0)
"""Seconds for a whole answer and for its first token, from a server on this machine or in its
network, which may have to load the model and reads a long prompt slowly.
"""
FAR = (600.0, 300.0)
"""The same for any other server."""
BETWEEN_SEC = 120.0
"""Seconds between two signs of life once it writes."""
MOST_SEC = 86_400.0


class TimeLimits(Struct, frozen=True):
    """Time limits in seconds. Any byte is a sign of life, including keep-alives."""

    whole: float
    first: float
    """Until the first sign of life, connecting included."""
    between: float = BETWEEN_SEC


def limits_of(meta: PlannerSpec, environ: Mapping[str, str], host: str = "") -> TimeLimits:
    """Return the limits for a chat model at `host`; raises BadEnvironment for a bad
    META_TIMEOUT_SEC.

    A configured time-out bounds the whole call, and so everything within it.
    """
    whole, first = NEAR if is_near(host) else FAR
    if meta.timeout_sec is not None:
        whole = meta.timeout_sec
    elif text := environ.get("META_TIMEOUT_SEC", "").strip():
        whole = _seconds(text)
    return TimeLimits(whole, min(first, whole), min(BETWEEN_SEC, whole))


@cache
def is_near(host: str) -> bool:
    """Whether a server is on this machine or in its own network, judged by its address alone."""
    name = host.strip("[]")
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_private or address.is_link_local


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if 0 < seconds <= MOST_SEC:
        return seconds
    raise BadEnvironment(
        f"META_TIMEOUT_SEC is {text!r}, which is not a number of seconds.",
        path="META_TIMEOUT_SEC",
        remedy="export META_TIMEOUT_SEC=600",
        nothing_spent=True,
    )
