"""When a process started, by which it is told from a later one of the same number.

Standard library only, for the supervisor. `sandboxes/enter` has its own reader: it starts without
the module for paths, and counts a zombie as ended.
"""

from __future__ import annotations

from pathlib import Path


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if there is none.

    It may be called on the event loop of a served graph, which allows no `os.read`.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return int(stat.rpartition(b")")[2].split()[19])
