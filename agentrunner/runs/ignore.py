"""Which folders snapshots leave out: decided once, by the rules before the run.

Standard library only, like all that `take` needs.
"""
# Paths are bytes here, which pathlib does not take.
# ruff: noqa: PTH103, PTH112, PTH118, PTH119, PTH120

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from agentrunner.runs.git import Git, GitFailed, read_small, replace, to_bytes, to_text

MOST_INDEX = 1 << 28
"""Bytes; the index of a million files has half of that."""

DEPENDENCIES = frozenset({b"node_modules", b".venv"})
"""Ignored by their names, even where no rule says so, unless files in them are tracked."""


def ignored_folders(git: Git) -> list[bytes]:
    """The ignored folders that snapshots have met so far, sorted; some may be gone."""
    saved = _load(git)
    known = {} if saved is None else saved["known"]
    return sorted(to_bytes(path) for path, ignored in known.items() if ignored)


_SHA256 = re.compile(rb"(?im)^\s*objectformat\s*=\s*\"?sha256")


class Saved(TypedDict):
    """The decisions of earlier snapshots."""

    prefix: str
    known: dict[str, bool]
    tracked_files: list[str]
    """Tracked although a rule ignores them; missing in what older versions saved."""


def _file(git: Git) -> Path:
    return git.git_dir / "agentrunner" / "ignored.json"


def _load(git: Git) -> Saved | None:
    """None before the first snapshot; a damaged file is an error, as its rules are for good."""
    try:
        saved: Saved = json.loads(_file(git).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise GitFailed(f"{_file(git)} is damaged") from error
    return saved


class IgnoreRules:
    """Which folders are left out: the rules as they were at the first snapshot, for good.

    The `.gitignore` files of that moment are copied into a skeleton of the tree, where git can
    apply them; a worker's later ones are never obeyed. A folder with tracked files is never
    ignored.
    """

    def __init__(self, git: Git, work_tree: bytes) -> None:
        self.git = git
        self.work_tree = work_tree
        self.rules = git.git_dir / "agentrunner" / "rules"
        self._saved = saved = _load(git)
        self.baseline = saved is None
        self.prefix = b""
        """Where the folder is below the root of its repository."""
        self.known: dict[bytes, bool] = {}
        self.tracked: frozenset[bytes] = frozenset()
        self.tracked_files: frozenset[bytes] = frozenset()
        if saved is None:
            self._begin()
        else:
            self.prefix = to_bytes(saved["prefix"])
            self.known = {to_bytes(path): value for path, value in saved["known"].items()}
            self.tracked_files = frozenset(map(to_bytes, saved.get("tracked_files", [])))

    def save(self) -> None:
        """Keep the decisions for the next snapshot."""
        known = {to_text(path): value for path, value in self.known.items()}
        saved: Saved = {
            "prefix": to_text(self.prefix),
            "known": known,
            "tracked_files": sorted(map(to_text, self.tracked_files)),
        }
        if saved != self._saved:
            replace(_file(self.git), json.dumps(saved).encode())
            self._saved = saved

    def folder_seen(self, folder: bytes) -> None:
        """At the first snapshot, copy the folder's rules before its subfolders are judged."""
        if self.baseline:
            self._copy(os.path.join(self.work_tree, folder), os.path.join(self.prefix, folder))

    def kept(self, folders: list[bytes]) -> list[bytes]:
        """Those of `folders`, whose parents are kept, that belong to snapshots."""
        new = [folder for folder in folders if folder not in self.known]
        ruled = self._matched(new)
        for folder in new:
            ignored = (
                folder in ruled
                or os.path.basename(folder) in DEPENDENCIES
                or (self.baseline and self._ignores_itself(folder))
            )
            self.known[folder] = ignored and folder not in self.tracked
        return [folder for folder in folders if not self.known[folder]]

    def ignored_files(self, files: list[str]) -> set[str]:
        """Those of `files` that the rules of the first snapshot ignore, tracked or not."""
        asked = {os.path.join(self.prefix, to_bytes(path)): path for path in files}
        return {asked[path] for path in self._check_ignore(asked)}

    def untracked_ignored(self, files: list[str]) -> set[str]:
        """Those of `files` that the rules ignore and git did not track at the first snapshot."""
        return {
            path for path in self.ignored_files(files) if to_bytes(path) not in self.tracked_files
        }

    def _begin(self) -> None:
        shutil.rmtree(self.rules, ignore_errors=True)
        self.rules.mkdir(mode=0o700)
        root = self.work_tree
        while not os.path.lexists(os.path.join(root, b".git")):
            root, last = os.path.split(root)
            if not last:
                return
        self.prefix = os.path.relpath(self.work_tree, root) if root != self.work_tree else b""
        above = root
        self._copy(above, b"")
        for part in self.prefix.split(b"/")[:-1]:
            above = os.path.join(above, part)
            self._copy(above, os.path.relpath(above, root))
        private = _git_dir_of(root)
        if private is not None:
            self._read_repository(private)
        if self.prefix and self._matched([b""]):
            # A folder that its repository ignores is a project of its own.
            shutil.rmtree(self.rules)
            self.rules.mkdir(mode=0o700)
            self.prefix = b""

    def _read_repository(self, private: bytes) -> None:
        """Take the user's excludes and list of tracked files, as data."""
        exclude = read_small(os.path.join(_common_dir(private), b"info/exclude"))
        replace(self.git.git_dir / "info" / "exclude", exclude or b"")
        copy = self.git.git_dir / "agentrunner" / "index"
        # Never copied as a path: it may be a link to something without an end.
        if (index := read_small(os.path.join(private, b"index"), MOST_INDEX)) is None:
            return
        replace(copy, index)
        try:
            names = self._listed(copy, _common_dir(private))
        except (OSError, GitFailed):
            return
        finally:
            copy.unlink(missing_ok=True)
        start = self.prefix + b"/" if self.prefix else b""
        folders: set[bytes] = set()
        for name in names.split(b"\0"):
            folder = os.path.dirname(name.removeprefix(start)) if name.startswith(start) else b""
            while folder and folder not in folders:
                folders.add(folder)
                folder = os.path.dirname(folder)
        self.tracked = frozenset(folders)
        inside = {
            name: name.removeprefix(start) for name in names.split(b"\0") if name.startswith(start)
        }
        with contextlib.suppress(GitFailed):  # names that no index of git's own would have
            self.tracked_files = frozenset(inside[name] for name in self._check_ignore(inside))

    def _listed(self, index: Path, common: bytes) -> bytes:
        """The paths of an index, whichever hash the repository names objects by."""
        env = {"GIT_INDEX_FILE": str(index)}
        if not _SHA256.search(read_small(os.path.join(common, b"config")) or b""):
            return self.git.run("ls-files", "-z", env=env)
        other = Git(index.with_name("sha256"), self.git.binary)
        other.git_dir.mkdir(mode=0o700, exist_ok=True)
        try:
            other.run("init", "-q", "--bare", "--template=", "--object-format=sha256")
            return other.run("ls-files", "-z", env=env)
        finally:
            shutil.rmtree(other.git_dir, ignore_errors=True)

    def _copy(self, source: bytes, target: bytes) -> None:
        text = read_small(os.path.join(source, b".gitignore"))
        if text is not None:
            place = os.path.join(os.fsencode(self.rules), target)
            os.makedirs(place, mode=0o700, exist_ok=True)
            replace(Path(os.fsdecode(os.path.join(place, b".gitignore"))), text)

    def _ignores_itself(self, folder: bytes) -> bool:
        """Whether its own .gitignore says `*`, as tools write it into their folders."""
        text = read_small(os.path.join(self.work_tree, folder, b".gitignore")) or b""
        lines = {line.strip() for line in text.splitlines()}
        return b"*" in lines and not any(line.startswith(b"!") for line in lines)

    def _matched(self, folders: list[bytes]) -> set[bytes]:
        asked = {
            os.path.join(self.prefix, folder).rstrip(b"/") + b"/": folder for folder in folders
        }
        return {asked[path] for path in self._check_ignore(asked)}

    def _check_ignore(self, asked: Iterable[bytes]) -> list[bytes]:
        """Those of some paths that match a rule."""
        paths = list(asked)
        if not paths:
            return []
        matched = self.git.run(
            f"--work-tree={self.rules}",
            *("check-ignore", "-z", "--stdin", "--no-index"),
            stdin=b"\0".join(paths) + b"\0",
            accept=(0, 1),
            cwd=self.rules,
        )
        return [path for path in matched.split(b"\0") if path]


def _git_dir_of(root: bytes) -> bytes | None:
    """The repository behind `.git`, which in worktrees and submodules is a file."""
    place = os.path.join(root, b".git")
    if os.path.isdir(place):
        return place
    text = read_small(place) or b""
    if not text.startswith(b"gitdir:"):
        return None
    return os.path.join(root, text[len(b"gitdir:") :].strip())


def _common_dir(private: bytes) -> bytes:
    text = read_small(os.path.join(private, b"commondir"))
    return private if text is None else os.path.join(private, text.strip())
