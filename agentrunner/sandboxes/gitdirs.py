"""Finds the parts of a repository's git data that a sandbox must mount read-only.

A worker that can write to any of them can make the *host's* next `git status` run code: a config
with core.fsmonitor, a hook, a `commondir` that points to a config of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from agentrunner.errors import UsageError
from agentrunner.errors.repositories import BadGitLink
from agentrunner.folders import walk
from agentrunner.sandboxes.base import Mount
from agentrunner.text.unicode import to_bytes

SHARED_OBJECTS = Path("/run/agentrunner-objects")
"""Where the sandbox has the objects of the user's repository."""

_FLOCK = "hhqqi4x"
"""The kernel's `struct flock`."""


@dataclass(frozen=True)
class GitData:
    """Paths to mount read-only, each at its own path; `absent` if there is no .git."""

    paths: tuple[Path, ...] = ()
    absent: bool = False
    """Also true for an empty folder, which a killed sandbox may have left."""


def git_data(repo: Path) -> GitData:
    """Return the git data: `.git`, and for worktrees and submodules what it points to.

    Raises UsageError (code `git-link`) if `.git` is a symbolic link, since nothing can be mounted
    over a link, or if it points to something that is not a git folder.
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
    folder = _gitdir_of(git)
    common = _common_dir(folder)
    return GitData(paths=(git, *dict.fromkeys((common, folder))))


def git_folders(repo: Path) -> tuple[Path, Path] | None:
    """Return the git folder of a repository and the one that it shares.

    They are the same folder except in a linked worktree. None if there is no git data. Raises
    UsageError like `git_data`.
    """
    git = repo / ".git"
    if git_data(repo).absent:
        return None
    own = git if git.is_dir() else _gitdir_of(git)
    return own, _common_dir(own)


class Mask:
    """The empty `.git` that sandboxes mount on if a repository has none.

    It stays while any sandbox needs it: each holds a lock on the repository's folder, like bwrap's
    --lock-file. Our lock belongs to the open file, so that nothing else in this process that opens
    the folder releases it.
    """

    def __init__(self, repo: Path) -> None:
        self._repo = repo
        self._lock = -1

    def put(self) -> None:
        """Make it, and keep others from removing it. May be called repeatedly."""
        if self._lock < 0:
            self._lock = os.open(self._repo, os.O_RDONLY | os.O_DIRECTORY)
            wanted = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            fcntl.fcntl(self._lock, fcntl.F_OFD_SETLK, wanted)
        (self._repo / ".git").mkdir(exist_ok=True)

    def lift(self) -> None:
        """Release our lock, when our sandboxes are gone. The last user removes the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
            remove_mask(self._repo)


def remove_mask(repo: Path) -> None:
    """Remove the empty `.git` that a sandbox made as a mount point, once no sandbox needs it.

    Removing a folder removes the mounts on it from every namespace, and would let a worker that is
    still alive make its own `.git`. So each such sandbox holds a lock on the repository's folder
    (bwrap's --lock-file), and nothing is removed while there is a lock.
    """
    place = repo / ".git"
    if place.is_symlink() or not place.is_dir() or _is_locked(repo):
        return
    with contextlib.suppress(OSError):
        place.rmdir()  # fails for a folder that is not empty


def _is_locked(folder: Path) -> bool:
    """Whether any process holds a POSIX lock on this folder."""
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
    finally:
        os.close(descriptor)
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)


def _gitdir_of(file: Path) -> Path:
    text = file.read_text(errors="replace")
    if not text.startswith("gitdir:"):
        raise _refused(file, 'it does not begin with "gitdir:"')
    folder = (file.parent / text.removeprefix("gitdir:").strip()).resolve()
    # A hostile archive could point it at ~/.ssh: only what looks like git's own folder is mounted.
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


def worker_git(repo: Path, folder: Path) -> tuple[Mount, ...]:
    """Return the mounts for one worker run, made in `folder`, which is emptied first; blocks.

    Empty if the repository has no git data. Raises UsageError like `git_data`, and OSError.

    So `git add`, `mv`, `rm`, `apply --index`, `status` and `diff --cached` work, and nothing of the
    user's changes. This is done with mounts, not with GIT_INDEX_FILE and the like: variables would
    also reach every other repository that a command of the worker makes, such as the fixtures of a
    test suite.

    Whatever writes a ref, HEAD or the configuration fails with git's own message, of a lock that
    cannot be made on a read-only file system; that it fails is a sentence of the worker's prompt.
    Git cannot be made to print that sentence itself: its hook for refs runs after the locks, and
    would take the place of one of the user's; and a program before git on PATH would be git for
    tests as well, also in those other repositories, where a commit has to work.
    """
    found = git_folders(repo)
    shutil.rmtree(folder, ignore_errors=True)
    if found is None:
        return ()
    own, common = found
    index, objects = folder / "git", folder / "objects"
    shared = common / "objects"
    for place in (folder, index, objects, objects / "info"):
        place.mkdir(mode=0o755, parents=True)
    mounts = [Mount(index, own, read_only=False)]
    for entry in sorted(os.scandir(own), key=lambda entry: entry.name):
        mounts += _entry_mounts(entry, own, index, keep=own != common)
    mounts.append(Mount(objects, shared, read_only=False))
    mounts.append(Mount(shared.resolve(), SHARED_OBJECTS))
    lines = [SHARED_OBJECTS, *alternates_of(shared)]
    text = "".join(f"{line}\n" for line in lines)
    (objects / "info/alternates").write_bytes(to_bytes(text))
    hand_over(folder, repo)
    return tuple(mounts)


def _entry_mounts(entry: os.DirEntry[str], own: Path, index: Path, *, keep: bool) -> list[Mount]:
    """Prepare one entry of the git folder: copy the index, leave out locks, mount the rest."""
    mode, place = entry.stat(follow_symlinks=False).st_mode, index / entry.name
    if entry.name == "index":
        shutil.copy2(entry.path, place)
        return []
    if entry.name.endswith(".lock") or (entry.name == "objects" and not keep):
        if entry.name == "objects":
            place.mkdir()
        return []
    if stat.S_ISLNK(mode):
        place.symlink_to(os.readlink(entry.path))  # noqa: PTH115 - its text
        return []
    if stat.S_ISDIR(mode):
        place.mkdir()
    elif stat.S_ISREG(mode):
        place.touch()
    else:
        return []  # a socket of one of the user's daemons
    return [Mount(Path(entry.path), own / entry.name)]


def alternates_of(objects: Path) -> list[Path]:
    """Return where the user's repository borrows objects from, as absolute paths."""
    try:
        lines = (objects / "info/alternates").read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [Path(os.path.normpath(objects / line)) for line in lines if line[:1] not in ("", "#")]


def hand_over(folder: Path, repo: Path) -> None:
    """Give the files to the repository's owner, who works in the sandbox, if we are root."""
    owner = repo.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    for here, _, files in walk(folder):
        for name in ("", *files):
            os.chown(os.path.join(here, name), owner.st_uid, owner.st_gid, follow_symlinks=False)  # noqa: PTH118
