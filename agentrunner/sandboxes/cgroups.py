"""Finds out where this process may make cgroups, by making one.

Cgroup v1 lets root do so. For v2, our own cgroup or one above it must belong to us (delegated, as
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
    """A tree of cgroups that is mounted here, and our position in it."""

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
    """Its files, and what is written to them."""

    @property
    def words(self) -> tuple[str, ...]:
        """The options for `enter`: the parent, and each FILE=VALUE."""
        return (str(self.parent), *(f"{file}={value}" for file, value in self.settings))


@dataclass(frozen=True)
class Limit:
    """What one controller must limit: bytes, processors or processes."""

    controller: str
    amount: float

    def settings(self, version: int) -> tuple[tuple[str, str], ...]:
        """Return the files that set the limit, in the order in which they must be written."""
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
"""These are missing where the kernel does not account for swap."""


@dataclass(frozen=True)
class Holding:
    """What cgroups can limit, by controller."""

    groups: tuple[Group, ...]
    versions: Mapping[str, int]
    """The cgroup version that enforces each limit."""
    refused: Mapping[str, str]
    """Why a limit cannot be enforced, in the system's words."""


def hold(limits: Sequence[Limit], hierarchies: Sequence[Hierarchy]) -> Holding:
    """Return groups that enforce as many of the limits as possible; each was tried out."""
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
    """Return the attempt that enforces the most; of equals, the one nearest to us."""
    parents = iter(_parents(hierarchy))
    best = _try(hierarchy, next(parents), limits)
    for parent in parents:
        if not best.refused:
            break
        best = min(best, _try(hierarchy, parent, limits), key=lambda each: len(each.refused))
    return best


def _parents(hierarchy: Hierarchy) -> list[Path]:
    """Return where a group may be made: below our own. In v2 also beside it or further up,
    because a group with processes passes no controllers on."""
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
            # This works in the root of a machine; elsewhere our own processes prevent it.
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
    """Write the settings, and return those that exist; raises OSError."""
    there = [(f, value) for f, value in settings if f not in OPTIONAL or (group / f).exists()]
    for file, value in there:
        (group / file).write_text(value)
    return there


def _enter(group: Path) -> None:
    """Let a process enter the group; raises OSError with the reason if it cannot."""
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
    """Return the trees mounted here that have controllers we use."""
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
            found.append(Hierarchy(version, held, top, _visible_path(top, root, place)))
    return found


def _visible_path(top: Path, root: str, place: str) -> Path:
    """Return the path of a cgroup, if `root` of the tree is mounted at `top`."""
    relative = os.path.relpath(place, root)
    # It is outside what we see, as in a container with the host's names: the top is ours.
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
    """Return the message without its number; for a folder made for this trial, name its parent."""
    if not error.filename:
        return str(error)
    return f"{error.strerror}: {Path(error.filename).parent}"
