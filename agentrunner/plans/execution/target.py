"""Where a plan is executed: on a branch of a git repository, or in a folder without git."""

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
    """Where a plan is executed in one process, and how its result is delivered."""

    @property
    def workspaces(self) -> Workspaces:
        """Return the workspaces of its tasks; available after `begin`."""

    @property
    def most(self) -> int:
        """Return how many tasks may be at work at once."""

    @property
    def unpublished(self) -> bool:
        """Whether merged work could not be published in the user's repository."""

    async def begin(self, plan: Plan, spec: TaskSpec) -> list[str]:
        """Prepare it, and return notices for a person. `spec` is any task of the plan.

        Raises UsageError where the plan cannot be executed here, or its result not delivered.
        """

    def publish(self) -> None:
        """Publish merged work in the user's repository; warn where that fails. Blocks."""

    async def deliver(self, plan: Plan, questions: list[str]) -> Delivered | None:
        """Deliver the complete result as requested.

        Returns None where nothing was requested.
        """

    def result(self) -> Delivered:
        """Return where the work is."""


class FolderTarget:
    """A folder without git: tasks work in it, one after another, and that is all."""

    most = 1
    unpublished = False

    def __init__(self, repo: Path, clone: CloneStore, task_runs: TaskRunStore) -> None:
        """`clone` is the private clone that the plan has or would have."""
        self._clone = clone
        self.workspaces: Workspaces = SingleFolder(repo, task_runs)

    async def begin(self, plan: Plan, spec: TaskSpec) -> list[str]:
        """Raise UsageError (`in-place`) where the plan has begun on a branch."""
        await asyncio.to_thread(check_no_branch, self._clone)
        return ["Not a git repository: tasks work in the folder itself, one after another."]

    def publish(self) -> None:
        """Do nothing: the work is there already."""

    async def deliver(self, plan: Plan, questions: list[str]) -> Delivered | None:
        """Return None: there is nothing to deliver."""
        return None

    def result(self) -> Delivered:
        """Return an empty result: there is no branch."""
        return Delivered()
