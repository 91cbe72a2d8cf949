"""Ends a sandbox when its owner ends, however that happens, even if the engine is dead."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.docker.config import LIFELINE

PREFIX = ".lifeline-"
BEING_MADE_SEC = 1.0
"""A younger pipe may not have been opened yet."""


class Lifeline:
    """A named pipe that we hold open for writing, and that the sandbox's keeper reads.

    Nothing is ever written. When the last writer is gone, by `cut` or by our death, the keeper
    reaches end of file, and the kernel ends everything in the sandbox with it.
    """

    def __init__(self, folder: Path) -> None:
        """Make it in a folder of ours that the engine can see; raises OSError."""
        self._path = folder / f"{PREFIX}{secrets.token_hex(6)}"
        self._hidden = False
        os.mkfifo(self._path, 0o600)
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            # In the sandbox nobody, not even its owner, can then open it for writing.
            self._path.chmod(0o444)
        except OSError:
            self.hide()
            raise

    @property
    def mount(self) -> Mount:
        """Where the keeper finds it."""
        return Mount(self._path, LIFELINE)

    def hide(self) -> None:
        """Remove its name, which is not needed once the sandbox has it."""
        if not self._hidden:
            self._hidden = True
            with contextlib.suppress(OSError):
                self._path.unlink()

    def cut(self) -> None:
        """End the sandbox. May be called repeatedly."""
        self.hide()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def remove_dead_lifelines(folder: Path, *, now: float) -> None:
    """Remove the pipes in a folder whose owner was killed before a sandbox had them.

    `now` is the system's time, in seconds.
    """
    for path in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            known = path.lstat()
            if stat.S_ISFIFO(known.st_mode) and now - known.st_ctime > BEING_MADE_SEC:
                _remove_unheld(path)


def _remove_unheld(path: Path) -> None:
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # Without a writer the read returns end of file; with a silent writer it would block.
        if os.read(end, 1) == b"":
            path.unlink()
    except BlockingIOError:
        pass
    finally:
        os.close(end)
