"""Which folders and files snapshots leave out: decided once, by the rules before the run.

Standard library only, like everything that `take` needs.
"""
# Paths are bytes here, which pathlib does not take.
# ruff: noqa: PTH103, PTH112, PTH118, PTH119

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

from agentrunner.errors.repositories import GitFailed
from agentrunner.folders import walk
from agentrunner.git.process import Git, read_small, replace
from agentrunner.git.stat_cache import FileKey, size_of
from agentrunner.git.user_index import MOST_INDEX as MOST_INDEX
from agentrunner.git.user_index import IndexDamaged, UserIndex, read_index
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes, to_text

KEPT_FILE, KEPT_TOGETHER = 1 << 20, 64 << 20
"""Bytes: ignored files are kept up to the first size each, and up to the second in total."""

DEPENDENCIES = frozenset({b"node_modules", b".venv"})
"""Ignored by name, even if no rule says so, unless files in them are tracked."""


def ignored_folders(git: Git) -> list[bytes]:
    """Return the ignored folders that snapshots have met so far, sorted; some may be gone."""
    saved = _load(git)
    known = {} if saved is None else saved["known"]
    return sorted(to_bytes(path) for path, ignored in known.items() if ignored)


_SHA256 = lazy_regex(rb"(?im)^[^\S\n]*objectformat\s*=\s*\"?sha256")


class Saved(TypedDict):
    """The decisions of earlier snapshots."""

    prefix: str
    known: dict[str, bool]
    """By folder: whether it is ignored."""
    files: NotRequired[dict[str, bool]]
    """By ignored file: whether its content is kept. Stores of older versions keep them all."""
    tree: NotRequired[str]
    """The first snapshot."""


def _file(git: Git) -> Path:
    return git.git_dir / "agentrunner" / "ignored.json"


def _load(git: Git) -> Saved | None:
    """Return None before the first snapshot; a damaged file is an error: nothing replaces it."""
    try:
        saved: Saved = json.loads(_file(git).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise GitFailed(f"{_file(git)} is damaged") from error
    return saved


class IgnoreRules:
    """Which folders are left out, by the rules at the first snapshot, permanently.

    The `.gitignore` files of that moment are copied into a skeleton of the tree, where git can
    apply them; changes by a worker are never obeyed. A folder with tracked files is never ignored.
    """

    def __init__(self, git: Git, work_tree: bytes) -> None:
        self.git = git
        self.work_tree = work_tree
        self.rules = git.git_dir / "agentrunner" / "rules"
        self._saved = saved = _load(git)
        self.baseline = saved is None
        self.prefix = b""
        """The path of the folder below the root of its repository."""
        self.known: dict[bytes, bool] = {}
        self.files: dict[bytes, bool] = {}
        self.tracked: frozenset[bytes] = frozenset()
        self.repository: bytes | None = None
        """The repository behind the folder; only known at the first snapshot, like its index."""
        self.common: bytes = b""
        self.index: UserIndex | None = None
        self.tree = ""
        if saved is None:
            self._begin()
        else:
            self.prefix = to_bytes(saved["prefix"])
            self.known = {to_bytes(path): value for path, value in saved["known"].items()}
            self.tree = saved.get("tree", "")
            files = saved.get("files", {})
            self.files = {to_bytes(path): value for path, value in files.items()}

    def save(self, tree: str = "") -> None:
        """Save the decisions for the next snapshot; `tree` is the one that they were made for."""
        self.tree = self.tree or (tree if self.baseline else "")
        known = {to_text(path): value for path, value in self.known.items()}
        saved: Saved = {"prefix": to_text(self.prefix), "known": known}
        if self.tree:
            files = {to_text(path): value for path, value in self.files.items()}
            saved |= {"files": files, "tree": self.tree}
        if saved != self._saved:
            replace(_file(self.git), json.dumps(saved).encode())
            self._saved = saved

    def folder_seen(self, folder: bytes) -> None:
        """At the first snapshot, copy the folder's rules before its subfolders are judged."""
        if self.baseline:
            self._copy(os.path.join(self.work_tree, folder), os.path.join(self.prefix, folder))

    def holds_tracked(self, folder: bytes) -> bool:
        """Whether the folder had tracked files at the first snapshot.

        Only called for folders that are skipped if they have none, so such a known folder had some.
        """
        return folder in self.tracked if self.baseline else self.known.get(folder) is False

    def kept(self, folders: list[bytes]) -> list[bytes]:
        """Return those of `folders`, whose parents are kept, that belong in snapshots."""
        new = [folder for folder in folders if folder not in self.known]
        ruled = self._ruled_folders(new)
        for folder in new:
            ignored = (
                folder in ruled
                or os.path.basename(folder) in DEPENDENCIES
                or (self.baseline and self._ignores_itself(folder))
            )
            self.known[folder] = ignored and folder not in self.tracked
        return [folder for folder in folders if not self.known[folder]]

    def unkept_files(self, files: Mapping[bytes, FileKey], before: Iterable[bytes]) -> list[bytes]:
        """Return those of all present `files` that are ignored and whose content no snapshot keeps.

        This is decided for each file when it is first seen, permanently. `before` are the files of
        the last snapshot.
        """
        if not self.baseline and not self.tree:
            return []  # an older version took the first snapshot, and kept everything
        new = files.keys() - self.files.keys() - set(before)
        if self.baseline and self.index:
            new = {path for path in new if self.in_repository(path) not in self.index.tracked}
        ruled = sorted(self._ruled_files(new))
        held = (size_of(files[path]) for path, kept in self.files.items() if kept and path in files)
        room = KEPT_TOGETHER - sum(held)
        late: list[bytes] = []
        for path in ruled:
            size = size_of(files[path])
            if size <= KEPT_FILE and size <= room:
                room -= size
                self.files[path] = True
            else:
                late.append(path)
        tracked = set() if self.baseline else self._in_first_tree(late)
        self.files.update(dict.fromkeys(set(late) - tracked, False))
        return [path for path, kept in self.files.items() if not kept and path in files]

    def in_repository(self, path: bytes) -> bytes:
        """Turn a path below the folder into one below the top of its repository."""
        return self.prefix + b"/" + path if self.prefix else path

    def _in_first_tree(self, paths: list[bytes]) -> set[bytes]:
        """Return those in the first snapshot: as no rule made them ignored, they were tracked."""
        if not paths:
            return set()
        names = [os.fsdecode(path) for path in paths]
        command = ("ls-tree", "-r", "-z", "--name-only", self.tree, "--", *names)
        found = self.git.run(*command, env={"GIT_LITERAL_PATHSPECS": "1"})
        return set(found.split(b"\0"))

    def _ruled_files(self, paths: Iterable[bytes]) -> set[bytes]:
        asked = {self.in_repository(path): path for path in paths}
        return {asked[path] for path in self._check_ignore(asked)}

    def ignored_files(self, files: list[str]) -> set[str]:
        """Return those of `files` that the rules of the first snapshot ignore, tracked or not."""
        asked = {os.path.join(self.prefix, to_bytes(path)): path for path in files}
        return {asked[path] for path in self._check_ignore(asked)}

    def untracked_ignored(self, files: list[str]) -> set[str]:
        """Return those of `files` that are ignored and were not tracked at the first snapshot."""
        ruled = self.ignored_files(files)
        late = [path for path in map(to_bytes, ruled) if path not in self.files]
        tracked = self._in_first_tree(late) if self.tree else set()
        return {path for path in ruled if to_bytes(path) not in tracked}

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
        if self.prefix and self._ruled_folders([b""]):
            # A folder that its repository ignores is a project of its own.
            shutil.rmtree(self.rules)
            self.rules.mkdir(mode=0o700)
            self.prefix = b""
            self.index, self.tracked = None, frozenset()

    def _read_repository(self, private: bytes) -> None:
        """Read the user's excludes and list of tracked files, as data."""
        exclude = read_small(os.path.join(_common_dir(private), b"info/exclude"))
        replace(self.git.git_dir / "info" / "exclude", exclude or b"")
        self.repository, self.common = private, _common_dir(private)
        config = read_small(os.path.join(self.common, b"config")) or b""
        try:
            self.index = read_index(
                os.path.join(private, b"index"), sha256=bool(_SHA256.search(config))
            )
        except IndexDamaged:
            return
        if self.index is None:
            return
        start = self.prefix + b"/" if self.prefix else b""
        folders: set[bytes] = set()
        for name in self.index.tracked:
            if name.startswith(start):
                folder = name[len(start) :].rpartition(b"/")[0]
                while folder and folder not in folders:
                    folders.add(folder)
                    folder = folder.rpartition(b"/")[0]
        self.tracked = frozenset(folders)

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

    def _ruled_folders(self, folders: list[bytes]) -> set[bytes]:
        asked = {
            os.path.join(self.prefix, folder).rstrip(b"/") + b"/": folder for folder in folders
        }
        return {asked[path] for path in self._check_ignore(asked)}

    def _check_ignore(self, asked: Iterable[bytes]) -> list[bytes]:
        """Return those of some paths that match a rule."""
        paths = list(asked)
        if not paths or not self._has_rules():
            return []
        matched = self.git.run(
            f"--work-tree={self.rules}",
            *("check-ignore", "-z", "--stdin", "--no-index"),
            stdin=b"\0".join(paths) + b"\0",
            accept=(0, 1),
            cwd=self.rules,
        )
        return [path for path in matched.split(b"\0") if path]

    def _has_rules(self) -> bool:
        """Whether any line could match anything: without one git is not started."""
        lines = (read_small(os.fsencode(self.git.git_dir / "info" / "exclude")) or b"").splitlines()
        if any(line.strip() and not line.startswith(b"#") for line in lines):
            return True
        return any(files for _, _, files in walk(self.rules))


def _git_dir_of(root: bytes) -> bytes | None:
    """Return the repository behind `.git`, which is a file in worktrees and submodules."""
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
