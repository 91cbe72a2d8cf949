"""Folders, however deep they are: what the standard library has for them calls itself.

It uses little, and only the standard library: programs in a sandbox load it before a command.
"""
# pathlib takes 8 ms to import, shutil 10
# ruff: noqa: PTH101, PTH106, PTH108, PTH114, PTH208

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from itertools import islice

LONG = 2_000
"""Characters of a path, of which the system takes 4,096 bytes: a further name fits, of 255."""


def walk(folder: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Do the same as `os.walk`, however deep the folders are: it calls itself until Python 3.12."""
    waiting = [os.fspath(folder)]
    while waiting:
        for place, folders, names in islice(os.walk(waiting.pop()), 1):
            yield place, folders, names
            below = [f"{place}/{name}" for name in reversed(folders)]
            waiting += [path for path in below if not os.path.islink(path)]


def remove_tree(path: str) -> None:
    """Remove a file or folder, even one that its owner may not write to, as in Go's modules.

    What cannot be removed stays. What is too deep for a path is moved up before.
    """
    top, waiting, moved = path, [(path, False)], 0
    while waiting:
        path, emptied = waiting.pop()
        with contextlib.suppress(OSError):
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                os.unlink(path)
                continue
            with contextlib.suppress(OSError):  # empty, maybe another user's, like those in WORK
                os.rmdir(path)
                continue
            if not emptied:
                os.chmod(path, 0o700)
                below = [f"{path}/{name}" for name in os.listdir(path)]
                if len(path) > LONG:
                    below = [f"{top}/.moved-{moved + number}" for number in range(len(below))]
                    moved += len(below)
                    _move(path, below)
                waiting += [(path, True), *((one, False) for one in below)]


def _move(folder: str, places: list[str]) -> None:
    """Move all that is in a folder to these places, also what has too long a path there."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name, place in zip(os.listdir(opened), places, strict=False):
            with contextlib.suppress(OSError):
                os.rename(name, place, src_dir_fd=opened)
    finally:
        os.close(opened)
