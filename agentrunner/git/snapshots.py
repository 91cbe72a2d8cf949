"""Snapshots of a work tree: its content before and after every worker run.

They are kept in a git object store that belongs to the run (see `take`); the user's `.git` is only
ever read as data. Everything here blocks: call it with `asyncio.to_thread`.
"""

from __future__ import annotations

import os
import posixpath
import shlex
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from agentrunner.config.repo import git_root
from agentrunner.environment import find_program
from agentrunner.errors.repositories import ContentGone, GitMissing, RepositoryClosed
from agentrunner.git import ignored_content
from agentrunner.git.blobs import Content, Recent, blobs
from agentrunner.git.export import (
    contents,
    differing,
    export_entries,
    export_tree,
    index_lines,
    list_tree,
)
from agentrunner.git.ignore import IgnoreRules, ignored_folders
from agentrunner.git.ignored_content import copy_file
from agentrunner.git.process import Git, read_small
from agentrunner.git.restore import Entry, Restored, SafeFolder, restore
from agentrunner.git.small_trees import is_ordinary, is_small, keep_blob, keep_tree, with_other
from agentrunner.git.snapshot_writer import (
    Snapshot,
    TakeOptions,
    command,
    empty_at_first,
    note_worker,
    seen_files,
    stand_ins,
    take,
)
from agentrunner.text.unicode import to_bytes, to_text

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec

ChangeKind = Literal["added", "modified", "deleted", "type"]
KINDS: Mapping[str, ChangeKind] = {"A": "added", "M": "modified", "D": "deleted", "T": "type"}

MOST_READ_AT_ONCE = 1_048_576
"""Size in bytes up to which a file is read together with others."""
_READ_AT_ONCE = range(MOST_READ_AT_ONCE + 1)
MOST_READ = 64 << 20
"""Bytes of a file that are read into memory; the rest of a larger one is left out."""

BIG = ("-c", "core.bigFileThreshold=50m")
"""Larger files are compared as a whole, so that git does not hold them in memory."""

MOST_LISTED = 60_000
"""Entries of recently listed trees that are kept in memory, in total."""
LEAST_LISTED = 4
"""Trees whose entries are kept in memory however many they are: those before and after the work,
and what an examination makes of them. They share the entries in which they agree."""
MOST_KEPT = 2 << 20
"""Bytes of recently read contents that are kept in memory, in total."""

LINK = "120000"
"""The mode of a symbolic link."""
MOST_LINKS = 20
"""The most links followed from one path; more than that is a cycle."""

NO_SURPRISES = ("--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--full-index")


class Change(Struct, frozen=True):
    """A path that differs between two trees; `type` is a file that became a link or vice versa."""

    path: str
    kind: ChangeKind
    added: int | None
    """Lines; None for binary content."""
    removed: int | None


def find_git(work_tree: Path, search: str | None = None) -> str:
    """Return the git binary, absolute and outside the work tree; raises InfraError without one.

    `search` is a PATH, by default ours; its relative and empty entries are ignored.
    """
    environ = None if search is None else {"PATH": search}
    if (found := find_program("git", avoid=work_tree, environ=environ)) is not None:
        return str(found)
    raise GitMissing(
        "git is not installed, or only inside the repository",
        remedy="install git",
        nothing_spent=True,
    )


def check_open(work_tree: Path) -> None:
    """Raise InfraError if the permissions of the top folder deny access even to its owner.

    Root could still enter it, but no command in a sandbox could.
    """
    permissions = stat.S_IMODE(work_tree.stat().st_mode)
    if permissions & 0o500 != 0o500:
        raise RepositoryClosed(
            f"The repository {work_tree} cannot be entered: its permissions are "
            f"{permissions:03o}. Nothing is lost.",
            remedy=f"chmod u+rwx {shlex.quote(str(work_tree))}, then agentrunner resume",
        )


def worked_mark(state_dir: Path, repo: Path) -> Path:
    """Return the file whose time says when a worker of ours last ran in a repository.

    Nothing is created. The file is named by device and inode of the repository's top folder, so
    that runs in its subfolders, and paths through links and bind mounts, share it. Raises OSError.
    """
    place = repo.resolve(strict=True)
    facts = (git_root(place) or place).stat()
    return state_dir / "worked" / f"{facts.st_dev:x}-{facts.st_ino:x}"


# `Snapshots.list` hides the builtin inside the class, so its types are spelled out here.
Changes = list[Change]
Folders = list[str]


class Snapshots:
    """The snapshots of one work tree.

    The work tree need not be a git repository. Which folders are ignored is decided by the rules at
    the first `take`. Every method may raise GitFailed (exit 5) and OSError.
    """

    def __init__(
        self,
        git_dir: Path,
        work_tree: Path,
        note_dir: str = ".agent-runner",
        *,
        worked: Path | None = None,
        keep_up_to: int | None = None,
    ) -> None:
        """`worked` is the folder's `worked_mark`: without it the user's index is not trusted.

        `keep_up_to` is the size in bytes up to which files are kept; 50 MiB for None.
        """
        self.git_dir = git_dir
        self.work_tree = work_tree
        self.note_dir = note_dir
        self.options = TakeOptions(note_dir, worked, keep_up_to)
        self.git = Git(git_dir, find_git(work_tree), borrows=True)
        self._listed: Recent[Mapping[str, Entry]] = Recent(MOST_LISTED, LEAST_LISTED)
        self._differing: Recent[Changes] = Recent(MOST_LISTED)
        self._read: Recent[bytes] = Recent(MOST_KEPT)
        self._ignored: dict[str, bool] = {}

    @classmethod
    def of(cls, git_dir: Path, spec: TaskSpec, worked: Path | None = None) -> Snapshots:
        """Return the snapshots of a task's work tree."""
        kept, notes = spec.runner.sandbox.kept_bytes, spec.runner.note.dir
        return cls(git_dir, Path(spec.repo), notes, worked=worked, keep_up_to=kept)

    def take(self) -> Snapshot:
        """Take a snapshot of the work tree as it is now, without the note's folder.

        Raises InfraError if the work tree cannot be entered.
        """
        check_open(self.work_tree)
        return take(self.git, self.work_tree, self.note_dir, self.options)

    def worker_starts(self) -> None:
        """Record that a worker is about to run in the folder: its file times become unreliable.

        The record is for the first snapshots of later runs; it changes nothing in this one.
        """
        if self.options.worked is not None:
            note_worker(self.options.worked)

    def ignored_seen(self) -> dict[str, str]:
        """Return size, times and inode of each ignored file that the last snapshot did not keep.

        Which files are ignored is decided by the rules at the first snapshot. Files in ignored
        folders are not included. If two snapshots have different facts for a path, the file
        changed.
        """
        return seen_files(self.git)

    def empty_at_first(self) -> Folders:
        """Return the folders with nothing in them that the first snapshot passed over."""
        return empty_at_first(self.git)

    def take_command(self) -> tuple[str, ...]:
        """Return `take` as a command for the supervisor; it prints the snapshot as a JSON line."""
        python = getattr(sys, "_base_executable", None) or sys.executable
        return tuple(command(python, self.git, self.work_tree, self.options))

    def changes(self, before: str, after: str) -> Changes:
        """Return what differs between two trees, sorted by path."""
        if before == after:
            return []
        compare = partial(self._compare, before, after)
        return list(self._differing.get(f"{before} {after}", compare))

    def _compare(self, before: str, after: str) -> Changes:
        raw = self.git.run(
            *BIG, "diff-tree", "-r", "-z", "--raw", "--numstat", *NO_SURPRISES, before, after
        )
        kinds: dict[bytes, ChangeKind] = {}
        counts: dict[bytes, tuple[int | None, int | None]] = {}
        fields = iter(raw.split(b"\0"))
        for field in fields:
            if field.startswith(b":"):
                kinds[next(fields)] = KINDS[field[-1:].decode()]
            elif field:
                added, removed, path = field.split(b"\t", 2)
                counts[path] = (_count(added), _count(removed))
        return [
            Change(to_text(path), kind, *counts.get(path, (None, None)))
            for path, kind in sorted(kinds.items())
        ]

    def patch(
        self, before: str, after: str, paths: Iterable[str] | None = None, *, text: bool = False
    ) -> str:
        """Return the difference as a unified diff, of all paths or of these files.

        With `text` every file is treated as text, whatever its content and .gitattributes say.
        """
        shown = ("--text",) if text else ()
        command = (*BIG, "diff-tree", "-r", "-p", *NO_SURPRISES, *shown, before, after, "--")
        names = () if paths is None else tuple(os.fsdecode(to_bytes(path)) for path in paths)
        if paths is not None and not names:
            return ""
        raw = self.git.run(*command, *names, env={"GIT_LITERAL_PATHSPECS": "1"})
        return raw.decode("utf-8", "replace")

    def stat_line(self, before: str, after: str) -> str:
        """Return the difference in one line: "2 files changed, +12 -3"."""
        return stat_line(self.changes(before, after))

    def list(self, tree: str) -> dict[str, Entry]:
        """Return every path of a tree with its mode ("100644", "100755", "120000") and blob."""
        return dict(self._listed.get(tree, partial(self._list, tree)))

    def _list(self, tree: str) -> dict[str, Entry]:
        """List a tree: a large one by what differs from the tree that was used last."""
        near = self._listed.latest()
        if near is None or is_small(near[1]):
            return list_tree(self.git, tree)
        entries = dict(near[1])
        for path, (_, entry) in differing(self.git, near[0], tree).items():
            if entry is None:
                del entries[path]
            else:
                entries[path] = entry
        return entries

    def read(self, tree: str, path: str) -> bytes | None:
        """Return the content of a tree's file (of a link its target); None if there is none."""
        entry = self.list(tree).get(path)
        return None if entry is None else self._blob(entry[1])

    def leads_to(self, tree: str, path: str) -> str | None:
        """Return the path that `path` leads to over a tree's links; None if one leads outside."""
        return followed(path, self.list(tree), self._blob)

    def reader(self, tree: str) -> Callable[[str], bytes | None]:
        """Return a function that reads files of one tree, which is listed once.

        Links are followed within the tree, a folder reads as empty content, and what is in an
        ignored folder is read from the disk; None for everything else.
        """
        entries = self.list(tree)
        folders: set[str] = set()
        ignored = tuple(f"{name}/" for name in self.ignored_folders())

        def read(path: str) -> bytes | None:
            place = followed(path, entries, self._blob)
            if place in entries:
                return self._blob(entries[place][1])
            if place is not None and place.startswith(ignored):
                return self._on_disk(place)
            if not folders:  # of 100,000 files they take a while, and are seldom asked for
                folders.update(folders_of(entries))
            return b"" if place in folders else None

        return read

    def _blob(self, name: str) -> bytes:
        """Return a content by its name, which is checked against it."""
        return self._read.get(name, partial(self._blob_of_store, name))

    def _blob_of_store(self, name: str) -> bytes:
        for _, data in blobs(self.git, [name]):
            if data is not None:
                return data if isinstance(data, bytes) else data.read(MOST_READ)
        raise ContentGone(
            f"The object {name} is gone from the repository, or not what its name says.",
            remedy="git fsck in the repository",
        )

    def _on_disk(self, path: str) -> bytes | None:
        """Return a file of an ignored folder from the disk; follows links within the repository."""
        place = (self.work_tree / path).resolve()
        if not place.is_relative_to(self.work_tree.resolve()):
            return None
        return b"" if place.is_dir() else read_small(os.fsencode(place))

    def combine(self, tree: str, overrides: Mapping[str, Entry | None]) -> str:
        """Return a tree like `tree` with other entries at some paths; None removes the path."""
        if not overrides:
            return tree
        entries = self.list(tree)
        if is_small(entries) and is_ordinary(entries, overrides):
            made = with_other(entries, overrides)
            name = keep_tree(self.git, made)
            self._listed.keep(name, made)
            return name
        with tempfile.TemporaryDirectory(dir=self.git_dir) as scratch:
            index = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
            self.git.run("read-tree", tree, env=index)
            lines = index_lines(overrides)
            self.git.run("update-index", "-z", "--index-info", stdin=lines, env=index)
            # The tree may name objects of the user's, which git must not mark as used there.
            written = self.git.run("write-tree", "--missing-ok", env=index, writes=True)
            return written.decode().strip()

    def with_texts(self, tree: str, texts: Mapping[str, bytes]) -> str:
        """Return a tree like `tree` with other contents at some paths.

        New ones, and those that were links, are plain files.
        """
        if not texts:
            return tree
        entries = self.list(tree)
        modes = {path: entries[path][0] for path in texts if path in entries}
        files = {path: mode for path, mode in modes.items() if mode.startswith("100")}
        return self.combine(
            tree,
            {
                path: (files.get(path, "100644"), self.write_blob(text))
                for path, text in texts.items()
            },
        )

    def export_files(self, tree: str, paths: Collection[str], target: Path) -> None:
        """Write these files of a tree into an empty or new folder; too large ones as they are now.

        Files that the tree does not have are left out.
        """
        entries = self.list(tree)
        wanted = {path: entries[path] for path in paths if path in entries}
        large = export_entries(self.git, wanted, target)
        with SafeFolder(self.work_tree) as source, SafeFolder(target) as copy:
            for path in large:
                if (found := source.read(path)) is not None:
                    copy.write(path, *found)

    def export_tree(
        self, tree: str, target: Path, bring: Callable[[str, Path], None] | None = None
    ) -> Folders:
        """Check a tree out into an empty or new folder, and return its paths.

        Files that are too large for the store come from the work tree if they still match the tree;
        others are left out. `bring(path, target)` puts such a file into its place, whose folder
        exists; by default it is copied. Modes and links are as in the tree, and nothing is written
        outside the folder. Raises GitFailed (`content-gone`) if a content no longer matches its
        name.
        """
        entries = self.list(tree)
        if is_small(entries):
            large = export_entries(self.git, entries, target, self._contents)
        else:
            large = export_tree(self.git, tree, target)
        self._bring_large(large, target, entries, bring)
        return sorted(entries)

    def _bring_large(
        self,
        paths: Folders,
        target: Path,
        entries: Mapping[str, Entry],
        bring: Callable[[str, Path], None] | None,
    ) -> None:
        with SafeFolder(self.work_tree) as source:
            for path in paths:
                if not source.is_unchanged(path, entries[path]):
                    continue  # the file there now is not the one of this tree
                place = target / path
                place.parent.mkdir(parents=True, exist_ok=True)
                if bring is None:
                    copy_file(self.work_tree / path, place)
                else:
                    bring(path, place)

    def unkept_between(self, before: str, after: str) -> Folders:
        """Return paths that differ between two trees and whose content is not kept for both."""
        large = stand_ins(self.git)
        if before == after or not large:
            return []
        return sorted(
            path
            for path, sides in differing(self.git, before, after).items()
            if any(side is not None and side[1] in large for side in sides)
        )

    def large_in(self, tree: str) -> Folders:
        """Return the paths of a tree of which only size and times are kept."""
        large = stand_ins(self.git)
        if not large:
            return []
        return sorted(path for path, (_, blob) in self.list(tree).items() if blob in large)

    def ignored_paths(self, paths: Collection[str]) -> set[str]:
        """Return those of `paths` that the first snapshot's rules ignore and git does not track."""
        unknown = sorted(path for path in paths if path not in self._ignored)
        if unknown:
            rules = IgnoreRules(self.git, os.fsencode(self.work_tree))
            ignored = rules.untracked_ignored(unknown)
            if rules.baseline:
                return ignored
            self._ignored.update((path, path in ignored) for path in unknown)
        return {path for path in paths if self._ignored[path]}

    def ignored_by(self, tree: str, paths: Collection[str]) -> set[str]:
        """Return those of `paths` that the .gitignore files of a tree ignore."""
        with tempfile.TemporaryDirectory(dir=self.git_dir) as scratch:
            rules = [p for p in self.list(tree) if p.rpartition("/")[2] == ".gitignore"]
            self.export_files(tree, rules, Path(scratch))
            asked = b"".join(to_bytes(path) + b"\0" for path in paths)
            output = self.git.run(
                f"--work-tree={scratch}",
                *("check-ignore", "-z", "--stdin", "--no-index"),
                stdin=asked,
                accept=(0, 1),
                cwd=Path(scratch),
            )
        return {to_text(path) for path in output.split(b"\0") if path}

    def write_blob(self, data: bytes) -> str:
        """Keep content and return its name."""
        name = keep_blob(self.git, data)
        if len(data) in _READ_AT_ONCE:
            self._read.keep(name, data)
        return name

    def restore(self, from_tree: str, to_tree: str, *, force: bool = False) -> Restored:
        """Bring the files of the work tree from `from_tree` back to `to_tree`.

        A file that matches neither tree has been edited since: without `force` nothing at all is
        changed and such files are returned. Files too large to be kept are always refused.
        """
        changed = differing(self.git, to_tree, from_tree)
        wanted = {path: entry for path, (entry, _) in changed.items() if entry is not None}
        left_behind = {path: entry for path, (_, entry) in changed.items() if entry is not None}
        with SafeFolder(self.work_tree) as folder:
            return restore(
                folder,
                sorted(changed),
                left_behind,
                wanted,
                partial(contents, self.git),
                force=force,
            )

    def ignored_folders(self) -> Folders:
        """Return the ignored folders that exist now, relative to the work tree."""
        names = (os.fsdecode(path) for path in ignored_folders(self.git))
        places = {name: self.work_tree / name for name in names}
        return [name for name, at in places.items() if at.is_dir() and not at.is_symlink()]

    def dependency_fingerprint(self) -> dict[str, str]:
        """Return digests of what no snapshot shows and yet can influence tests.

        By ignored folder of installed packages: the paths and stats of its code files. By file of
        other ignored folders: what configures a test tool or replaces it.
        """
        found: dict[str, str] = {}
        for name in self.ignored_folders():
            folder = self.work_tree / name
            if ignored_content.holds_packages(folder):
                found[name] = ignored_content.fingerprint(folder)
            else:
                found |= ignored_content.steering_files(self.work_tree, folder)
        return found

    def read_many(self, tree: str, paths: Collection[str]) -> dict[str, bytes]:
        """Return the regular files of a tree by path, without those of more than 1 MiB."""
        listed = self.list(tree)
        entries = {path: listed[path] for path in paths if path in listed}
        entries = {path: one for path, one in entries.items() if one[0].startswith("100")}
        sizes = self._sizes(entries)
        wanted = {
            path: one for path, one in entries.items() if sizes.get(path, -1) in _READ_AT_ONCE
        }
        read = {path: data for path, _, data in self._contents(self.git, wanted)}
        found = ((path, read.get(path)) for path in wanted)
        return {path: data for path, data in found if isinstance(data, bytes)}

    def _contents(
        self, git: Git, entries: Mapping[str, Entry]
    ) -> Iterator[tuple[str, str, Content]]:
        """Yield the entries like `contents`, but take those in memory from there."""
        known = self._read.known(blob for _, blob in entries.values())
        unread = {path: one for path, one in entries.items() if one[1] not in known}
        for path, mode, data in contents(git, unread) if unread else ():
            if isinstance(data, bytes) and len(data) in _READ_AT_ONCE:
                self._read.keep(unread[path][1], data)
            yield path, mode, data
        for path, (mode, blob) in entries.items():
            if blob in known:
                yield path, mode, known[blob]

    def sizes(self, tree: str, paths: Collection[str]) -> dict[str, int]:
        """Return the sizes in bytes of these files of a tree, as kept; others are left out."""
        listed = self.list(tree)
        return self._sizes({path: listed[path] for path in paths if path in listed})

    def _sizes(self, entries: Mapping[str, Entry]) -> dict[str, int]:
        known = self._read.known(blob for _, blob in entries.values())
        # A larger content may have been cut when it was read.
        sizes = {name: len(data) for name, data in known.items() if len(data) in _READ_AT_ONCE}
        names = [blob for _, blob in entries.values() if blob not in sizes]
        if names:
            asked = "".join(f"{name}\n" for name in names).encode()
            output = self.git.run("cat-file", "--batch-check=%(objectsize)", stdin=asked).decode()
            lines = zip(names, output.split("\n"), strict=False)
            sizes |= {name: int(size) for name, size in lines if size.isdigit()}
        return {path: sizes[blob] for path, (_, blob) in entries.items() if blob in sizes}


def followed(
    path: str, entries: Mapping[str, Entry], target_of: Callable[[str], bytes]
) -> str | None:
    """Return the path that `path` leads to over a tree's links; None if one leads outside."""
    place = posixpath.normpath(path)
    for _ in range(MOST_LINKS):
        parts = place.split("/")
        above = ("/".join(parts[:length]) for length in range(1, len(parts) + 1))
        link = next((name for name in above if entries.get(name, ("", ""))[0] == LINK), None)
        if link is None:
            return None if place.startswith(("/", "..")) else place
        rest = parts[link.count("/") + 1 :]
        target = to_text(target_of(entries[link][1]))
        place = posixpath.normpath(posixpath.join(posixpath.dirname(link), target, *rest))
    return None


def folders_of(paths: Iterable[str]) -> set[str]:
    """Return all folders that the files are in; the top is "."."""
    found = {"."}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def stat_line(changes: Collection[Change]) -> str:
    """Return changes in one line: "2 files changed, +12 -3"."""
    added = sum(change.added or 0 for change in changes)
    removed = sum(change.removed or 0 for change in changes)
    files = "1 file" if len(changes) == 1 else f"{len(changes)} files"
    return f"{files} changed, +{added} -{removed}"


def _count(number: bytes) -> int | None:
    return None if number == b"-" else int(number)
