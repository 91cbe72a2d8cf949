"""Finds the file of a GoogleTest: the one whose macro declares it."""

from __future__ import annotations

import re
from collections.abc import Collection

from agentrunner.verification.results.model import ReadFile

ENDINGS = (".cc", ".cpp", ".cxx", ".c++", ".cu", ".h", ".hpp")
DECLARED = re.compile(rb"\b(?:TYPED_)?TEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
MOST_READ = 2_000
"""Files that are read; those with a test-like name first."""


class Sources:
    """The tests that a tree declares, read on demand."""

    def __init__(self, paths: Collection[str], read: ReadFile) -> None:
        self._paths = sorted(
            (path for path in paths if path.lower().endswith(ENDINGS)),
            key=lambda path: ("test" not in path.lower(), path),
        )
        self._read = read
        self._files: dict[tuple[str, str], str] | None = None

    def file_of(self, name: str) -> str:
        """The file of `Suite.Name`, also of `Many/Suite.Name/0`; "" where it is not found."""
        if self._files is None:
            self._files = {}
            for path in self._paths[:MOST_READ]:
                for suite, test in DECLARED.findall(self._read(path) or b""):
                    self._files.setdefault((suite.decode(), test.decode()), path)
        suite, _, test = name.partition(".")
        own = test.partition("/")[0]
        found = (self._files.get((part, own)) for part in suite.split("/"))
        return next((path for path in found if path), "")
