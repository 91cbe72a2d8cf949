"""What ends a box with its owner, however that ends, and even where the engine is dead."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.docker.config import LIFELINE


class Lifeline:
    """A named pipe that we hold open for writing, and that the box's keeper reads.

    Nothing is ever written. When the last writer is gone, by `cut` or by our death, the keeper
    comes to the end, and the kernel ends everything in the box with it.
    """

    def __init__(self, folder: Path) -> None:
        """In a folder of ours that the engine can see; raises OSError."""
        self._path = folder / f".lifeline-{secrets.token_hex(6)}"
        os.mkfifo(self._path, 0o600)
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            # In the box nobody, its owner included, can then open it for writing.
            self._path.chmod(0o444)
        except OSError:
            self.hide()
            raise

    @property
    def mount(self) -> Mount:
        """Where the keeper finds it."""
        return Mount(self._path, LIFELINE)

    def hide(self) -> None:
        """The box has it; its name is not needed any more."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def cut(self) -> None:
        """End the box. May be repeated."""
        self.hide()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
