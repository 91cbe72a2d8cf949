"""Every event that a test hears is held to its model, to the last key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from agentrunner.events import WorkerSpoke, checked_event


def check_event(line: Mapping[str, Any]) -> None:
    """Raises where it is not as `agentrunner.events` promises, or says more."""
    event = checked_event(line)
    if not isinstance(event, WorkerSpoke):  # whose other keys depend on its kind
        more = dict(_extras(event, event.event))
        assert not more, f"{event.event} says more than its model: {more}"


def _extras(value: object, where: str) -> Iterator[tuple[str, object]]:
    """Keys that no model has, of this value and of all below it."""
    if isinstance(value, BaseModel):
        if value.model_extra:
            yield where, value.model_extra
        for name, below in value:
            yield from _extras(below, f"{where}.{name}")
    elif isinstance(value, list):
        for below in value:
            yield from _extras(below, where)
