"""Where this process may make cgroups, found out by making one.

Cgroup v1 lets root do so. Of v2 the own cgroup or one above it must be ours (delegated, as
`systemd-run --user --scope` does) and pass the controllers on.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentrunner.sandboxes.enter import make_group, remove_group

CONTROLLERS = ("memory", "cpu", "pids")
CPU_PERIOD_US = 100_000
ENTER_SEC = 10.0


@dataclass(frozen=True)
class Hierarchy:
    """A tree of cgroups that is mounted here, and where in it we are."""

    version: int
    controllers: frozenset[str]
    top: Path
    own: Path


@dataclass(frozen=True)
class Group:
    """A cgroup that can be made for each command."""

    version: int
    parent: Path
    settings: tuple[tuple[str, str], ...]
    """Files of it, and what is written to them."""

    @property
    def words(self) -> tuple[str, ...]:
        """For `enter`: the parent, and each FILE=VALUE."""
        return (str(self.parent), *(f"{file}={value}" for file, value in self.settings))


@dataclass(frozen=True)
class Limit:
    """What one controller is to hold: bytes, processors or processes."""

    controller: str
    amount: float

    def settings(self, version: int) -> tuple[tuple[str, str], ...]:
        """The files that hold it, in the order in which they must be written."""
        number = str(int(self.amount))
        if self.controller == "pids":
            return (("pids.max", number),)
        if self.controller == "cpu":
            quota = str(int(self.amount * CPU_PERIOD_US))
            if version == 2:
                return (("cpu.max", f"{quota} {CPU_PERIOD_US}"),)
            return (("cpu.cfs_period_us", str(CPU_PERIOD_US)), ("cpu.cfs_quota_us", quota))
        if version == 2:
            return (("memory.max", number), ("memory.swap.max", "0"))
        return (("memory.limit_in_bytes", number), ("memory.memsw.limit_in_bytes", number))


OPTIONAL = frozenset({"memory.swap.max", "memory.memsw.limit_in_bytes"})
"""Where the kernel does not account for swap, these are not there."""


@dataclass(frozen=True)
class Holding:
    """What cgroups hold, by controller."""

    groups: tuple[Group, ...]
    versions: Mapping[str, int]
    """Of the cgroup that holds it."""
    refused: Mapping[str, str]
    """Why it is not held, in the system's words."""


def hold(limits: Sequence[Limit], hierarchies: Sequence[Hierarchy]) -> Holding:
    """Groups that hold as many of the limits as can be; each was tried out."""
    groups: list[Group] = []
    versions: dict[str, int] = {}
    refused = {limit.controller: "no such cgroup is mounted" for limit in limits}
    for hierarchy in hierarchies:
        wanted = [limit for limit in limits if limit.controller in hierarchy.controllers]
        if not wanted:
            continue
        best = _best(hierarchy, wanted)
        if best.group.settings:
            groups.append(best.group)
        refused |= best.refused
        for name in {limit.controller for limit in wanted} - set(best.refused):
            versions[name] = hierarchy.version
            del refused[name]
    return Holding(tuple(groups), versions, refused)


@dataclass(frozen=True)
class _Attempt:
    group: Group
    refused: Mapping[str, str]


def _best(hierarchy: Hierarchy, limits: Sequence[Limit]) -> _Attempt:
    """The attempt that holds the most; of several that do, the nearest to us."""
    parents = iter(_parents(hierarchy))
    best = _try(hierarchy, next(parents), limits)
    for parent in parents:
        if not best.refused:
            break
        best = min(best, _try(hierarchy, parent, limits), key=lambda each: len(each.refused))
    return best


def _parents(hierarchy: Hierarchy) -> list[Path]:
    """Where a group may be made: below our own, or in v2, where a group with processes passes no
    controllers on, beside it or further up.
    """
    if hierarchy.version == 1:
        return [hierarchy.own]
    above = [p for p in hierarchy.own.parents if p.is_relative_to(hierarchy.top)]
    return [hierarchy.own, *above]


def _try(hierarchy: Hierarchy, parent: Path, limits: Sequence[Limit]) -> _Attempt:
    """Make a group below `parent`, enter it, and set what can be set."""
    settings: list[tuple[str, str]] = []
    refused = {}
    if hierarchy.version == 2 and parent == hierarchy.own:
        for limit in limits:
            # Works in the root of a machine; elsewhere our own processes are in the way.
            with contextlib.suppress(OSError):
                (parent / "cgroup.subtree_control").write_text(f"+{limit.controller}")
    try:
        made = Path(make_group(str(parent), []))
    except OSError as error:
        reasons = dict.fromkeys((limit.controller for limit in limits), _words(error))
        return _Attempt(Group(hierarchy.version, parent, ()), reasons)
    try:
        for limit in limits:
            try:
                _enter(made)
                settings += _set(made, limit.settings(hierarchy.version))
            except OSError as error:
                refused[limit.controller] = _words(error)
    finally:
        remove_group(str(made))
    return _Attempt(Group(hierarchy.version, parent, tuple(settings)), refused)


def _set(group: Path, settings: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Write them, and return those that are there; raises OSError."""
    there = [(f, value) for f, value in settings if f not in OPTIONAL or (group / f).exists()]
    for file, value in there:
        (group / file).write_text(value)
    return there


def _enter(group: Path) -> None:
    """Let a process enter the group; raises OSError with the reason why it cannot."""
    words = ["/bin/sh", "-c", 'echo 0 > "$0/cgroup.procs"', str(group)]
    try:
        ended = subprocess.run(
            words, capture_output=True, text=True, timeout=ENTER_SEC, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(str(error)) from None
    if ended.returncode:
        raise OSError(ended.stderr.strip())


def hierarchies(process: Path = Path("/proc/self")) -> list[Hierarchy]:
    """The trees that are mounted here; those that hold controllers of ours."""
    own: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in (process / "cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            own |= dict.fromkeys(names.split(","), path)
    found = []
    for fs_type, root, top, options in _mounts(process):
        version = 2 if fs_type == "cgroup2" else 1
        if version == 2:
            with contextlib.suppress(OSError):
                options = (top / "cgroup.controllers").read_text().split()
        held = frozenset(options) & frozenset(CONTROLLERS)
        place = own.get("" if version == 2 else min(held, default="-"))
        if held and place is not None:
            found.append(Hierarchy(version, held, top, _inside(top, root, place)))
    return found


def _inside(top: Path, root: str, place: str) -> Path:
    """Where a cgroup is seen, if `root` of the tree is what is mounted at `top`."""
    relative = os.path.relpath(place, root)
    # Outside of what we see, as in a container with the host's names: its top is ours.
    return top if relative.startswith("..") else top / relative


def _mounts(process: Path) -> Iterator[tuple[str, str, Path, list[str]]]:
    with contextlib.suppress(OSError):
        for line in (process / "mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            fs_type, _, options = after.split(" ", 2)
            if fs_type in ("cgroup", "cgroup2"):
                _, _, _, root, top, *_ = before.split(" ")
                yield fs_type, root, Path(top), options.split(",")


def _words(error: OSError) -> str:
    """Without its number; of a place that was made up for this try the folder around it."""
    if not error.filename:
        return str(error)
    return f"{error.strerror}: {Path(error.filename).parent}"
