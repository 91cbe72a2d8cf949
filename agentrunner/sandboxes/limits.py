"""The limits of a sandbox, and what enforces them: a cgroup, or resource limits of the kernel."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentrunner.errors import UsageError
from agentrunner.errors.task_files import BadLimit
from agentrunner.sandboxes.base import ResourceLimit
from agentrunner.sandboxes.cgroups import Group, Hierarchy, Limit, hold
from agentrunner.sandboxes.disk import DiskWatch

PRLIMIT = "/usr/bin/prlimit"
DEFAULT_PIDS = 512
"""Processes and threads of a sandbox, where a cgroup limits them and the task sets no limit."""
DISK = "10g"
"""By how much a work tree may grow where the task sets no limit."""
UNLIMITED = "unlimited"
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_NAMES = {"memory": "memory", "cpu": "cpus", "pids": "pids"}
"""From the kernel's names to ours."""


def memory_bytes(text: str, name: str = "memory") -> int:
    """Return "512m" or "1.5g" as bytes; raises UsageError that names `runner.sandbox.<name>`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([bkmg]?)", text.strip().lower())
    size = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    if size == 0:
        raise BadLimit(
            f'"{text}" is not an amount of {name}.',
            path=f"runner.sandbox.{name}",
            remedy='write a number and a unit, as in "512m" or "4g"',
        )
    return size


@dataclass(frozen=True)
class HeldLimits:
    """The limits of a sandbox, and what enforces each."""

    means: Mapping[str, str]
    """For people: "memory", "cpus", "pids" and "disk" to "4g, cgroup v1" or "unlimited"."""
    groups: tuple[Group, ...] = ()
    prefix: tuple[str, ...] = ()
    """Words before a command that set its rlimits."""

    def describe(self) -> str:
        """Return the limits for the header: "memory 4g (cgroup v1)"; "" where there are none."""
        parts = [(n, *m.partition(", ")) for n, m in self.means.items() if m != UNLIMITED]
        return ", ".join(f"{name} {amount} ({by})" for name, amount, _, by in parts)


def hold_limits(limits: ResourceLimit, hierarchies: Sequence[Hierarchy]) -> HeldLimits:
    """Enforce the limits by cgroups where these can be made, or else by rlimits.

    Raises UsageError for a limit that neither can enforce, so that none is promised in vain.
    """
    wanted = [Limit("pids", limits.pids or DEFAULT_PIDS)]
    if limits.memory:
        wanted.append(Limit("memory", memory_bytes(limits.memory)))
    if limits.cpus is not None:
        wanted.append(Limit("cpu", limits.cpus))
    holding = hold(wanted, hierarchies)
    by_cgroup = {_NAMES[name]: version for name, version in holding.versions.items()}
    rest = replace(limits, **dict.fromkeys(by_cgroup))
    if rest.cpus is not None:
        why = f"a share of the processors needs a cgroup ({holding.refused['cpu']})"
        raise _cannot("cpus", why)
    plain = hold_by_rlimits(rest)
    asked = {
        "memory": limits.memory,
        "cpus": limits.cpus and f"{limits.cpus:g}",
        "pids": limits.pids or DEFAULT_PIDS,
    }
    means = {name: f"{asked[name]}, cgroup v{version}" for name, version in by_cgroup.items()}
    return HeldLimits({**plain.means, **means}, holding.groups, plain.prefix)


def hold_by_rlimits(limits: ResourceLimit) -> HeldLimits:
    """Enforce the limits by means that work for every process of an ordinary user.

    Memory is limited by RLIMIT_DATA, which applies to each process separately; RLIMIT_AS is useless
    because Node and the JVM reserve far more address space than they use. Processes are limited by
    RLIMIT_NPROC, which the kernel does not apply to root. Raises UsageError for a limit that cannot
    be enforced this way.
    """
    if limits.cpus is not None:
        raise _cannot("cpus", "a share of the processors needs a cgroup")
    if limits.pids is not None and os.geteuid() == 0:
        raise _cannot("pids", "the kernel exempts root from it")
    means = dict.fromkeys(("memory", "cpus", "pids", "disk"), UNLIMITED)
    words = []
    if limits.memory:
        words.append(f"--data={memory_bytes(limits.memory)}")
        means["memory"] = f"{limits.memory}, rlimit, each process"
    if limits.pids is not None:
        words.append(f"--nproc={limits.pids}")
        means["pids"] = f"{limits.pids}, rlimit"
    if limits.disk:
        memory_bytes(limits.disk, "disk")
        means["disk"] = f"{limits.disk}, watched"
    if words and not os.access(PRLIMIT, os.X_OK):
        raise _cannot("memory" if limits.memory else "pids", f"{PRLIMIT} is missing")
    return HeldLimits(means, prefix=(PRLIMIT, *words, "--") if words else ())


def watch_disk(limits: ResourceLimit, *folders: Path) -> DiskWatch | None:
    """Return a watch over what one command writes below `folders`; None without a disk limit."""
    return DiskWatch(folders, memory_bytes(limits.disk, "disk")) if limits.disk else None


def _cannot(name: str, why: str) -> UsageError:
    return BadLimit(
        f"This sandbox cannot limit {name}: {why}.",
        path=f"runner.sandbox.{name}",
        remedy=f"leave {name} out",
    )
