"""The plan's branch: where it starts from, and how it gets into the user's repository.

In the private clone it always has the same name; the name under which it is published is saved with
the plan. Everything here blocks and may raise GitFailed and OSError.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from agentrunner.config.naming import slug
from agentrunner.errors.repositories import BranchCheckedOut, BranchExists, UncommittedWork
from agentrunner.git.private_clone import HEAD, CloneStore, Identity
from agentrunner.git.user_repository import UserRepository
from agentrunner.git.worktree import WorktreePlace, prepare
from agentrunner.plans.execution.published import (
    Published,
    branch_file,
    published,
    read_published,
)
from agentrunner.storage.failpoints import reach
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.storage.run_folder import write_private
from agentrunner.text.cut import some_of

BRANCH = "plan"
"""Its name in the clone."""
PREFIX = "agentrunner/"
MOST_NAMES = 99
SHOWN = 8


def begin(
    clone: CloneStore,
    folder: PlanFolder,
    *,
    include_uncommitted: bool,
    note_dir: str,
    author: Identity,
    at: str,
    done: Sequence[str] = (),
) -> list[str]:
    """Make the plan's branch at the repository's HEAD, or continue the existing one.

    A branch that has become part of HEAD continues from HEAD. `done` are tasks that became COMPLETE
    in the folder itself, before it was a repository. Returns notices for a person. Raises
    UsageError (`no-repository`, `no-commit`, and `uncommitted-work` where the branch would lack
    what was done).
    """
    head = clone.fetch()
    there = clone.branch_at(BRANCH)
    if there is not None:
        if head != there and _is_part_of(clone, folder, head, there):
            clone.branch(BRANCH, head, before=there)
        return []
    look = WorktreePlace(folder.root / "look")
    look.remove()
    try:
        unused_branch = f"{PREFIX}look-{folder.root.name}"
        found = prepare(look, clone.repo, note_dir, branch=unused_branch, clean=False)
    finally:
        look.remove()
    notices, carried = [], some_of(found.carried, SHOWN)
    if found.left:
        notices.append(f"Not taken along: the submodules {some_of(found.left, SHOWN)}.")
    if found.carried and include_uncommitted:
        head = clone.commit(
            clone.repo,
            found.carried,
            parents=(head,),
            message="What was not committed when the plan began\n",
            author=author,
            at=at,
        )
        notices.append(f"Taken along, though not committed: {carried}.")
    elif found.carried and done:
        raise UncommittedWork(
            f"{some_of(done, SHOWN)} became COMPLETE in {clone.repo} itself, and not all of what "
            f"is there is committed ({carried}): the plan's branch would be without it.",
            remedy="git add -A && git commit -m 'first tasks', then agentrunner plan run; or "
            "agentrunner plan run --include-uncommitted",
        )
    elif found.carried:
        notices.append(
            f"Not committed, so not taken along: {carried}. "
            "--include-uncommitted takes it along where a plan begins."
        )
    clone.branch(BRANCH, head)
    return notices


def _is_part_of(clone: CloneStore, folder: PlanFolder, head: str, there: str) -> bool:
    """Whether the repository's HEAD has all of the plan's branch, perhaps squashed."""
    if clone.contains(head, there):
        return True
    known = published(folder)
    if known is None:
        return False
    found = clone.git.run(
        "merge-base", known.commit, head, accept=(0, 1, 128)
    )  # 128: the commit is not in this repository
    if found.decode().strip() != known.commit:
        return False
    return clone.tree_of(known.commit) == clone.tree_of(there)


class Publisher:
    """Publishes the plan's branch in the user's repository, where it is never checked out."""

    def __init__(self, clone: CloneStore, folder: PlanFolder, goal: str) -> None:
        self._clone = clone
        self._file = branch_file(folder)
        self._goal = goal

    @property
    def published(self) -> Published:
        """Return what was published so far."""
        return read_published(self._file) or Published(PREFIX + (slug(self._goal) or "plan"), "")

    def has(self, commit: str) -> bool:
        """Whether the branch was moved to a commit, and not deleted since without a merge."""
        known = self.published
        if known.commit != commit:
            return False
        there = UserRepository(self._clone.repo, {}).branch_at(known.name)
        return there is not None or self._clone.contains(self._clone.resolve(HEAD), commit)

    def publish(self, commit: str) -> str:
        """Move the branch to a commit of the clone; return its name.

        The first time it takes a name that is free. Raises UsageError: `branch-exists` where
        somebody has moved it since, `branch-checked-out` where it is checked out.
        """
        known = self.published
        if known.commit:
            check_not_checked_out(UserRepository(self._clone.repo, {}), known.name)
            return self._move(known, commit)
        for number in range(1, MOST_NAMES):
            name = known.name if number == 1 else f"{known.name}-{number}"
            try:
                return self._move(replace(known, name=name), commit)
            except BranchExists:
                if number == MOST_NAMES - 1:
                    raise
        raise AssertionError("the last name was returned or raised")

    def _move(self, known: Published, commit: str) -> str:
        expected = (known.commit, *known.coming)
        try:
            there = self._clone.check_branch(known.name, commit, *expected)
        except BranchExists as error:
            if known.commit:
                raise BranchExists(
                    f"{known.name} was moved since the plan put it there, and is left as it is.",
                    remedy=f"git branch -m {known.name} NAME, then agentrunner plan run",
                ) from error
            raise
        self._save(replace(known, coming=(*(p for p in known.coming if p != commit), commit)))
        reach("publish_before")
        self._clone.publish(commit, known.name, replaces=there or None)
        reach("publish_after")
        self._save(Published(known.name, commit))
        return known.name

    def _save(self, known: Published) -> None:
        write_private(self._file, json.dumps(asdict(known)).encode())


def check_not_checked_out(
    user: UserRepository, branch: str, path: str = "", remedy: str = ""
) -> None:
    """Raise UsageError (`branch-checked-out`): moving it would leave its folder behind."""
    place = user.checked_out().get(branch)
    if place is not None:
        raise BranchCheckedOut(
            f"{branch} is checked out in {place}, and AgentRunner changes no checkout.",
            path=path,
            remedy=remedy or "git switch - in that folder, then agentrunner plan run",
        )
