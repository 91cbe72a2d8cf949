"""When a process started, by which it is told from a later one of the same number.

Standard library only, for the supervisor. `sandboxes/enter` has its own reader: it starts without
the module for paths, and counts a zombie as ended.
"""

from __future__ import annotations

import os
import time
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


def age_sec() -> float:
    """Return for how many seconds this process has been running; 0 where that cannot be read."""
    started = start_time(os.getpid())
    if started is None:
        return 0.0
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return max(since_boot - started / os.sysconf("SC_CLK_TCK"), 0.0)
