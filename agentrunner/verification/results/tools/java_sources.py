"""Finds the file of a JVM test: the one named like its class, below its package."""

from __future__ import annotations

import posixpath
from collections.abc import Collection

ENDINGS = (".java", ".kt", ".groovy", ".scala")


class Sources:
    """The sources of one tree by the names of their classes."""

    def __init__(self, paths: Collection[str], cwd: str) -> None:
        self._cwd = cwd or "."
        self._named: dict[str, list[str]] = {}
        for path in paths:
            stem, ending = posixpath.splitext(posixpath.basename(path))
            if ending in ENDINGS:
                self._named.setdefault(stem, []).append(path)

    def file_of(self, name: str, module: str = "") -> str:
        """The file of a class, relative to the command's folder; "" unless there is exactly one.

        A nested class is in the file of its outer class. `module` is the folder of its build.
        """
        own = name.partition("$")[0].replace(".", "/")
        named = self._named.get(posixpath.basename(own), [])
        here = [path for path in named if f"/{path}".rpartition(".")[0].endswith(f"/{own}")]
        within = posixpath.normpath(posixpath.join(self._cwd, module))
        found = [path for path in here if path.startswith(f"{within}/")] or here
        return posixpath.relpath(found[0], self._cwd) if len(found) == 1 else ""
