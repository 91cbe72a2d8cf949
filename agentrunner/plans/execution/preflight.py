"""Checks whether a plan can start here: in a git repository with a commit, or a folder without git.

A plan uses one of the two at a time: what tasks did in the folder is part of the plan's branch only
where the branch starts at a commit of it. Everything here blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentrunner.config.repo import git_root
from agentrunner.errors import UsageError
from agentrunner.errors.plans import NotInPlace
from agentrunner.errors.repositories import NoCommit, NoRepository
from agentrunner.git.first_commit import make_first_commit, takes_first_commit
from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.git.user_repository import UserRepository
from agentrunner.plans.execution.branch import BRANCH, SHOWN
from agentrunner.plans.execution.task_runs import TaskRunStore
from agentrunner.plans.plan import Plan, PlanTaskStatus
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.text.cut import some_of

MAKE_ONE = "agentrunner plan run --git-init"


def ways_on(repo: Path) -> tuple[str, ...]:
    """Return what a person may choose without a usable git repository: `git_init`, `in_place`."""
    if (repo / ".git").exists():
        return ("git_init",) if takes_first_commit(repo) else ()
    return ("git_init", "in_place") if git_root(repo) is None else ()


def check_repository(
    repo: Path, environ: Mapping[str, str], *, in_place: bool, git_init: bool, delivered: bool
) -> None:
    """Check whether a plan can be executed here as requested.

    `delivered`: more is wanted of its branch than that it exists. Raises UsageError: `usage` for
    options that exclude each other, `in-place` for work in the folder of a git repository,
    `no-repository`, `no-commit`.
    """
    here = (repo / ".git").exists()
    if in_place and git_init:
        raise UsageError("--in-place works without git, and --git-init makes a git repository.")
    if in_place and delivered:
        raise UsageError("--in-place makes no branch, which --pr, --onto and --squash are about.")
    if in_place and here:
        raise NotInPlace(
            f"{repo} is a git repository, so tasks have work trees of their own, and what they do "
            "lands on a branch.",
            path="--in-place",
            remedy="agentrunner plan run, without --in-place",
        )
    if in_place or (git_init and ways_on(repo)):
        return
    if not here:
        raise _no_repository(repo)
    if UserRepository(repo, environ).unborn():
        begun = "git commit -m start, then agentrunner plan run"
        raise NoCommit(
            f"{repo} has no commit yet, so there is nothing for the plan to begin from.",
            remedy=f"{MAKE_ONE} commits what is there" if ways_on(repo) else begun,
        )


def _no_repository(repo: Path) -> UsageError:
    root = git_root(repo)
    if root is not None:
        return NoRepository(
            f"{repo} is a folder of the git repository {root}.",
            path="--repo",
            remedy="--in-place: one task after another, in the folder itself; or make the plan in "
            f"the repository, with --repo {root}",
        )
    return NoRepository(
        f"{repo} is no git repository, so tasks cannot have work trees of their own.",
        remedy=f"{MAKE_ONE} makes it one, with a commit of what is there; --in-place works in the "
        "folder itself, one task after another",
    )


def make_repository(
    clone: CloneStore, folder: PlanFolder, note_dir: str, *, author: Identity, at: str
) -> list[str]:
    """Make the folder a git repository with a commit, where it is not one; return notices."""
    made = make_first_commit(clone, folder.root / "look", note_dir, author=author, at=at)
    if made is None:
        return []
    begun = f"{made.branch} of the git repository begins at {made.commit[:10]}"
    notices = [f"{begun}, with {some_of(made.files, SHOWN) or 'no file'}."]
    if made.left:
        notices.append(f"Not in its first commit: {some_of(made.left, SHOWN)}.")
    return notices


def check_no_branch(clone: CloneStore) -> None:
    """Raise UsageError (`in-place`) where a branch of the plan exists: the work would be split.

    Where there is no clone yet, there is no branch.
    """
    if clone.git.git_dir.is_dir() and clone.branch_at(BRANCH) is not None:
        raise NotInPlace(
            f"The plan has begun on a branch, and {clone.repo} is no git repository any more.",
            path="--in-place",
            remedy=f"{MAKE_ONE} makes it one, and continues with the branch",
        )


def done_in_place(plan: Plan, task_runs: TaskRunStore) -> list[str]:
    """Return tasks that became COMPLETE in the folder itself, in order."""
    complete = PlanTaskStatus.COMPLETE
    tasks = (task for task in plan.task_order() if plan.tasks[task].status == complete)
    latest = {task: task_runs.latest(task) for task in tasks}
    return [
        task for task, task_run in latest.items() if task_run is not None and not task_run.commit
    ]
