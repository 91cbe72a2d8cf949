"""Temporary folders in a place that several threads and processes use for theirs.

Each is removed by its maker; what a killed maker has left can be swept.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from agentrunner.storage.locks import try_flock

PREFIX = "agentrunner."
_LOCK = "rooms.lock"


@contextmanager
def room(place: Path) -> Iterator[Path]:
    """Make a new folder below the existing `place`; `sweep` waits until it is gone."""
    with closing(_open_lock(place)) as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with TemporaryDirectory(prefix=PREFIX, dir=place) as name:
            yield Path(name)


def sweep(place: Path) -> None:
    """Remove leftovers of such folders, unless somebody uses one now."""
    if not place.is_dir():
        return
    with closing(_open_lock(place)) as lock:
        if not try_flock(lock.fileno(), fcntl.LOCK_EX):
            return
        for leftover in place.glob(f"{PREFIX}*"):
            if leftover.is_dir() and not leftover.is_symlink():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)


def _open_lock(place: Path) -> IO[bytes]:
    """Return the file that is locked, by this descriptor alone; it is never removed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    return os.fdopen(os.open(place / _LOCK, flags, 0o600), "rb", buffering=0)
