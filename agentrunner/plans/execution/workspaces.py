"""Where tasks work: each in a work tree of its own, or, without git, in the repository itself."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from agentrunner.config.spec import CriterionSpec
from agentrunner.execution.deps import Clock
from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.plans.execution.branch import BRANCH
from agentrunner.plans.execution.commit_message import DEFAULT_TEMPLATE
from agentrunner.plans.execution.merging.merge_queue import (
    MergeConflict,
    Merged,
    TaskWork,
    TestsRed,
    TreeTests,
    land,
)
from agentrunner.plans.execution.merging.proofs import of_its_own
from agentrunner.plans.execution.merging.run_work import RunWork, run_work
from agentrunner.plans.execution.rounds import RoundBook, TaskRun
from agentrunner.results import Result
from agentrunner.storage.run_folder import make_private

_MARK = re.compile(rb"(?m)^(?:<{7}|>{7}) ")

Landing = Merged | MergeConflict | TestsRed


class Workspaces(Protocol):
    """Gives rounds their work trees, and brings together what was made in them."""

    landing: str
    """What landing does, for people; "" for nothing."""

    def folder(self, round_: TaskRun) -> Path:
        """Where a round works."""

    async def open(
        self, round_: TaskRun, refused: MergeConflict | TestsRed | None = None
    ) -> TaskRun:
        """Give a round its work tree; it is kept with what is known of it then.

        `refused` is what its task's work could not be brought together with, and stands in it.
        """

    async def land(
        self, round_: TaskRun, title: str, result: Result, wanted: Callable[[], bool]
    ) -> Landing:
        """Bring what a COMPLETE run has made together with the rest.

        Raises NotWanted where that is `wanted` no more; blocking, it is asked in a thread.
        """

    async def close(self, round_: TaskRun) -> None:
        """Take its work tree away."""


class WorkTrees:
    """In a private clone: a work tree for each round, from the head of the plan's branch."""

    landing = "is brought together with the rest"

    def __init__(
        self,
        clone: CloneStore,
        book: RoundBook,
        state_dir: Path,
        author: Identity,
        clock: Clock,
        tests: TreeTests | None = None,
        template: str = DEFAULT_TEMPLATE,
    ) -> None:
        self._clone, self._book, self._state_dir = clone, book, state_dir
        self._author, self._clock, self._tests = author, clock, tests
        self._template = template
        self._one = asyncio.Lock()
        """Work trees of the clone are made and removed one after another."""
        self._landing = asyncio.Lock()
        """Work lands one after another: what is examined on a head that moves was for nothing."""

    def folder(self, round_: TaskRun) -> Path:
        """Below the plan's folder."""
        return self._book.workspace(round_)

    async def open(
        self, round_: TaskRun, refused: MergeConflict | TestsRed | None = None
    ) -> TaskRun:
        """From the plan's head, or from the merge that was refused."""
        async with self._one:
            return await asyncio.to_thread(self._open, round_, refused)

    def _open(self, round_: TaskRun, refused: MergeConflict | TestsRed | None) -> TaskRun:
        parents: tuple[str, ...]
        marked: tuple[str, ...]
        if refused is None:
            commit = self._clone.resolve(f"refs/heads/{BRANCH}")
            parents, marked = (commit,), ()
        else:
            parents = (refused.head,)
            marked = self._marked(refused)
            message = f"{round_.task_id}, to be brought together\n"
            commit = self._clone.commit_tree(
                refused.tree,
                parents=parents,
                message=message,
                author=self._author,
                at=self._clock.stamp(),
            )
        round_ = replace(round_, commit=commit, parents=parents, marked=marked)
        folder = self.folder(round_)
        make_private(folder.parent)
        if folder.exists():  # of a process that was killed before the round was kept
            self._clone.remove(folder)
        self._clone.check_out(folder, commit)
        self._book.save(round_)
        return round_

    def _marked(self, refused: MergeConflict | TestsRed) -> tuple[str, ...]:
        """Files of a merge that have marks which they did not have before."""
        return tuple(
            path
            for path in self._clone.changed(refused.head, refused.tree)
            if _MARK.search(self._clone.read(refused.tree, path))
            and not _MARK.search(self._clone.read(refused.head, path))
        )

    async def land(
        self, round_: TaskRun, title: str, result: Result, wanted: Callable[[], bool]
    ) -> Landing:
        """As a commit on the plan's branch."""
        async with self._landing:
            return await self._land(round_, title, result, wanted)

    async def _land(
        self, round_: TaskRun, title: str, result: Result, wanted: Callable[[], bool]
    ) -> Landing:
        made = await run_work(self._state_dir, round_.run_id)
        work = TaskWork(
            round_.task_id,
            title,
            self.folder(round_),
            round_.commit,
            round_.parents,
            result,
            made.paths,
            of_its_own(made.proofs, map(CriterionSpec.model_validate, round_.broken)),
            made.sandbox,
            round_.allowed,
        )
        landed = await land(
            self._clone,
            BRANCH,
            work,
            author=self._author,
            at=made.ended_at,
            template=self._template,
            tests=self._tests,
            wanted=wanted,
        )
        if not isinstance(landed, Merged):
            return landed
        return replace(landed, files=await asyncio.to_thread(self._files, round_, made, landed))

    def _files(self, round_: TaskRun, made: RunWork, landed: Merged) -> tuple[str, ...]:
        """Of all its rounds: the first of a merge's parents has nothing of the task."""
        before = round_.parents[0]
        touched = {*made.paths, *self._clone.changed(before, round_.commit)}
        return tuple(sorted(touched.intersection(self._clone.changed(before, landed.commit))))

    async def close(self, round_: TaskRun) -> None:
        """The run's folder keeps what it was."""
        async with self._one:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self._clone.remove, self.folder(round_))


class SingleFolder:
    """In the repository itself, which is no git repository: one task after another."""

    landing = ""

    def __init__(self, repo: Path, book: RoundBook) -> None:
        self._repo, self._book = repo, book

    def folder(self, round_: TaskRun) -> Path:
        """Always the same."""
        return self._repo

    async def open(
        self, round_: TaskRun, refused: MergeConflict | TestsRed | None = None
    ) -> TaskRun:
        """Nothing is made."""
        self._book.save(round_)
        return round_

    async def land(
        self, round_: TaskRun, title: str, result: Result, wanted: Callable[[], bool]
    ) -> Landing:
        """It is there already."""
        return Merged("", tuple(result.changed_files))

    async def close(self, round_: TaskRun) -> None:
        """The files stay."""
