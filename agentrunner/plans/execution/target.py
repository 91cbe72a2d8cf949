"""Where a plan is executed: on a branch of a git repository, or in a folder without git."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from agentrunner.config.spec import EarlierWork, TaskSpec
from agentrunner.git.private_clone import CloneStore
from agentrunner.plans.execution.delivery import Delivered
from agentrunner.plans.execution.merging.merge_queue import MergeConflict, Merged, TestsRed
from agentrunner.plans.execution.preflight import check_no_branch
from agentrunner.plans.execution.task_runs import TaskRun, TaskRunStore
from agentrunner.plans.execution.workspaces import MergeOutcome, Workspaces
from agentrunner.plans.plan import Plan
from agentrunner.results import Result


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
    """A folder without git, and the workspace of all tasks, one after another; that is all."""

    most = 1
    unpublished = False
    landing = ""

    def __init__(self, repo: Path, clone: CloneStore, task_runs: TaskRunStore) -> None:
        """`clone` is the private clone that the plan has or would have."""
        self._repo, self._clone, self._task_runs = repo, clone, task_runs

    @property
    def workspaces(self) -> Workspaces:
        return self

    async def begin(self, plan: Plan, spec: TaskSpec) -> list[str]:
        """Raise UsageError (`in-place`) where the plan has begun on a branch."""
        await asyncio.to_thread(check_no_branch, self._clone)
        return ["Not a git repository: tasks work in the folder itself, one after another."]

    def publish(self) -> None:
        """Do nothing: the work is there already."""

    async def deliver(self, plan: Plan, questions: list[str]) -> Delivered | None:
        return None

    def result(self) -> Delivered:
        return Delivered()

    def folder(self, task_run: TaskRun) -> Path:
        return self._repo

    async def open(
        self, task_run: TaskRun, refused: MergeConflict | TestsRed | None = None
    ) -> TaskRun:
        """Only save the run: there is nothing to make."""
        self._task_runs.save(task_run)
        return task_run

    async def is_behind(self, task_run: TaskRun) -> bool:
        return False

    async def earlier_work(self, task_run: TaskRun) -> EarlierWork | None:
        """Nothing is known of that without a repository."""
        return None

    async def merge(
        self, task_run: TaskRun, title: str, result: Result, wanted: Callable[[], bool]
    ) -> MergeOutcome:
        """Do nothing: the work is there already."""
        return Merged("", tuple(result.changed_files))

    async def close(self, task_run: TaskRun) -> None:
        """Do nothing: the files stay."""
