"""What a further run in one process costs in memory, as far as the C library decides it."""

from __future__ import annotations

import contextlib
import ctypes
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Of glibc's malloc.h."""
ARENAS = 1
"""Else glibc opens one per thread. Python's threads wait for its own lock, not for an arena's."""
LARGE = 1 << 16
"""Bytes; what is larger goes back to the system once it is free."""


@cache
def be_frugal() -> None:
    """Ask malloc for few arenas, once per process. Another C library stays as it is."""
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        settings = {M_ARENA_MAX: ARENAS, M_TRIM_THRESHOLD: LARGE, M_MMAP_THRESHOLD: LARGE}
        for option, value in settings.items():
            libc.mallopt(option, value)
