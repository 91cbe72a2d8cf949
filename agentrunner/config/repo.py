"""Find and check the folder in which a task works, without running git."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner.errors.repositories import (
    BadRepository,
    BareRepository,
    ForeignRepository,
    MergeInProgress,
    RepositoryReadOnly,
)

if TYPE_CHECKING:
    from agentrunner.config.yaml_text import Place

_IN_PROGRESS = {
    "MERGE_HEAD": ("A merge", "git merge --continue, or git merge --abort"),
    "rebase-merge": ("A rebase", "git rebase --continue, or git rebase --abort"),
    "rebase-apply": ("A rebase", "git rebase --continue, or git rebase --abort"),
    "CHERRY_PICK_HEAD": ("A cherry-pick", "git cherry-pick --continue, or --abort"),
    "REVERT_HEAD": ("A revert", "git revert --continue, or --abort"),
}
"""Files that git keeps during an unfinished operation, the operation's name, and how to end it."""
_MAX_LINK = 4096

_BARE = ("HEAD", "objects", "refs")


def is_repository(folder: Path) -> bool:
    """Whether a folder has a `.git` of its own, which is a file in a submodule or work tree."""
    return os.path.lexists(folder / ".git")


def git_root(start: Path) -> Path | None:
    """Return the nearest folder at or above `start` that holds a `.git`; nothing is run or read."""
    for folder in (start, *start.parents):
        if is_repository(folder):
            return folder
    return None


def bare_root(start: Path) -> Path | None:
    """Return the bare repository that `start` is, or lies in; None if it is in none."""
    for folder in (start, *start.parents):
        if is_repository(folder):
            return None
        if all((folder / name).exists() for name in _BARE) and (folder / "objects").is_dir():
            return folder
    return None


def checked_repo(path: Path, place: Place, environ: Mapping[str, str]) -> Path:
    """Return `path` with links resolved, if a task may work there.

    Raises UsageError (`bad-repo`) for a missing folder, a file, `/`, the home folder or a path that
    is not UTF-8, and InfraError (`repo-owner`) if the folder or its `.git` belongs to another user.
    """
    real = Path(os.path.realpath(path))
    problem = _problem(real, environ)
    if problem:
        raise BadRepository(
            f"the repository {path} {problem}.",
            path=place.where,
            source_line=place.source_line,
            remedy="name the project's folder: --repo DIR",
        )
    for owned in (real, real / ".git"):
        owner = os.lstat(owned).st_uid if os.path.lexists(owned) else os.geteuid()
        if owner != os.geteuid():
            raise ForeignRepository(
                f"{owned} belongs to another user (uid {owner}, we are {os.geteuid()}).",
                path=str(owned),
                remedy="run as its owner, or work in a clone of your own",
                nothing_spent=True,
            )
    return real


def _problem(real: Path, environ: Mapping[str, str]) -> str:
    if "\0" in str(real) or not os.path.lexists(real):
        return "does not exist"
    if any("\udc80" <= character <= "\udcff" for character in str(real)):
        return "has a path that is not UTF-8"
    if not real.is_dir():
        return "is not a folder"
    if real == Path("/"):
        return "is the root of the file system"
    home = environ.get("HOME")
    if home and real == Path(os.path.realpath(home)):
        return "is your home folder"
    return ""


def refuse_bare(folder: Path) -> None:
    """Raise UsageError (`bare-repository`) for a repository without files to work on.

    Also for a folder within one.
    """
    place = bare_root(folder)
    if place is not None:
        raise BareRepository(
            f"{place} is a bare repository: it holds no files to work on.",
            path=str(folder),
            remedy=f"git clone {place} work, and then in work",
        )


def refuse_state(repo: Path, *, elsewhere: bool = False) -> None:
    """Raise an error if a run could not begin, or would begin in the middle of a merge.

    With `elsewhere` the work begins from a commit in another folder, so that an unfinished
    operation in the checkout does not matter. Raises UsageError (`bare-repository`), InfraError
    (`repository-read-only`, `merge-in-progress`).
    """
    refuse_bare(repo)
    if not os.access(repo, os.W_OK | os.X_OK):
        raise RepositoryReadOnly(
            f"{repo} cannot be written: the work could not be kept there.",
            path=str(repo),
            remedy="make it writable, or work in a clone of your own",
            nothing_spent=True,
        )
    if elsewhere:
        return
    git = _git_folder(repo)
    for name, (what, ends) in _IN_PROGRESS.items() if git is not None else ():
        if git is not None and os.path.lexists(git / name):
            raise MergeInProgress(
                f"{what} is in progress in {repo}: files may hold both sides of a conflict.",
                path=str(git / name),
                remedy=f"{ends}; or --worktree --clean, which begins with the last commit",
                nothing_spent=True,
            )


def _git_folder(repo: Path) -> Path | None:
    """Return the repository's own `.git` folder, also if `.git` is a file that names it."""
    place = repo / ".git"
    if place.is_dir():
        return place
    try:
        with place.open(encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(_MAX_LINK)
    except OSError:
        return None
    head, _, named = text.partition(":")
    return repo / named.strip() if head.strip() == "gitdir" and named.strip() else None
