"""The processes in a container, from the kernel's own list, if we can read it.

The engine starts `ps` to answer the same question, which takes longer than most commands.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def member_list(container: str, first: int, proc: Path = PROC) -> Path | None:
    """Return the file that lists the processes of a container, whose first process is `first`.

    None if the engine has other processes than this machine, or the cgroups are invisible: then the
    number may be any process's.
    """
    with contextlib.suppress(OSError):
        for place in _groups(first, proc):
            file = place / "cgroup.procs"
            if container in place.name and str(first) in file.read_text("ascii").split():
                return file
    return None


def users_in(members: Path, proc: Path = PROC) -> list[int] | None:
    """Return the uid of each process in a list; None if it cannot be read."""
    uids = []
    try:
        pids = members.read_text("ascii").split()
    except OSError:
        return None
    for pid in pids:
        try:
            status = (proc / pid / "status").read_text("utf-8", "replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            return None
        found = re.search(r"^Uid:\s+(\d+)", status, re.MULTILINE)
        if found is None:
            return None
        uids.append(int(found[1]))
    return uids


def _groups(pid: int, proc: Path) -> Iterator[Path]:
    """Yield where the cgroups of a process are mounted, if they are mounted here."""
    mounted: dict[str, Path] = {}
    for line in (proc / "self" / "mounts").read_text("utf-8", "replace").splitlines():
        _, place, kind, options, *_ = line.split(" ")
        if kind in ("cgroup", "cgroup2"):
            for name in options.split(",") if kind == "cgroup" else ("",):
                mounted.setdefault(name, Path(place))
    for line in (proc / str(pid) / "cgroup").read_text("utf-8", "replace").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            if name in mounted:
                yield mounted[name] / path.lstrip("/")
