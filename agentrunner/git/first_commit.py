"""Turns a folder into a git repository of the user's: `git init`, and one commit of its content.

The commit is made in a private clone from files that are only read, so that nothing in the folder
is obeyed except its ignore rules (threat T1). A new `.git` appears in one step and with its commit,
or not at all. Everything here blocks and may raise GitFailed and OSError.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath

from msgspec import Struct

from agentrunner.folders import remove_tree
from agentrunner.git.ignore import IgnoreRules
from agentrunner.git.private_clone import BRANCHES, CloneStore, Identity
from agentrunner.git.process import Git, users_git
from agentrunner.git.snapshots import Snapshots
from agentrunner.git.user_repository import UserRepository
from agentrunner.storage.failpoints import reach

BRANCH = "main"
MESSAGE = "What was there at the start\n"
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_UNDER_WAY = ".agentrunner-git"
"""Where a new `.git` is until it is complete: in the same folder, so that it can be renamed."""


class FirstCommit(Struct, frozen=True):
    """What the folder's repository begins with."""

    branch: str
    commit: str
    files: tuple[str, ...]
    """The files in it, sorted."""
    left: tuple[str, ...]
    """What is missing in it though no rule ignores it: other repositories, unreadable files."""


def takes_first_commit(repo: Path) -> bool:
    """Whether a folder has no git yet, or a repository without a commit and with nothing staged."""
    if not (repo / ".git").exists():
        return True
    theirs = UserRepository(repo, {})
    return theirs.unborn() is not None and not (theirs.git_dir / "index").exists()


def make_first_commit(
    clone: CloneStore, room: Path, note_dir: str, *, author: Identity, at: str
) -> FirstCommit | None:
    """Make the folder a repository if it is none, and give it its first commit.

    Return None if it does not take one. `room` is a folder of ours that does not exist yet.
    """
    if not takes_first_commit(clone.repo):
        return None
    under_way = clone.repo / _UNDER_WAY
    remove_tree(str(under_way))
    files, left = _committed_files(room, clone.repo, note_dir)
    empty = clone.empty_tree()
    commit = clone.commit(
        clone.repo, files, parents=(), message=MESSAGE, author=author, at=at, tree=empty
    )
    branch = UserRepository(clone.repo, {}).unborn() if (clone.repo / ".git").exists() else None
    if branch is None:
        _make_git_dir(clone, under_way, commit)
    else:
        clone.give(commit)
        _set_branch(users_git(clone.user_git_dir(), clone.git.binary), branch, commit)
    return FirstCommit(branch or BRANCH, commit, files, left)


def _committed_files(
    room: Path, repo: Path, note_dir: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files of a first commit, and what is left out."""
    snapshots = Snapshots(room, repo, note_dir)
    try:
        taken = snapshots.take()
        found = snapshots.list(taken.tree)
        ignored = IgnoreRules(snapshots.git, os.fsencode(repo)).ignored_files(list(found))
    finally:
        shutil.rmtree(room, ignore_errors=True)
    others = {str(PurePosixPath(path).parent) for path in taken.embedded}
    inside = tuple(f"{path}/" for path in others)
    files = (path for path in found if path not in ignored and not path.startswith(inside))
    return tuple(sorted(files)), tuple(sorted({*others, *taken.skipped}))


def _make_git_dir(clone: CloneStore, under_way: Path, commit: str) -> None:
    """Make a new `.git` with the commit and its index; a failure leaves nothing behind."""
    git_dir = under_way / ".git"  # with another last name git would take it for a bare repository
    try:
        under_way.mkdir()
        user = Git(git_dir, clone.git.binary)
        options = ("--template=", "--object-format=sha1", f"--initial-branch={BRANCH}")
        user.run("init", "--quiet", *options, cwd=under_way, umask=-1)
        CloneStore(clone.git.git_dir, under_way).give(commit)
        _set_branch(user, BRANCH, commit)
        reach("repository_made")
        git_dir.rename(clone.repo / ".git")
    finally:
        remove_tree(str(under_way))


def _set_branch(user: Git, branch: str, commit: str) -> None:
    """Write the index first: killed in between, there is no commit and nothing seems deleted."""
    index = user.git_dir / "index"
    try:
        user.run(*_NO_HOOKS, "read-tree", commit, umask=-1)
        user.run(*_NO_HOOKS, "update-ref", f"{BRANCHES}{branch}", commit, "", umask=-1)
    except BaseException:
        index.unlink(missing_ok=True)
        raise
