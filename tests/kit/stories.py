"""The events of a run as a story that two runs share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TOLD = {
    "state_changed": ("to",),
    "baseline": ("target", "exit_code"),
    "meta_call": ("type", "error"),
    "decision": ("action",),
    "worker_started": ("worker_run_id",),
    "worker_event": ("kind", "text", "command", "exit_code", "input_tokens", "output_tokens"),
    "worker_finished": ("worker_run_id", "outcome", "exit_code"),
    "check": ("target", "exit_code", "outcome"),
}


def story(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each event as a line without times, ids and places."""
    return [
        " ".join(
            [
                event["event"],
                *(str(event[name]) for name in TOLD.get(event["event"], ()) if event.get(name)
                  is not None),
            ]
        )
        for event in events
        if event["event"] not in ("awaiting", "worker_usage")  # no steps of the story
    ]  # fmt: skip
