"""What of a repository's git data a sandbox must hold read-only.

A worker that can write any of it can make the *host's* next `git status` run code: a config
with core.fsmonitor, a hook, a `commondir` that points to a config of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from agentrunner.errors import UsageError
from agentrunner.errors.repositories import BadGitLink


@dataclass(frozen=True)
class GitData:
    """Paths to be mounted read-only, each at its own path; `absent` where there is no .git."""

    paths: tuple[Path, ...] = ()
    absent: bool = False
    """Also for an empty folder, which an earlier sandbox that was killed may have left."""


def git_data(repo: Path) -> GitData:
    """Of the repository itself: `.git`, and for worktrees and submodules what it points to.

    Raises UsageError (code `git-link`) where `.git` is a symbolic link, since a link cannot be
    mounted over, or points to something that is no git folder.
    """
    git = repo / ".git"
    if git.is_symlink():
        raise _refused(git, "it is a symbolic link, which the sandbox cannot protect")
    if git.is_dir():
        if not any(git.iterdir()):
            return GitData(absent=True)
        common = _common_dir(git)
        outside = () if common.is_relative_to(git) else (common,)
        return GitData(paths=(git, *outside))
    if not git.exists():
        return GitData(absent=True)
    folder = _pointed_to(git)
    common = _common_dir(folder)
    return GitData(paths=(git, *dict.fromkeys((common, folder))))


def git_folders(repo: Path) -> tuple[Path, Path] | None:
    """The git folder of a repository and the one that it shares, which may be the same.

    In a linked worktree they are not. None where there is no git data. Raises UsageError as
    `git_data` does.
    """
    git = repo / ".git"
    if git_data(repo).absent:
        return None
    own = git if git.is_dir() else _pointed_to(git)
    return own, _common_dir(own)


def remove_mask(repo: Path) -> None:
    """Remove the empty `.git` that a sandbox made to mount on, once no sandbox of anyone needs it.

    Removing a folder takes the mounts on it away from every namespace, and would let a worker
    that is still alive make a `.git` of its own. So each such sandbox holds a lock on the
    repository's folder (bwrap's --lock-file), and while there is one nothing is removed.
    """
    place = repo / ".git"
    if place.is_symlink() or not place.is_dir() or _locked(repo):
        return
    with contextlib.suppress(OSError):
        place.rmdir()  # refuses a folder that is not empty


def _locked(folder: Path) -> bool:
    """Whether any process holds a POSIX lock on this folder."""
    layout = "hhqqi4x"  # struct flock
    asked = struct.pack(layout, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
    finally:
        os.close(descriptor)
    return bool(struct.unpack(layout, answer)[0] != fcntl.F_UNLCK)


def _pointed_to(file: Path) -> Path:
    text = file.read_text(errors="replace")
    if not text.startswith("gitdir:"):
        raise _refused(file, 'it does not begin with "gitdir:"')
    folder = (file.parent / text.removeprefix("gitdir:").strip()).resolve()
    # A hostile archive could point it at ~/.ssh: only what looks like git's own is mounted.
    if not (folder / "HEAD").is_file():
        raise _refused(file, f"it points to {folder}, which is no git folder")
    return folder


def _common_dir(folder: Path) -> Path:
    try:
        text = (folder / "commondir").read_text(errors="replace").strip()
    except OSError:
        return folder
    common = (folder / text).resolve()
    if not all((common / name).exists() for name in ("HEAD", "objects", "refs")):
        raise _refused(folder / "commondir", f"it points to {common}, which is no git folder")
    return common


def _refused(place: Path, why: str) -> UsageError:
    return BadGitLink(
        f'"{place}" cannot be used: {why}.',
        path="task.repo",
        remedy="check out a fresh clone or worktree and name that",
    )
