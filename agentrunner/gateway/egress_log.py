"""The record of a sandbox's connection requests: one JSON line per decision, and counts by host.

    {"ts": …, "label": …, "decision": "allowed", "host": …, "port": …, "address": …}
    {"ts": …, "label": …, "decision": "closed", "host": …, "port": …, "address": …,
     "up": bytes, "down": bytes, "seconds": …}
    {"ts": …, "label": …, "decision": "refused", "host": …, "port": …, "reason": …}
    {"ts": …, "label": …, "decision": "failed", …}      allowed, but it could not be reached

A worker may ask endlessly, so repeated decisions are folded: after the eighth time a line stands
for as many as its `count` says, and lines are written at the 16th, 32nd, 64th … time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

Decision = Literal["allowed", "closed", "refused", "failed"]

SINGLE = 8
"""This many equal decisions have a line each."""
MOST_KINDS = 256
"""The most different decisions that are distinguished; the rest count for the host "*"."""
OTHERS = "*"


class Entry(Struct, frozen=True):
    """A decision about a host. Entries that differ only in numbers are folded."""

    decision: Decision
    host: str
    port: int
    reason: str = ""
    """Why not: a word, as in the header `x-agentrunner-error`."""
    address: str = ""
    """The address that was dialled, or would have been."""


class _Pending(Struct):
    seen: int = 0
    written: int = 0
    sums: dict[str, float] = field(default_factory=dict)


class EgressLog:
    """Appends to one file; other processes may do so too."""

    def __init__(self, path: Path, label: str, now: Callable[[], str]) -> None:
        """Open or create the file, for its owner only; raises OSError. `now` returns UTC."""
        self._label = label
        self._now = now
        self._pending: dict[Entry, _Pending] = {}
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, b"\n")  # a crash cut the last line

    def add(self, entry: Entry, **numbers: float) -> None:
        """Record a decision; raises OSError if it cannot be written."""
        if entry not in self._pending and len(self._pending) >= MOST_KINDS:
            entry = Entry(entry.decision, OTHERS, 0, entry.reason)
        pending = self._pending.setdefault(entry, _Pending())
        pending.seen += 1
        for name, number in numbers.items():
            pending.sums[name] = pending.sums.get(name, 0) + number
        if pending.seen <= SINGLE or not pending.seen & (pending.seen - 1):
            self._write(entry, pending)

    def close(self) -> None:
        """Write what is still folded."""
        for entry, pending in self._pending.items():
            if pending.seen > pending.written:
                with suppress(OSError):
                    self._write(entry, pending)
        os.close(self._fd)

    def _write(self, entry: Entry, pending: _Pending) -> None:
        line: dict[str, Any] = {"ts": self._now(), "label": self._label}
        line |= {"decision": entry.decision, "host": entry.host, "port": entry.port}
        line |= {key: text for key in ("reason", "address") if (text := getattr(entry, key))}
        line |= {name: round(number, 3) for name, number in pending.sums.items()}
        if (count := pending.seen - pending.written) > 1:
            line["count"] = count
        os.write(self._fd, json.dumps(line).encode() + b"\n")
        pending.written = pending.seen
        pending.sums.clear()


class HostUse(Struct, frozen=True):
    """How a host was used, over all commands of a run."""

    host: str
    """Its name, or what was requested instead of one; "*" for those beyond the limit."""
    port: int
    allowed: int
    """Connections made."""
    refused: int
    reason: str
    """The reason of the last refusal or failure; "" if there was none."""
    bytes: int
    """Both ways, of connections that have ended."""
    address: str = ""
    """That was dialled last, or would have been."""

    @property
    def entry(self) -> str:
        """What allows it, as an entry of a list."""
        pinned = f"@{self.address}" if self.reason == "not_public" else ""
        return f"{self.host}:{self.port}{pinned}"


def read_egress(path: Path, label: str = "") -> list[HostUse]:
    """Return the requested hosts, by first request; [] without a file. Never raises.

    With a `label`, only those of that worker run or command. Unreadable lines are skipped.
    """
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for line in _lines(path):
        with suppress(KeyError, TypeError, ValueError):
            key = (str(line["host"]), int(line["port"]))
            if label not in ("", line["label"]):
                continue
            decision, count = line["decision"], int(line.get("count", 1))
            size = int(line.get("up", 0)) + int(line.get("down", 0))
            use = found.setdefault(key, {"allowed": 0, "refused": 0, "reason": "", "bytes": 0})
            use["bytes"] += size
            use |= {key: str(line[key]) for key in ("reason", "address") if key in line}
            if decision in ("allowed", "refused"):
                use[decision] += count
    return [HostUse(host, port, **use) for (host, port), use in found.items()]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        file = path.open("rb")
    except OSError:
        return
    with file:
        for line in file:
            with suppress(ValueError):
                yield json.loads(line)
