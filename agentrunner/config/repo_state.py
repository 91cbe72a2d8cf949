"""Detect states of a repository in which no work can begin, without starting git."""

from __future__ import annotations

import os
from pathlib import Path

from agentrunner.config.repo import bare_root
from agentrunner.errors.repositories import BareRepository, MergeInProgress, RepositoryReadOnly

_IN_PROGRESS = {
    "MERGE_HEAD": ("A merge", "git merge --continue, or git merge --abort"),
    "rebase-merge": ("A rebase", "git rebase --continue, or git rebase --abort"),
    "rebase-apply": ("A rebase", "git rebase --continue, or git rebase --abort"),
    "CHERRY_PICK_HEAD": ("A cherry-pick", "git cherry-pick --continue, or --abort"),
    "REVERT_HEAD": ("A revert", "git revert --continue, or --abort"),
}
"""Files that git keeps during an unfinished operation, the operation's name, and how to end it."""
_MAX_LINK = 4096


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
