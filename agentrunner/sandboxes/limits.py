"""What plain resource limits of the kernel can hold: memory and processes, without a cgroup."""

from __future__ import annotations

import os
import re

from agentrunner.errors import UsageError
from agentrunner.sandboxes.base import ResourceLimit

PRLIMIT = "/usr/bin/prlimit"
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def memory_bytes(text: str) -> int:
    """ "512m" as bytes; raises UsageError."""
    match = re.fullmatch(r"(\d+)([bkmg]?)", text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise UsageError(
            f'"{text}" is not an amount of memory.',
            code="limit",
            path="runner.sandbox.memory",
            remedy='write a whole number and a unit, as in "512m" or "4g"',
        )
    return int(match[1]) * _UNITS[match[2]]


def limit_prefix(limits: ResourceLimit) -> tuple[str, ...]:
    """The words before a command that set its limits; empty where there are none.

    Memory is RLIMIT_DATA, so each process of its own may take that much; RLIMIT_AS is of no
    use, since Node and the JVM reserve far more address space than they touch. Processes are
    RLIMIT_NPROC, which the kernel does not apply to root. Raises UsageError for what cannot be
    held this way, rather than to promise it.
    """
    if limits.cpus is not None:
        raise _cannot("cpus", "a share of the processors needs a cgroup")
    if limits.pids is not None and os.geteuid() == 0:
        raise _cannot("pids", "the kernel exempts root from it")
    words = []
    if limits.memory:
        words.append(f"--data={memory_bytes(limits.memory)}")
    if limits.pids is not None:
        words.append(f"--nproc={limits.pids}")
    if not words:
        return ()
    if not os.access(PRLIMIT, os.X_OK):
        raise _cannot("memory" if limits.memory else "pids", f"{PRLIMIT} is missing")
    return (PRLIMIT, *words, "--")


def describe_limits(limits: ResourceLimit) -> str:
    """For the header: "memory 4g per process (rlimit)"; empty where there are none."""
    parts = []
    if limits.memory:
        parts.append(f"memory {limits.memory} per process (rlimit)")
    if limits.pids is not None:
        parts.append(f"at most {limits.pids} processes (rlimit)")
    return ", ".join(parts)


def _cannot(name: str, why: str) -> UsageError:
    return UsageError(
        f"This sandbox cannot limit {name}: {why}.",
        code="limit",
        path=f"runner.sandbox.{name}",
        remedy=f"leave {name} out",
    )
