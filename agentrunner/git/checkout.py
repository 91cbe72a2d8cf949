"""A commit in the user's own checkout: made in a private clone, then the branch advances to it.

In the user's git, only the branch and the index entries of the committed files are written, without
hooks and filters. Everything here blocks and may raise GitFailed and OSError.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from agentrunner.errors.repositories import DetachedHead, GitFailed, HeadMoved, StagedChanges
from agentrunner.git.export import index_lines, list_tree
from agentrunner.git.ignore import MOST_INDEX
from agentrunner.git.private_clone import BRANCHES, CloneStore
from agentrunner.git.process import Git, read_small, replace, users_git

_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")


class CheckoutState(Struct, frozen=True):
    """The branch and commit of the user's checkout."""

    branch: str
    commit: str


class Checkout:
    """The user's checkout of a repository, seen from a private clone of it."""

    def __init__(self, clone: CloneStore) -> None:
        self.clone = clone

    def standing(self) -> CheckoutState:
        """Return the checked-out branch and its commit, which the clone has from now on.

        Raises UsageError: `no-repository`, `no-commit`, `detached-head`, and `staged-changes` if
        the user has begun the next commit.
        """
        commit = self.clone.fetch()
        branch = self._branch()
        if branch is None:
            raise DetachedHead(
                f"{self.clone.repo} has no branch checked out, so there is none to commit on.",
                path="--commit",
                remedy="git switch BRANCH, or --worktree",
            )
        if self._staged(commit):
            raise StagedChanges(
                f"{self.clone.repo} has staged changes, and a commit would stand between them"
                " and what they were made from.",
                path="--commit",
                remedy="git commit, or git restore --staged ., or --worktree",
            )
        return CheckoutState(branch, commit)

    def step(self, made: str, before: CheckoutState, paths: Collection[str]) -> None:
        """Advance the branch from its commit `before` to `made`, and the index with it.

        Repeating it changes nothing. Raises UsageError (`head-moved`) if the checkout is elsewhere.
        """
        user = self._user()
        name = f"{BRANCHES}{before.branch}"
        there = user.run("rev-parse", "--verify", "--quiet", name, accept=(0, 1)).decode().strip()
        if self._branch() != before.branch or there not in (made, before.commit):
            raise HeadMoved(
                f"{self.clone.repo} is not where it was when the run began; nothing was committed.",
                path="--commit",
                remedy=f"git switch {before.branch}, then agentrunner resume; or commit by hand",
            )
        if there != made:
            if self._staged(before.commit):
                raise StagedChanges(
                    f"{self.clone.repo} has staged changes by now; nothing was committed.",
                    path="--commit",
                    remedy="git restore --staged ., then agentrunner resume; or commit by hand",
                )
            self.clone.give(made)
            message = ("-m", "agentrunner: a run is complete")
            user.run(*_QUIET, "update-ref", *message, name, made, before.commit, umask=-1)
        self._refresh(user, made, paths)

    def _refresh(self, user: Git, made: str, paths: Collection[str]) -> None:
        """Set the index entries of these files to those of the commit; all others stay."""
        entries = list_tree(self.clone.git, made)
        lines = index_lines({path: entries.get(path) for path in sorted(paths)}, len(made))
        user.run(*_QUIET, "update-index", "-z", "--index-info", stdin=lines)

    def _user(self) -> Git:
        return users_git(self.clone.user_git_dir(), self.clone.git.binary)

    def _branch(self) -> str | None:
        name = self._user().run("symbolic-ref", "--quiet", "HEAD", accept=(0, 1)).decode().strip()
        return name.removeprefix(BRANCHES) if name.startswith(BRANCHES) else None

    def _staged(self, commit: str) -> bool:
        """Whether the index differs from the commit; it is read as a copy.

        True for an index that cannot be read, such as a split one.
        """
        index = read_small(bytes(self.clone.user_git_dir() / "index"), MOST_INDEX)
        copy = self.clone.git.git_dir / "user.index"
        if index is None:
            return True
        replace(copy, index)
        try:
            out = self.clone.git.run(
                *("diff-index", "--cached", "--name-only", "-z", "--ignore-submodules", commit),
                env={"GIT_INDEX_FILE": str(copy)},
            )
        except GitFailed:
            return True
        finally:
            copy.unlink(missing_ok=True)
        return bool(out)
