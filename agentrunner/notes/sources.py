"""The sources that `build_view` reads, and small helpers for times and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from pydantic import ValidationError

from agentrunner.config.spec import TaskSpec
from agentrunner.notes.note_model import Attachment
from agentrunner.results import InboxItem, Result
from agentrunner.state.run_state import TaskContext
from agentrunner.state.state_model import FileRef
from agentrunner.storage.run_log import History
from agentrunner.text.times import moment

TAIL_CHARS = 6 * 1024
"""Limit for one file in a full note."""


class NoteSources(Struct, frozen=True):
    """The sources of a note."""

    result: Result
    context: TaskContext
    spec: TaskSpec
    history: History
    now: datetime
    tail: Callable[[FileRef], str]
    in_git: bool = True
    """Whether there is a git repository to commit to."""

    @property
    def worker_runs(self) -> list[Mapping[str, Any]]:
        """The data of all ended worker runs."""
        return [record.data for record in self.history.worker_runs]

    @property
    def waiting(self) -> InboxItem | None:
        """The open question, if any."""
        return self.result.waiting


def attachment(
    ref: FileRef | Mapping[str, Any] | None, reading: NoteSources, *, recent: bool = True
) -> Attachment | None:
    """The file that a record names, with the end of its text if recent and the note is full."""
    if ref is None:
        return None
    if not isinstance(ref, FileRef):
        try:
            ref = FileRef.model_validate(ref)
        except ValidationError:
            return None
    full = recent and reading.spec.runner.note.detail == "full"
    return Attachment(ref.path, ref.size, end_of(reading.tail(ref), ref.size) if full else "")


def end_of(text: str, size: int) -> str:
    """Return the end of a text, from a line start if possible; `…` stands for the rest.

    `size` is the size in bytes of the file that `text` is the end of.
    """
    kept = text[-TAIL_CHARS:]
    if len(kept) == len(text) and len(text.encode("utf-8", "replace")) >= size:
        return kept
    _, newline, rest = kept.partition("\n")
    return f"…\n{rest if newline and rest.strip() else kept}"


def local_time(text: str, now: datetime) -> str:
    """Format an ISO 8601 time in the zone of `now`: "2026-11-21 14:02:10 +09:00", or as it is."""
    if (found := moment(text)) is None:
        return text
    local = found.astimezone(now.tzinfo)
    return f"{local:%Y-%m-%d %H:%M:%S} {_offset(local)}"


def period(start: str, now: datetime) -> str:
    """Format the time from `start` until `now`: "2026-11-21 14:02–14:21 +09:00"."""
    if (found := moment(start)) is None:
        return f"{now:%Y-%m-%d %H:%M} {_offset(now)}"
    begun = found.astimezone(now.tzinfo)
    end = f"{now:%H:%M}" if begun.date() == now.date() else f"{now:%Y-%m-%d %H:%M}"
    return f"{begun:%Y-%m-%d %H:%M}–{end} {_offset(now)}"


def _offset(local: datetime) -> str:
    offset = f"{local:%z}"
    return f"{offset[:3]}:{offset[3:5]}" if offset else ""
