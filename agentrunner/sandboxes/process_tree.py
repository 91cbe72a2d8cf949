"""Processes on this host: who descends from whom, and how to end them all.

Standard library only, for the supervisor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
BOUND = ("box", "layers", "rooms")
"""Folders of a run that only the sandboxes of its driver bind."""
HOMES = (*BOUND, "set-up-home")
"""Where the home of a command without a sandbox can be."""


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class ProcessIds(NamedTuple):
    """The ids of a living process."""

    parent: int
    group: int
    session: int


def process_table() -> dict[int, ProcessIds]:
    """Return every living process that we can see.

    It is asked for whenever a command without a box ends, so it works on bytes alone.
    """
    table = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                text = _proc(name, "stat").rpartition(b")")[2]
            except OSError:
                continue
            state, parent, group, session = text.split(None, 4)[:4]
            if state not in (b"Z", b"X"):
                table[int(name)] = ProcessIds(int(parent), int(group), int(session))
    return table


def descendants(top: int, table: dict[int, ProcessIds]) -> list[int]:
    """Return all processes below `top`."""
    found: list[int] = []
    level = [top]
    while level:
        level = [pid for pid, facts in table.items() if facts.parent in level]
        found += level
    return found


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def children(pid: int) -> list[int]:
    """Return the direct children, the oldest first; empty where the kernel cannot tell."""
    try:
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(word) for word in words]


def family(root: int) -> list[int]:
    """Return the descendants of `root`, the members of its session, and theirs.

    A process that left the session and whose parent has died is not found: only a PID namespace can
    contain it.
    """
    table = process_table()
    members = {root}
    grown = True
    while grown:
        more = {
            pid for pid, facts in table.items() if facts.parent in members or facts.session == root
        }
        grown = not more <= members
        members |= more
    return [pid for pid in table if pid in members]


def signal_family(root: int, signum: signal.Signals) -> None:
    """Send a signal to every member of the family."""
    for pid in family(root):
        send(pid, signum)


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
        send(pid, signal.SIGKILL)


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


def kill_orphans(run: Path) -> list[int]:
    """Kill what a killed driver left of a run's sandboxes; `run` is the run's folder.

    Bubblewrap ends with its parent, except in the moment between making its child and releasing it:
    that child then waits forever. Without a sandbox nothing ends a check with its driver. Call this
    only while no driver and no supervisor of the run can be alive.
    """
    bound, homes = _below(run, BOUND), _below(run, HOMES)
    orphans = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and int(name) != os.getpid() and _is_of_run(name, bound, homes):
            send(int(name), signal.SIGKILL)
            orphans.append(int(name))
    return orphans


def _is_of_run(pid: str, bound: tuple[bytes, ...], homes: tuple[bytes, ...]) -> bool:
    """Whether it is a bubblewrap that binds one of the folders `bound`, or has HOME in `homes`.

    This is asked of every process of the machine, so it works on bytes alone.
    """
    try:
        words = _proc(pid, "cmdline").split(b"\0")
        if b"--die-with-parent" in words and any((word + b"/").startswith(bound) for word in words):
            return True
        environ = _proc(pid, "environ").split(b"\0")
    except OSError:
        return False
    return any(
        (line.removeprefix(b"HOME=") + b"/").startswith(homes)
        for line in environ
        if line.startswith(b"HOME=")
    )


def _proc(pid: str, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def _below(run: Path, names: Sequence[str]) -> tuple[bytes, ...]:
    """Return what the paths of these folders and their contents, with `/` appended, begin with."""
    return tuple(os.fsencode(run / name) + b"/" for name in names)
