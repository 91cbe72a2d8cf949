"""A repository tree as the search for inputs sees it: its paths, and a bounded reader."""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from agentrunner.verification.inputs.globs import fixed_folder, glob_regex, is_glob
from agentrunner.verification.results.files import json_of, toml_of
from agentrunner.verification.results.model import ReadFile

ReadMany = Callable[[Sequence[str]], Mapping[str, bytes]]
"""Reads several files at once. Files that it leaves out are read one by one."""

MOST_BYTES = 400_000
"""How much of a file is read, in bytes; the rest is ignored."""


class Tree:
    """The paths of a tree and the text of its files. Each file is read once."""

    def __init__(
        self, paths: Collection[str], read: ReadFile, read_many: ReadMany | None = None
    ) -> None:
        self.paths = frozenset(paths)
        self._read = read
        self._read_many = read_many
        self._texts: dict[str, str | None] = {}

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.paths)

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder with a file below it; the root is ""."""
        found = {""}
        for path in self.paths:
            folder = path.rpartition("/")[0]
            while folder and folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return frozenset(found)

    def text(self, path: str) -> str | None:
        """Return a file's text, None if there is none. Ignored folders can be read as well."""
        if path not in self._texts:
            # A folder would read as an empty file, and nothing outside the repository is read.
            known = path in self.paths or (path not in self.folders and is_inside(path))
            content = self._read(path) if known else None
            text = None if content is None else content[:MOST_BYTES].decode("utf-8", "replace")
            if text == "" and path not in self.paths:
                text = None
            self._texts[path] = text
        return self._texts[path]

    def prefetch(self, paths: Iterable[str]) -> None:
        """Read several files at once, if the tree's reader can."""
        wanted = [path for path in paths if path in self.paths and path not in self._texts]
        if self._read_many is not None and wanted:
            for path, content in self._read_many(wanted).items():
                self._texts[path] = content[:MOST_BYTES].decode("utf-8", "replace")

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return path in self.paths or self.text(path) is not None

    def json(self, path: str) -> dict[str, Any]:
        """Return the object in a JSON file; empty if there is none or it cannot be parsed."""
        return json_of(self.text(path) or "")

    def toml(self, path: str) -> dict[str, Any]:
        """Return the table of a TOML file; empty if there is none or it cannot be parsed."""
        return toml_of(self.text(path) or "")

    def under(self, folder: str) -> list[str]:
        """Return all files below a folder, sorted; for the root, all files."""
        if folder in ("", "."):
            return self._sorted
        low = bisect_left(self._sorted, f"{folder}/")
        high = bisect_left(self._sorted, f"{folder}0")  # "0" follows "/"
        return self._sorted[low:high]

    def matching(self, glob: str) -> list[str]:
        """Return the files that an anchored glob matches."""
        if not is_glob(glob, self.paths):
            return [glob] if glob in self.paths else []
        pattern = glob_regex(glob)
        return [path for path in self.under(fixed_folder(glob)) if pattern.match(path)]

    def expand(self, folder: str, word: str) -> list[str]:
        """Return what a shell word in `folder` means: a glob's matches, else the path itself."""
        path = join(folder, word)
        if not is_glob(path, self.paths):
            return [path]
        return self.matching(path)[:1000] or [path]


def join(folder: str, word: str) -> str:
    """Return a path relative to the repository, normalised; "" is its root, `../x` is outside."""
    path = posixpath.normpath(posixpath.join("" if folder == "." else folder, word.rstrip("/")))
    return "" if path == "." else path


def is_inside(path: str) -> bool:
    """Whether a normalised path is inside the repository."""
    return bool(path) and not path.startswith(("../", "/")) and path != ".." and "\0" not in path


def above(folder: str) -> Iterator[str]:
    """Yield the folder and all its parents up to the root, which is ""."""
    folder = "" if folder == "." else folder
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield ""


def folder_of(path: str) -> str:
    """Return the folder that contains a file."""
    return path.rpartition("/")[0]
