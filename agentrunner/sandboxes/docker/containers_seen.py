"""Who lives in a container, by the kernel's own list, where that is ours to read.

The engine starts `ps` to answer the same question, which takes longer than most commands.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def member_list(container: str, first: int, proc: Path = PROC) -> Path | None:
    """The file that lists the processes of a container, whose first one is `first`.

    None where this machine's processes are not the engine's, or its cgroups not to be seen:
    then the number may be anybody's.
    """
    with contextlib.suppress(OSError):
        for place in _groups(first, proc):
            file = place / "cgroup.procs"
            if container in place.name and str(first) in file.read_text("ascii").split():
                return file
    return None


def users_in(members: Path, proc: Path = PROC) -> list[int] | None:
    """The uids of the processes in a list, one each; None where it cannot be read."""
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
    """Where the cgroups of a process are mounted, as far as they are here."""
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
