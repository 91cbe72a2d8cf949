"""Copies of folders that end with the first fault, which keeps its number."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Ignore = Callable[[Any, list[str]], Iterable[str]]


class _Fault(Exception):
    """An OSError on its way through `shutil.copytree`, which would gather it as a text."""


def copy_tree(source: Path, target: Path, ignore: Ignore | None = None) -> None:
    """Copy a folder, links as links.

    Raises the OSError of the first file that cannot be copied: a full disk is to be told from
    other faults. Blocks.
    """
    try:
        shutil.copytree(source, target, symlinks=True, ignore=ignore, copy_function=_copied)
    except _Fault as fault:
        raise fault.args[0] from None


def _copied(source: str, target: str) -> None:
    try:
        shutil.copy2(source, target, follow_symlinks=False)
    except OSError as error:
        raise _Fault(error) from error
