"""git for a worker: its own index and objects, everything else of the repository's git read-only.

So `git add`, `mv`, `rm`, `apply --index`, `status` and `diff --cached` work, and nothing of the
user's changes. This is done with mounts, not with GIT_INDEX_FILE and the like: variables would also
reach every other repository that a command of the worker makes, such as the fixtures of a test
suite.

Whatever writes a ref, HEAD or the configuration fails with git's own message, of a lock that cannot
be made on a read-only file system; that it fails is a sentence of the worker's prompt. Git cannot
be made to print that sentence itself: its hook for refs runs after the locks, and would take the
place of one of the user's; and a program before git on PATH would be git for tests as well, also in
those other repositories, where a commit has to work.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from agentrunner.folders import walk
from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.gitdirs import git_folders
from agentrunner.text.unicode import to_bytes

SHARED_OBJECTS = Path("/run/agentrunner-objects")
"""Where the sandbox has the objects of the user's repository."""


def worker_git(repo: Path, folder: Path) -> tuple[Mount, ...]:
    """Return the mounts for one worker run, made in `folder`, which is emptied first; blocks.

    Empty if the repository has no git data. Raises UsageError like `git_data`, and OSError.
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
