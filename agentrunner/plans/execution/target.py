"""Where a plan is carried out: on a branch of a git repository, or in a folder without git."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from agentrunner.config.spec import TaskSpec
from agentrunner.git.private_clone import CloneStore
from agentrunner.plans.execution.delivery import Delivered
from agentrunner.plans.execution.preflight import check_no_branch
from agentrunner.plans.execution.task_runs import TaskRunStore
from agentrunner.plans.execution.workspaces import SingleFolder, Workspaces
from agentrunner.plans.plan import Plan


class PlanTarget(Protocol):
    """What a plan stands on while one process carries it out, and what becomes of the work."""

    @property
    def places(self) -> Workspaces:
        """Where its tasks work; there once it has begun."""

    @property
    def most(self) -> int:
        """Tasks at work at once, at most."""

    @property
    def kept_back(self) -> bool:
        """Whether something has landed that the user's repository could not be given."""

    async def begin(self, plan: Plan, spec: TaskSpec) -> list[str]:
        """Make it ready; what a person should know. `spec` is any task of the plan.

        Raises UsageError where the plan cannot be carried out here, or its result not handed over.
        """

    def publish(self) -> None:
        """Bring what has landed to the user; said where that cannot be. Blocking."""

    async def deliver(self, plan: Plan, questions: list[str]) -> Delivered | None:
        """Hand the result over as it was wished for, now that all of it is there.

        None where nothing was wished for.
        """

    def result(self) -> Delivered:
        """Where the work is."""


class FolderTarget:
    """A folder without git: tasks work in it, one after another, and that is all."""

    most = 1
    kept_back = False

    def __init__(self, repo: Path, clone: CloneStore, book: TaskRunStore) -> None:
        """`clone` is the one that the plan would have."""
        self._clone = clone
        self.places: Workspaces = SingleFolder(repo, book)

    async def begin(self, plan: Plan, spec: TaskSpec) -> list[str]:
        """Raises UsageError (`in-place`) where the plan has begun on a branch."""
        await asyncio.to_thread(check_no_branch, self._clone)
        return ["Not a git repository: tasks work in the folder itself, one after another."]

    def publish(self) -> None:
        """It is there already."""

    async def deliver(self, plan: Plan, questions: list[str]) -> Delivered | None:
        """Nothing more can be wished for."""
        return None

    def result(self) -> Delivered:
        """There is no branch."""
        return Delivered()
