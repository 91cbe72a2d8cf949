"""What the gateway counted: one JSON line per call, and their sum.

A call that is sent on has a line of its own before that, `{"begun": …}`, so that one is known of
whose end a gateway that was killed could not tell.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

ErrorClass = Literal[
    "auth", "model", "quota", "overload", "context", "request", "server", "network", "budget",
    "replay",
]  # fmt: skip
"""Why a call failed.

`auth`: the key is refused. `model`: there is no such model, or not for this key. `quota`: a rate
limit or an empty account. `overload`: the provider is too busy. `context`: the conversation is
too long. `request`: the provider refuses what was asked. `server`: the provider fails. `network`:
it cannot be reached. `budget`: the run's own limit; nothing was sent. `replay`: the request is
not the recorded one.
"""


@dataclass(frozen=True)
class Call:
    """One call of a worker's model."""

    ts: str
    """When it ended: UTC, ISO 8601."""
    label: str
    """The worker run that made it."""
    n: int
    """Counts the calls of one worker run in the order they began, from 1."""
    path: str
    model: str
    status: int
    """Of the reply; 0 where the worker went away before there was one."""
    duration_ms: int
    input_tokens: int | None
    """All that was read; None where the reply does not tell, as for the other two."""
    cached_tokens: int | None
    output_tokens: int | None
    usd: float | None
    """None where tokens or price are not known, never a guess; 0 for a call that was refused."""
    error: ErrorClass | None = None
    reset_at: str | None = None
    """When a quota is there again: UTC, ISO 8601."""
    detail: str = ""
    """A sentence about the error, without secrets."""
    metered: bool = True
    """False for what costs nothing: lists of models, counts of tokens."""

    @property
    def unknown(self) -> bool:
        """Whether a reply began, or may have, and did not say what was used."""
        return self.metered and self.input_tokens is None and self.status < 400

    @property
    def sent(self) -> bool:
        """Whether it went out at all; the gateway itself refuses some."""
        return self.error not in ("budget", "replay")


@dataclass(frozen=True)
class ModelUsage:
    """The sum over the calls of one model that were sent. What costs nothing is left out."""

    calls: int = 0
    unknown_calls: int = 0
    """Calls whose reply told no token counts."""
    input_tokens: int = 0
    cached_tokens: int = 0
    """The part of `input_tokens` that came from a cache."""
    output_tokens: int = 0
    known_usd: float = 0
    unpriced_calls: int = 0
    """Calls whose cost is not known, for want of a price or of token counts."""

    @property
    def usd(self) -> float | None:
        """What the calls cost; None where that is not known of each of them."""
        return None if self.unpriced_calls else self.known_usd


@dataclass(frozen=True)
class Usage(ModelUsage):
    """The sum over the calls of one worker run."""

    by_model: Mapping[str, ModelUsage] = field(default_factory=dict)
    last_error: Call | None = None
    """The last call, if it failed: what a worker that then gave up has died of."""


def read_usage(path: Path) -> Usage:
    """The sum of a usage log; nothing where there is none."""
    return total(read_calls(path))


def read_calls(path: Path) -> list[Call]:
    """Every call of a usage log in the order of their ends, then those that have none.

    Lines cut by a crash are left out.
    """
    ended, lost = read_log(path)
    return [*ended, *lost]


def read_log(path: Path) -> tuple[list[Call], list[Call]]:
    """The calls that ended, and those that began and are at work still or were lost."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return [], []
    ended: list[Call] = []
    begun: dict[tuple[str, int], Call] = {}
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


def total(calls: Iterable[Call]) -> Usage:
    """The sum over calls."""
    metered = [call for call in calls if call.metered]
    sent = [call for call in metered if call.sent]
    models = sorted({call.model for call in sent})
    by_model = {model: _sum(call for call in sent if call.model == model) for model in models}
    last = metered[-1] if metered else None
    return Usage(
        **asdict(_sum(sent)),
        by_model=by_model,
        last_error=last if last is not None and last.error else None,
    )


class UsageLog:
    """Appends calls to the log, each in one write."""

    def __init__(self, path: Path) -> None:
        """Make the file where there is none; a half-written last line is closed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")

    def append(self, call: Call, *, begins: bool = False) -> None:
        """Write one line: a call that ended, or one that `begins`.

        Raises OSError where the disk is full.
        """
        line = {"begun": asdict(call)} if begins else asdict(call)
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        """Release the file."""
        os.close(self._file)


def _call(line: bytes) -> tuple[Call | None, bool]:
    """The call of a line, and whether it only begins there."""
    try:
        fields: Any = json.loads(line)
        begins = "begun" in fields
        return Call(**(fields["begun"] if begins else fields)), begins
    except (ValueError, TypeError):
        return None, False


def _sum(calls: Iterable[Call]) -> ModelUsage:
    calls = list(calls)
    return ModelUsage(
        calls=len(calls),
        unknown_calls=sum(call.unknown for call in calls),
        input_tokens=sum(_numbers(call.input_tokens for call in calls)),
        cached_tokens=sum(_numbers(call.cached_tokens for call in calls)),
        output_tokens=sum(_numbers(call.output_tokens for call in calls)),
        known_usd=sum(call.usd for call in calls if call.usd is not None),
        unpriced_calls=sum(call.usd is None for call in calls),
    )


def _numbers(values: Iterable[int | None]) -> Iterator[int]:
    return (value for value in values if value is not None)
