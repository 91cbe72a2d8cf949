"""Processes on this host: who descends from whom, and how to end them all."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class _Entry:
    pid: int
    state: str
    parent: int
    session: int


def children(pid: int) -> list[int]:
    """Return the direct children, the oldest first; empty where the kernel cannot tell."""
    try:
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(word) for word in words]


def family(root: int) -> list[int]:
    """Return the descendants of `root` and the members of its session, without zombies.

    A process that left the session and whose parent has died is not found: only a PID namespace can
    contain it.
    """
    entries = _entries()
    members = {root}
    grown = True
    while grown:
        more = {e.pid for e in entries if e.parent in members or e.session == root}
        grown = not more <= members
        members |= more
    return [e.pid for e in entries if e.pid in members and e.state != "Z"]


def signal_family(root: int, signum: signal.Signals) -> None:
    """Send a signal to every member of the family."""
    for pid in family(root):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def kill_family(root: int) -> None:
    """SIGKILL every member of the family. They are stopped first, until no new one turns up.

    A process forked between a look and a kill would be an orphan by the next look, and be missed.
    """
    known: set[int] = set()
    for _ in range(20):
        members = set(family(root))
        if members <= known:
            break
        known |= members
        signal_family(root, signal.SIGSTOP)
    for pid in known:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def hold_family(root: int) -> list[int]:
    """Return pidfds of the current members, which stay correct when a pid is reused."""
    held = []
    for pid in family(root):
        with contextlib.suppress(ProcessLookupError):
            held.append(os.pidfd_open(pid))
    return held


def kill_held(held: list[int]) -> None:
    """SIGKILL the processes that are still there, and close the descriptors."""
    for descriptor in held:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.close(descriptor)


def _entries() -> list[_Entry]:
    found = []
    for folder in os.listdir("/proc"):  # noqa: PTH208 - 200 names, after every command
        if not folder.isdecimal():
            continue
        try:
            stat = Path(f"/proc/{folder}/stat").read_text(errors="replace")
        except OSError:
            continue
        state, parent, _group, session, *_ = stat.rpartition(")")[2].split()
        found.append(_Entry(int(folder), state, int(parent), int(session)))
    return found
