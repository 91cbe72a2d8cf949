"""Removes what a killed process leaves in a run's folder."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path


def remove_dead_sockets(folder: Path) -> list[str]:
    """Remove the sockets in a folder that nothing listens on, and return their names.

    Call it only while no process drives the run: a socket that is about to listen looks dead, too.
    """
    removed = []
    with contextlib.suppress(OSError):
        # Through the descriptor, because a socket's path may have at most 107 bytes.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in sorted(os.listdir(descriptor)):  # noqa: PTH208 - the descriptor's
                mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
                if stat.S_ISSOCK(mode) and _refuses(f"/proc/self/fd/{descriptor}/{name}"):
                    os.unlink(name, dir_fd=descriptor)
                    removed.append(name)
        finally:
            os.close(descriptor)
    return removed


def _refuses(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
