"""Temporary folders in a place where several threads and processes have such.

They go with whoever made them; what is left of one that was killed can be swept.
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
    """A new folder below `place`, which is there; `sweep` waits until it is gone."""
    with closing(_opened(place)) as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with TemporaryDirectory(prefix=PREFIX, dir=place) as name:
            yield Path(name)


def sweep(place: Path) -> None:
    """Remove what was left of such folders, unless somebody has one now."""
    if not place.is_dir():
        return
    with closing(_opened(place)) as lock:
        if not try_flock(lock.fileno(), fcntl.LOCK_EX):
            return
        for left in place.glob(f"{PREFIX}*"):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


def _opened(place: Path) -> IO[bytes]:
    """The file that is locked, by this descriptor alone; it is never removed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    return os.fdopen(os.open(place / _LOCK, flags, 0o600), "rb", buffering=0)
