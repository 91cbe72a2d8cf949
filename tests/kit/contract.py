"""Every event that a test hears is held to its model, to the last key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentrunner.events import WorkerSpoke, checked_event


def check_event(line: Mapping[str, Any]) -> None:
    """Raises where it is not as `agentrunner.events` promises, or says more."""
    event = checked_event(line)
    if not isinstance(event, WorkerSpoke):  # whose other keys depend on its kind
        assert not event.model_extra, f"{event.event} says more than its model: {event.model_extra}"
