"""Keeps what git ignores as it was before the first worker: installed packages, builds, settings.

Snapshots leave ignored folders out. A clean room needs them all the same, and must not take them
from the repository, where the worker can write. So they are copied once, before the first worker,
and every room gets a copy of that copy.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentrunner.folders import remove_tree
from agentrunner.git.ignored_content import holds_packages
from agentrunner.git.snapshots import Snapshots
from agentrunner.git.submodules import commits_of_remotes
from agentrunner.sandboxes.homes import written_caches
from agentrunner.storage.run_folder import make_private, write_private
from agentrunner.verification.rooms.room_git import seal_git

MOST_FILES = 400_000
MOST_BYTES = 6 << 30
"""A larger folder is not copied: rooms see it as it is, read-only, and its changes are found."""
MANIFEST = "sealed.json"
SEEN = "files-seen.json"


@dataclass(frozen=True)
class SealedFolder:
    """An ignored folder of the repository."""

    name: str
    """Relative to the repository."""
    copied: bool
    """False for a folder that is too large."""
    packages: bool
    """Whether a package manager fills it."""
    place: str = ""
    """The name of the copy."""


class Sealed:
    """The ignored folders of one run, as they were before its first worker. Everything blocks."""

    def __init__(self, folder: Path, repo: Path) -> None:
        """`folder` is in the run's folder."""
        self._folder = folder
        self._repo = repo

    def seal(self, snapshots: Snapshots) -> None:
        """Copy what is ignored now, replacing an earlier copy. Raises OSError."""
        shutil.rmtree(self._folder, ignore_errors=True)
        make_private(self._folder)
        rows = []
        for name in snapshots.ignored_folders():
            source = self._repo / name
            if fits(source):
                rows.append(self._copy(source, name))
            else:
                rows.append(SealedFolder(name, copied=False, packages=holds_packages(source)))
        write_private(self._folder / SEEN, json.dumps(snapshots.ignored_seen()).encode())
        seal_git(self._repo, self.git)
        remotes = commits_of_remotes(self._repo, self.git / "index")
        write_private(self._remotes, json.dumps(remotes).encode())
        self._write_manifest(rows)

    def seal_once(self, snapshots: Snapshots) -> None:
        """Copy what is ignored now, where nothing is copied yet. Raises OSError."""
        if not self.made:
            self.seal(snapshots)

    def replace(self, room: Path, home: Path, names: Iterable[str]) -> None:
        """Take the ignored folders `names` of a room, and its home, in place of what was sealed.

        A folder that is too large to be copied stays what it was. The new copies lie beside the
        earlier ones until the manifest names them, and so does the new home, under a name made of
        that manifest: whoever is killed on the way, or meets an OSError, leaves the earlier folders
        with the earlier home, or the new ones with the new home, which takes its place when it is
        asked for.
        """
        self._settle()
        self._remove_homes(but=self._home)
        rows = [one for one, _ in self.folders() if not one.copied]
        for name in sorted({*names}.difference(one.name for one in rows)):
            source = room / name
            if source.is_dir() and not source.is_symlink():
                rows.append(self._copy(source, name))
        written_caches(home).mkdir(exist_ok=True)
        staged = self._staged_home(_text_of(rows))
        written_caches(home).rename(written_caches(staged))
        home.rename(staged)
        self._write_manifest(rows)
        self._settle()

    def _staged_home(self, manifest: bytes) -> Path:
        """The home that goes with this manifest, until it is in its place."""
        return self._home.with_name(f"{self._home.name}-{hashlib.sha256(manifest).hexdigest()}")

    def _settle(self) -> None:
        """Put the home of the present manifest in its place, where that has not been done."""
        try:
            staged = self._staged_home((self._folder / MANIFEST).read_bytes())
        except FileNotFoundError:
            return
        if not staged.is_dir():
            return
        for where in (written_caches, Path):  # the home last: where it is staged, this is not done
            if where(staged).is_dir():
                remove_tree(str(where(self._home)))
                where(staged).rename(where(self._home))

    def _remove_homes(self, but: Path | None = None) -> None:
        """Remove the home, its caches and what a replacement left beside them."""
        kept = (but, written_caches(but)) if but else ()
        for folder in self._home.parent.glob(f"{self._home.name}*"):
            if folder not in kept:
                remove_tree(str(folder))

    def _copy(self, source: Path, name: str) -> SealedFolder:
        """Copy a folder to a place that no manifest names yet."""
        place = secrets.token_hex(8)
        copy_folder(source, self._folder / place)
        return SealedFolder(name, copied=True, packages=holds_packages(source), place=place)

    def _write_manifest(self, rows: Sequence[SealedFolder]) -> None:
        """Write it last, in one step: it says that the copy is whole. What it names stays."""
        write_private(self._folder / MANIFEST, _text_of(rows))
        places = {row.place for row in rows}
        for other in [one for one in self._folder.iterdir() if one.is_dir()]:
            if other.name not in places:
                remove_tree(str(other))

    def files_seen(self) -> dict[str, str] | None:
        """What `Snapshots.ignored_seen` was then; None in a run that an older version began."""
        found: dict[str, str] | None = _read_json(self._folder / SEEN)
        return found

    @property
    def git(self) -> Path:
        """The path of the git data for rooms (see `room_git`); it may not exist."""
        return self._folder.parent / "sealed-git"

    def remotes(self) -> dict[str, list[str]]:
        """By submodule, what was known then of its remotes; {} in a run of an older version."""
        found: dict[str, list[str]] = _read_json(self._remotes) or {}
        return found

    @property
    def _remotes(self) -> Path:
        return self._folder.parent / "sealed-submodules.json"

    @property
    def _home(self) -> Path:
        return self._folder.parent / "set-up-home"

    @property
    def home(self) -> Path:
        """The home of the set-up before the run; created where it is missing."""
        self._settle()
        make_private(self._home)
        return self._home

    def empty_home(self) -> Path:
        """The same home without what a set-up that was stopped has left there and in caches."""
        self._remove_homes()
        return self.home

    @property
    def home_seen(self) -> Path | None:
        """The same home; None where that set-up wrote nothing into it."""
        self._settle()
        home = self._home
        return home if home.is_dir() and any(home.iterdir()) else None

    @property
    def made(self) -> bool:
        """Whether the copy exists: a run that an older version began has none."""
        return (self._folder / MANIFEST).is_file()

    @property
    def version(self) -> tuple[int, int]:
        """Distinguishes one copy from a later one in its place. Raises OSError without a copy."""
        status = (self._folder / MANIFEST).stat()
        return status.st_ino, status.st_ctime_ns

    def folders(self) -> list[tuple[SealedFolder, Path]]:
        """Each folder with the place of its content: the copy, or the folder itself if large."""
        rows = _read_json(self._folder / MANIFEST) or []
        # Older versions named a copy by its number.
        found = [SealedFolder(**{"place": str(at), **row}) for at, row in enumerate(rows)]
        return [
            (one, self._folder / one.place if one.copied else self._repo / one.name)
            for one in found
        ]


def _read_json(file: Path) -> Any:
    """The value in one of our own files; None where there is none."""
    try:
        return json.loads(file.read_bytes())
    except FileNotFoundError:
        return None


def _text_of(rows: Sequence[SealedFolder]) -> bytes:
    return json.dumps([asdict(row) for row in rows]).encode()


def fits(folder: Path) -> bool:
    """Whether a folder is small enough to be copied."""
    files = total = 0
    pending = [str(folder)]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
                continue
            files += 1
            if entry.is_file(follow_symlinks=False):
                total += entry.stat(follow_symlinks=False).st_size
        if files > MOST_FILES or total > MOST_BYTES:
            return False
    return True


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder with modes, times and links, by reflink where the file system can.

    What cannot be read is left out. Raises OSError where nothing could be copied at all.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["cp", "-a", "--reflink=auto", "--", str(source), str(target)]
    if target.is_dir():
        command = ["cp", "-a", "--reflink=auto", "-T", "--", str(source), str(target)]
    done = subprocess.run(command, capture_output=True, env={"PATH": os.environ.get("PATH", "")})
    if done.returncode != 0 and not target.exists():
        raise OSError(done.stderr.decode("utf-8", "replace").strip() or "cp failed")
