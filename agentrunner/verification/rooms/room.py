"""Clean rooms: what is verified is what is handed over, and nothing else.

A room is a fresh checkout of one tree at the repository's own path, with what git ignores as it
was before the first worker. A verdict is never made in the worker's folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from agentrunner.folders import remove_tree, walk
from agentrunner.git.ignored_content import copy_file
from agentrunner.git.snapshots import Snapshots
from agentrunner.sandboxes.base import Mount
from agentrunner.verification.results.files import text_of
from agentrunner.verification.rooms.decision_sandbox import CopyOfRepo
from agentrunner.verification.rooms.kept_copies import Copy, KeptCopies
from agentrunner.verification.rooms.room_git import RoomGit
from agentrunner.verification.rooms.sealed import Sealed

MOST_READ = 65_536
MOST_FILES = 2_000
PATTERNS = ("*.pth", "__editable__*.py", "*.egg-link")
"""Files of pip, setuptools, hatch and uv, and of old setuptools."""

MOST_BOUND = 100
"""Large files of one room that are mounted; further ones are copied."""
LONG_AGO = 86_400
"""The time set on files that an earlier build may have made, in seconds since 1970."""


@dataclass(frozen=True)
class Room:
    """A checkout of one tree."""

    tree: str
    copy: CopyOfRepo
    clock: dict[str, int] = field(default_factory=dict, repr=False)
    """The change time of each file when the room was ready, in nanoseconds, by path."""

    @property
    def own_home(self) -> Path:
        """The folder in which a set-up in this room writes its home."""
        return self.copy.path.parent / "home"

    def with_own_home(self) -> Room:
        """The same room, whose commands see what a set-up in it wrote into its home."""
        return replace(self, copy=replace(self.copy, home=self.own_home))

    def from_now(self, ignored: Collection[str]) -> Room:
        """The same room, in which only later writes count as writes. Blocks."""
        now = dict(_change_times(self.copy.path, self.clock))
        return replace(self, clock=now | dict(_walk(self.copy.path, ignored)))

    def moved(self) -> list[str]:
        """Paths of the tree that were written, replaced or removed since. Blocks."""
        now = dict(_change_times(self.copy.path, self.clock))
        return sorted(path for path, at in self.clock.items() if now.get(path) != at)

    def written(self, ignored: Collection[str]) -> list[str]:
        """All paths that were written since, new files outside ignored folders included. Blocks."""
        now = dict(_walk(self.copy.path, ignored))
        return sorted(path for path, at in now.items() if self.clock.get(path) != at)


class Rooms:
    """Makes rooms of a run. `scratch` is in the run's folder; `mounts`: the sandbox can mount."""

    def __init__(
        self, snapshots: Snapshots, sealed: Sealed, scratch: Path, *, mounts: bool
    ) -> None:
        self.snapshots = snapshots
        self.sealed = sealed
        self._scratch = scratch
        self._mounts = mounts
        self._paths_asked: set[str] = set()
        self._ignored: set[str] = set()
        self._git = RoomGit(snapshots, sealed.git, mounts)
        self._copies = KeptCopies(scratch / "kept")
        self.since: str | None = None
        """The tree before the run, once known: binary files added since must look old."""
        self._binaries_by_tree: dict[str, set[str]] = {}

    @asynccontextmanager
    async def open(self, tree: str) -> AsyncIterator[Room]:
        """A fresh room with this tree, removed at the end. Raises OSError if the disk is full."""
        folder = await asyncio.to_thread(self._new_folder)
        place = Path(folder.name) / "room"
        copies: list[Copy] = []
        try:
            yield await asyncio.to_thread(self._checked_out, place, tree, copies)
        finally:
            await asyncio.to_thread(self._clean_up, folder, place, copies)

    def leads_out(self) -> list[str]:
        """Links of installed packages that lead from a room into the repository. Blocks.

        There are none where rooms are mounted at the repository's own path.
        """
        if self._mounts:
            return []
        folders = [(one.name, source) for one, source in self.sealed.folders()]
        return editable_installs(folders, self.snapshots.work_tree)

    @asynccontextmanager
    async def where_needed(self, tree: str, needed: bool) -> AsyncIterator[Room]:
        """The same; where nothing is executed, a room without files, which costs nothing."""
        if needed:
            async with self.open(tree) as room:
                yield room
        else:
            yield Room(tree, CopyOfRepo(self._scratch, ()))

    def _new_folder(self) -> tempfile.TemporaryDirectory[str]:
        self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        return tempfile.TemporaryDirectory(dir=self._scratch, ignore_cleanup_errors=True)

    def _clean_up(
        self, folder: tempfile.TemporaryDirectory[str], place: Path, copies: Collection[Copy]
    ) -> None:
        # Where processes are not contained, one of them may still be writing.
        for copy in copies if self._mounts else ():
            self._copies.take_back(copy, place)
        remove_tree(str(place))
        folder.cleanup()

    def _checked_out(self, target: Path, tree: str, copies: list[Copy]) -> Room:
        mounts: list[Mount] = []

        def provide_large_file(path: str, place: Path) -> None:
            """Provide an unchanged large file: mounted read-only if possible, else copied."""
            source = self.snapshots.work_tree / path
            if not self._mounts or len(mounts) >= MOST_BOUND:
                copy_file(source, place)
                return
            place.touch()
            mounts.append(Mount(source, source, read_only=True))

        paths = self.snapshots.export_tree(tree, target, provide_large_file)
        for folder, source in self.sealed.folders():
            place = target / folder.name
            if not source.is_dir() or (os.path.lexists(place) and not place.is_dir()):
                continue  # the tree has a file there now
            if folder.copied or not self._mounts:
                copy = self._copies.bring(source, place)
                copies += [copy] if copy is not None else []
            else:
                place.mkdir(parents=True, exist_ok=True)
                where = self.snapshots.work_tree / folder.name
                mounts.append(Mount(source, where, read_only=True))
        for path in self._ignored_among(paths) | self._added_binaries(tree):
            with contextlib.suppress(OSError):
                os.utime(target / path, (LONG_AGO, LONG_AGO), follow_symlinks=False)
        entries = self.snapshots.list(tree)
        mounts += self._git.furnish(target, target.parent, entries, self._ignored_among(paths))
        clock = dict(_change_times(target, paths))
        return Room(tree, CopyOfRepo(target, tuple(mounts), self.sealed.home_seen), clock)

    def _ignored_among(self, paths: Collection[str]) -> set[str]:
        """Those of these paths that git ignores: builds must look older than their sources."""
        new = set(paths) - self._paths_asked
        if new:
            self._ignored |= self.snapshots.ignored_paths(new)
            self._paths_asked |= new
        return self._ignored.intersection(paths)

    def _added_binaries(self, tree: str) -> set[str]:
        """Binary files that the tree before the run lacks.

        One of them may be a build that does not belong to its sources. With an old time a tool that
        goes by times builds it again, and one that does not still finds it.
        """
        if self.since is None:
            return set()
        if tree not in self._binaries_by_tree:
            changes = self.snapshots.changes(self.since, tree)
            self._binaries_by_tree[tree] = {
                one.path for one in changes if one.kind == "added" and one.added is None
            }
        return self._binaries_by_tree[tree]

    def clear(self) -> None:
        """Remove rooms that a killed process has left. Blocks."""
        remove_tree(str(self._scratch))


def _change_times(root: Path, paths: Collection[str]) -> Iterator[tuple[str, int]]:
    base = os.fsencode(root)
    for path in paths:
        with contextlib.suppress(OSError):
            facts = os.lstat(os.path.join(base, os.fsencode(path)))  # noqa: PTH118 - bytes
            yield path, facts.st_ctime_ns


def _walk(root: Path, ignored: Collection[str]) -> Iterator[tuple[str, int]]:
    skipped = {str(root / name) for name in (*ignored, ".git")}
    for place, folders, names in walk(root):
        folders[:] = [name for name in folders if os.path.join(place, name) not in skipped]  # noqa: PTH118
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118
            with contextlib.suppress(OSError):
                yield os.path.relpath(path, root), os.lstat(path).st_ctime_ns


def editable_installs(folders: Iterable[tuple[str, Path]], repo: Path) -> list[str]:
    """Files below these folders that lead into the repository, by their names and places. Blocks.

    Each of `folders` is a name to show people and the path at which its content is read.

    Sandboxes mount a clean room at the repository's own path, so such a link leads into the room.
    Where nothing can be mounted it leads to the folder in which the worker worked.
    """
    return [
        f"{name}/{path.relative_to(folder)}"
        for name, folder in folders
        for path in islice(_files(folder), MOST_FILES)
        if str(repo) in text_of(path, MOST_READ)
    ]


def _files(folder: Path) -> Iterator[Path]:
    for packages in folder.glob("lib*/python*/site-packages"):
        for pattern in PATTERNS:
            yield from packages.glob(pattern)
