"""Finds the file of a Go test: in the folder of its package, by its function's declaration."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection

from agentrunner.verification.results.model import ReadFile

MODULE = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)
FUNCTION = re.compile(r"^func\s+(\w+)\s*\(", re.MULTILINE)


class Sources:
    """The modules and test files of one tree, read on demand."""

    def __init__(self, paths: Collection[str], read: ReadFile) -> None:
        self._read = read
        self._modules = {
            hit[1]: posixpath.dirname(path)
            for path in paths
            if posixpath.basename(path) == "go.mod"
            and (hit := MODULE.search(self._text(path))) is not None
        }
        self._files: dict[str, list[str]] = {}
        for path in paths:
            if path.endswith("_test.go"):
                self._files.setdefault(posixpath.dirname(path) or ".", []).append(path)
        self._functions: dict[str, dict[str, str]] = {}

    def file_of(self, package: str, test: str) -> str:
        """The file of a test, or of a subtest's outer test; "" where it is not found."""
        folder = self._folder_of(package)
        if folder not in self._functions:
            self._functions[folder] = {
                hit[1]: path
                for path in self._files.get(folder, ())
                for hit in FUNCTION.finditer(self._text(path))
            }
        return self._functions[folder].get(test.partition("/")[0], "")

    def files_of(self, package: str) -> tuple[str, ...]:
        """All test files of a package; () where it is not found."""
        return tuple(self._files.get(self._folder_of(package), ()))

    def _folder_of(self, package: str) -> str:
        """The folder of a package; "" where no module of the tree has it."""
        for module in sorted(self._modules, key=len, reverse=True):
            if package == module or package.startswith(f"{module}/"):
                below = package[len(module) + 1 :]
                return posixpath.normpath(posixpath.join(self._modules[module], below))
        return ""

    def _text(self, path: str) -> str:
        return (self._read(path) or b"").decode("utf-8", "replace")
