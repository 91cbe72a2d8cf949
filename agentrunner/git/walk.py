"""Finds the files of a folder, without following links or trusting anything in it.

Standard library only, like everything that `take` needs. Paths are bytes in here.
"""
# Paths are bytes here, which pathlib does not take.
# ruff: noqa: PTH116, PTH118, PTH119

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from agentrunner.errors import InfraError
from agentrunner.errors.repositories import TooManyFiles
from agentrunner.git.ignore import IgnoreRules
from agentrunner.git.stat_cache import FileKey, key_of
from agentrunner.text.unicode import to_text

CACHES = frozenset({b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache"})
"""Written by test runs, and only read for speed; checks keep their byte code elsewhere.

A cache with tracked files belongs to the project, as test data may.
"""

MOST_FILES = 500_000
"""More would take gigabytes of memory and minutes of everybody's time."""


class Walk:
    """One walk over a folder; `run` it, then read its results."""

    def __init__(self, work_tree: bytes, note_dir: bytes, rules: IgnoreRules) -> None:
        self.work_tree = work_tree
        self.note_dir = note_dir
        self.rules = rules
        self.device = os.stat(work_tree).st_dev
        self.files: dict[bytes, FileKey] = {}
        self.elsewhere: set[bytes] = set()
        """Files on another file system than the folder itself."""
        self.embedded: list[bytes] = []
        self.skipped: list[bytes] = []
        self.ignored: list[bytes] = []
        self.empty: list[bytes] = []
        """Folders with nothing at all in them, which no tree can hold."""
        self.others = 0
        """Folders and whatever is no file, as far as they were met."""

    def run(self) -> None:
        """Walk the whole folder, level by level, so that one call judges a whole level.

        Raises InfraError where there are more than `MOST_FILES` files, or as many folders and other
        things: as soon as that many were read, so that no folder is ever listed whole.
        """
        level = [b""]
        while level:
            below = [path for folder in level for path in self._scan(folder)]
            level = self.rules.kept(below)
            self.ignored += set(below).difference(level)

    def _scan(self, folder: bytes) -> Iterator[bytes]:
        self.rules.folder_seen(folder)
        try:
            with os.scandir(os.path.join(self.work_tree, folder)) as entries:
                is_empty = True
                for entry in entries:
                    is_empty = False
                    if path := self._met(entry, folder):
                        yield path
                    if max(len(self.files), self.others) > MOST_FILES:
                        raise _too_many(folder, nothing_spent=self.rules.baseline)
                if folder and is_empty:
                    self.empty.append(folder)
        except OSError:
            self.skipped.append(folder)

    def _met(self, entry: os.DirEntry[bytes], folder: bytes) -> bytes:
        """Take note of an entry; return its path if it is a folder to walk, else nothing."""
        name = entry.name
        path = folder + b"/" + name if folder else name
        if name[:1] == b"." and name.lower() == b".git":
            if folder:
                self.embedded.append(path)
            return b""
        try:
            facts = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return b""
        except OSError:  # a path longer than the system accepts
            self.skipped.append(path)
            return b""
        kind = stat.S_IFMT(facts.st_mode)
        if kind == stat.S_IFREG or kind == stat.S_IFLNK:
            self.files[path] = key_of(facts)
            if facts.st_dev != self.device:
                self.elsewhere.add(path)
            return b""
        self.others += 1
        if kind != stat.S_IFDIR:
            self.skipped.append(path)
            return b""
        return b"" if self._is_skipped(folder, name) else path

    def _is_skipped(self, folder: bytes, name: bytes) -> bool:
        if not folder and name == self.note_dir:
            return True
        in_modules = name == b".cache" and os.path.basename(folder) == b"node_modules"
        return (name in CACHES or in_modules) and not self.rules.holds_tracked(
            folder + b"/" + name if folder else name
        )


def _too_many(folder: bytes, *, nothing_spent: bool) -> InfraError:
    return TooManyFiles(
        f"The repository has more than {MOST_FILES:,} files that no rule ignores; the walk"
        f" stopped in {to_text(folder) or '.'!a}. Nothing is lost.",
        remedy="name folders of data or builds in .gitignore or .git/info/exclude",
        nothing_spent=nothing_spent,
    )
