"""Finds the file of a Rust test: that of its module, below the root of its crate."""

from __future__ import annotations

import posixpath
from collections.abc import Collection


def file_of(root: str, test: str, cwd: str, paths: Collection[str]) -> str:
    """The file of a test, relative to the command's folder; the crate's file where none is found.

    `total::tests::adds` of `src/lib.rs` is in `src/total.rs` or `src/total/mod.rs`. Below a module
    that is in its parent's file, no file is looked for.
    """
    folder, found = posixpath.dirname(root), root
    for part in test.split("::")[:-1]:
        below = posixpath.join(folder, part)
        here = next(
            (
                path
                for path in (f"{below}.rs", f"{below}/mod.rs")
                if path != root and posixpath.normpath(posixpath.join(cwd, path)) in paths
            ),
            "",
        )
        if not here:
            return found
        folder, found = below, here
    return found
