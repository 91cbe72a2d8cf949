"""The environment of a command: built from nothing, never inherited."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def base_environment(
    path: Sequence[Path], *, home: Path, repo: Path, pycache: Path
) -> dict[str, str]:
    """The variables that every command gets.

    Byte code is kept in `pycache`: tests then leave nothing in the repository, and a forged
    `__pycache__` in it is never read.
    """
    return {
        "PATH": ":".join(map(str, path)),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
        "PYTHONPYCACHEPREFIX": str(pycache),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": str(repo),
    }
