"""Limits the memory of a further run in one process, as far as the C library decides it."""

from __future__ import annotations

import contextlib
import ctypes
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Constants of glibc's malloc.h."""
ARENAS = 1
"""By default glibc opens one per thread. Python's threads wait for Python's own lock, not for an
arena's."""
LARGE = 1 << 16
"""Blocks larger than so many bytes go back to the system once they are free."""


@cache
def be_frugal() -> None:
    """Ask malloc for few arenas, once per process. With another C library this does nothing."""
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        settings = {M_ARENA_MAX: ARENAS, M_TRIM_THRESHOLD: LARGE, M_MMAP_THRESHOLD: LARGE}
        for option, value in settings.items():
            libc.mallopt(option, value)
