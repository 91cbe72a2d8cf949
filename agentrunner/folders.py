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

    What cannot be removed stays, such as what is deeper than a path may be long.
    """
    waiting = [(path, False)]
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
                below = [(f"{path}/{name}", False) for name in os.listdir(path)]
                waiting += [(path, True), *below]
