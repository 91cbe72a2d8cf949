"""Copies folders, and stops at the first error with its errno kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Ignore = Callable[[Any, list[str]], Iterable[str]]


class _Fault(Exception):
    """Carries an OSError through `shutil.copytree`, which would turn it into a text."""


def copy_tree(source: Path, target: Path, ignore: Ignore | None = None) -> None:
    """Copy a folder, with links as links.

    Raises the OSError of the first file that cannot be copied, so that a full disk can be told
    from other errors. Blocks.
    """
    try:
        shutil.copytree(source, target, symlinks=True, ignore=ignore, copy_function=_copy_file)
    except _Fault as fault:
        raise fault.args[0] from None


def _copy_file(source: str, target: str) -> None:
    try:
        shutil.copy2(source, target, follow_symlinks=False)
    except OSError as error:
        raise _Fault(error) from error
