"""What the gateway counted: one JSON line per call. `money.usage` adds them up.

A call that is sent on first gets a line `{"begun": …}`, so that it is known even if the gateway is
killed before the call ends.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

ErrorClass = Literal[
    "auth", "model", "quota", "overload", "context", "request", "server", "network", "budget",
    "replay",
]  # fmt: skip
"""Why a call failed.

`auth`: the key is refused. `model`: there is no such model, or not for this key. `quota`: a rate
limit or an empty account. `overload`: the provider is too busy. `context`: the conversation is too
long. `request`: the provider refuses the request. `server`: the provider fails. `network`: it
cannot be reached. `budget`: the run's own limit; nothing was sent. `replay`: the request is not the
recorded one.
"""


@dataclass(frozen=True)
class ModelCall:
    """One call of a worker's model."""

    ts: str
    """When it ended: UTC, ISO 8601."""
    label: str
    """The worker run that made it."""
    n: int
    """The number of the call in its worker run, in the order they began, from 1."""
    path: str
    model: str
    status: int
    """The reply's status; 0 if the worker went away before there was one."""
    duration_ms: int
    input_tokens: int | None
    """Everything read; None if the reply does not say, like the next two."""
    cached_tokens: int | None
    output_tokens: int | None
    usd: float | None
    """None if tokens or price are unknown, never a guess; 0 for a refused call."""
    error: ErrorClass | None = None
    reset_at: str | None = None
    """When a quota is available again: UTC, ISO 8601."""
    detail: str = ""
    """A sentence about the error, without secrets."""
    metered: bool = True
    """False for calls that cost nothing: lists of models, counts of tokens."""

    @property
    def unknown(self) -> bool:
        """Whether a reply began, or may have, without reporting its usage."""
        return self.metered and self.input_tokens is None and self.status < 400

    @property
    def sent(self) -> bool:
        """Whether it was sent at all; the gateway itself refuses some."""
        return self.error not in ("budget", "replay")


def read_calls(path: Path) -> list[ModelCall]:
    """Return every call of a usage log in the order of their ends, then those without an end.

    Lines cut by a crash are left out.
    """
    ended, lost = read_log(path)
    return [*ended, *lost]


def read_log(path: Path) -> tuple[list[ModelCall], list[ModelCall]]:
    """Return the calls that ended, and those that began and are unfinished or lost."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return [], []
    ended: list[ModelCall] = []
    begun: dict[tuple[str, int], ModelCall] = {}
    for line in lines:
        call, begins = _call(line)
        if call is None:
            continue
        if begins:
            begun[call.label, call.n] = call
        else:
            begun.pop((call.label, call.n), None)
            ended.append(call)
    return ended, list(begun.values())


class UsageLog:
    """Appends calls to the log, each in one write."""

    def __init__(self, path: Path) -> None:
        """Create the file if there is none; end a half-written last line."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")

    def append(self, call: ModelCall, *, begins: bool = False) -> None:
        """Write one line: a call that ended, or one that `begins`.

        Raises OSError if the disk is full.
        """
        line = {"begun": asdict(call)} if begins else asdict(call)
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)


def _call(line: bytes) -> tuple[ModelCall | None, bool]:
    """Return the call of a line, and whether it only begins there."""
    try:
        fields: Any = json.loads(line)
        begins = "begun" in fields
        return ModelCall(**(fields["begun"] if begins else fields)), begins
    except (ValueError, TypeError):
        return None, False
