"""What a sandbox may use, and what holds it there: a cgroup, or resource limits of the kernel."""

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
"""Processes and threads of a sandbox, where a cgroup holds them and nothing else is asked for."""
DISK = "10g"
"""By how much a work tree may grow where nothing else was asked for."""
UNLIMITED = "unlimited"
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_NAMES = {"memory": "memory", "cpu": "cpus", "pids": "pids"}
"""The kernel's names and ours."""


def memory_bytes(text: str, name: str = "memory") -> int:
    """ "512m" or "1.5g" as bytes; raises UsageError that names `runner.sandbox.<name>`."""
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
    """The limits of a sandbox, and what holds each."""

    means: Mapping[str, str]
    """For people: "memory", "cpus", "pids" and "disk" to "4g, cgroup v1" or "unlimited"."""
    groups: tuple[Group, ...] = ()
    prefix: tuple[str, ...] = ()
    """Words before a command that set its rlimits."""

    def describe(self) -> str:
        """For the header: "memory 4g (cgroup v1)"; empty where there are none."""
        parts = [(n, *m.partition(", ")) for n, m in self.means.items() if m != UNLIMITED]
        return ", ".join(f"{name} {amount} ({by})" for name, amount, _, by in parts)


def hold_limits(limits: ResourceLimit, hierarchies: Sequence[Hierarchy]) -> HeldLimits:
    """Hold them by cgroups where these can be made, else by rlimits.

    Raises UsageError for what neither can hold, rather than to promise it.
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
    """Hold them by what every process of an ordinary user can be given.

    Memory is RLIMIT_DATA, so each process of its own may take that much; RLIMIT_AS is of no
    use, since Node and the JVM reserve far more address space than they touch. Processes are
    RLIMIT_NPROC, which the kernel does not apply to root. Raises UsageError for what cannot be
    held this way.
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
    """The watch over what one command may write below `folders`; None where there is no limit."""
    return DiskWatch(folders, memory_bytes(limits.disk, "disk")) if limits.disk else None


def _cannot(name: str, why: str) -> UsageError:
    return BadLimit(
        f"This sandbox cannot limit {name}: {why}.",
        path=f"runner.sandbox.{name}",
        remedy=f"leave {name} out",
    )
