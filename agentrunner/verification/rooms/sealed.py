"""Keeps what git ignores as it was before the first worker: installed packages, builds, settings.

Snapshots leave ignored folders out. A clean room needs them all the same, and must not take them
from the repository, where the worker can write. So they are copied once, before the first worker,
and every room gets a copy of that copy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agentrunner.git.ignored_content import holds_packages
from agentrunner.git.snapshots import Snapshots
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
        for number, name in enumerate(snapshots.ignored_folders()):
            source = self._repo / name
            copied = fits(source)
            if copied:
                copy_folder(source, self._folder / str(number))
            rows.append(SealedFolder(name, copied, holds_packages(source)))
        write_private(self._folder / SEEN, json.dumps(snapshots.ignored_seen()).encode())
        seal_git(self._repo, self.git)
        text = json.dumps([asdict(one) for one in rows]).encode()
        write_private(self._folder / MANIFEST, text)

    def files_seen(self) -> dict[str, str] | None:
        """What `Snapshots.ignored_seen` was then; None in a run that an older version began."""
        try:
            found: dict[str, str] = json.loads((self._folder / SEEN).read_bytes())
        except FileNotFoundError:
            return None
        return found

    @property
    def git(self) -> Path:
        """The path of the git data for rooms (see `room_git`); it may not exist."""
        return self._folder.parent / "sealed-git"

    @property
    def home(self) -> Path:
        """The home of the set-up before the run; created where it is missing."""
        home = self._folder.parent / "set-up-home"
        make_private(home)
        return home

    @property
    def home_seen(self) -> Path | None:
        """The same home; None where that set-up wrote nothing into it."""
        home = self._folder.parent / "set-up-home"
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
        try:
            rows = json.loads((self._folder / MANIFEST).read_bytes())
        except FileNotFoundError:
            return []
        found = [SealedFolder(**row) for row in rows]
        return [
            (one, self._folder / str(number) if one.copied else self._repo / one.name)
            for number, one in enumerate(found)
        ]


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


def copy_folder(source: Path, target: Path, *, leave_out: Sequence[str] = ()) -> None:
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
    for name in leave_out:
        shutil.rmtree(target / name, ignore_errors=True)
