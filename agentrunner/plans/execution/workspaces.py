"""Workspaces of tasks: each a work tree of its own. Without git see `FolderTarget`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from agentrunner.config.spec import CriterionSpec, EarlierWork
from agentrunner.engine import attempts
from agentrunner.errors import AgentRunnerError
from agentrunner.errors.plans import WorkChanged
from agentrunner.errors.runs import NothingToShow
from agentrunner.execution.deps import Clock
from agentrunner.git.private_clone import HEAD, CloneStore, Identity
from agentrunner.git.snapshots import Snapshots
from agentrunner.nodes.validate import worker_changes
from agentrunner.plans.execution.branch import BRANCH
from agentrunner.plans.execution.merging.merge_queue import (
    MergeConflict,
    Merged,
    TaskWork,
    TestsRed,
    TreeTests,
    merge_work,
)
from agentrunner.plans.execution.merging.proofs import RunFindings, of_its_own, proofs_of
from agentrunner.plans.execution.task_runs import TaskRun, TaskRunStore
from agentrunner.results import Result
from agentrunner.state.run_state import TestOutcome
from agentrunner.storage.run_folder import RunFolder, kept_sandbox, load_spec, make_private
from agentrunner.storage.run_log import RunLog
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.measure import kept_results
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import changing, gone
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.trees import Trees


@dataclass(frozen=True)
class RunWork(RunFindings):
    """The part of a work tree that is to be committed, and the time of the commit."""

    paths: tuple[str, ...]
    ended_at: str
    """UTC, ISO 8601: the same at every call."""


_MARK = lazy_regex(rb"(?m)^(?:<{7}|>{7}) ")

MergeOutcome = Merged | MergeConflict | TestsRed


class Workspaces(Protocol):
    """Gives runs their workspaces, and merges what was made in them."""

    landing: str
    """What merging does, for people; "" for nothing."""

    def folder(self, task_run: TaskRun) -> Path:
        """Return where a run works."""

    async def open(
        self, task_run: TaskRun, refused: MergeConflict | TestsRed | None = None
    ) -> TaskRun:
        """Give a run its workspace, and save both.

        `refused` is the merge that failed for the task's earlier work; the workspace starts from
        it.
        """

    async def is_behind(self, task_run: TaskRun) -> bool:
        """Whether a workspace that is opened now would begin from something newer."""

    async def earlier_work(self, task_run: TaskRun) -> EarlierWork | None:
        """Return what workers wrote since the plan began, of what the run begins with."""

    async def merge(
        self, task_run: TaskRun, title: str, result: Result, wanted: Callable[[], bool]
    ) -> MergeOutcome:
        """Merge the work of a COMPLETE run with the rest.

        Raises NoLongerPlanned where `wanted` returns False; that may block and is called in a
        thread.
        """

    async def close(self, task_run: TaskRun) -> None:
        """Remove its workspace."""


class WorkTrees:
    """Work trees of a private clone: one for each run, from the head of the plan's branch."""

    landing = "is brought together with the rest"

    def __init__(
        self,
        clone: CloneStore,
        task_runs: TaskRunStore,
        state_dir: Path,
        author: Identity,
        clock: Clock,
        tests: TreeTests,
        template: str,
    ) -> None:
        self._clone, self._task_runs, self._state_dir = clone, task_runs, state_dir
        self._author, self._clock, self._tests = author, clock, tests
        self._template = template
        self._worktree_lock = asyncio.Lock()
        """Held while a work tree of the clone is made or removed."""
        self._merge_lock = asyncio.Lock()
        """Held during a merge: a merge that is examined while the head moves is useless."""

    def folder(self, task_run: TaskRun) -> Path:
        return self._task_runs.workspace(task_run)

    async def open(
        self, task_run: TaskRun, refused: MergeConflict | TestsRed | None = None
    ) -> TaskRun:
        async with self._worktree_lock:
            return await asyncio.to_thread(self._open, task_run, refused)

    def _open(self, task_run: TaskRun, refused: MergeConflict | TestsRed | None) -> TaskRun:
        parents: tuple[str, ...]
        marked: tuple[str, ...]
        if refused is None:
            commit = self._clone.resolve(f"refs/heads/{BRANCH}")
            parents, marked = (commit,), ()
        else:
            parents = (refused.head,)
            marked = self._marked(refused)
            message = f"{task_run.task_id}, to be brought together\n"
            commit = self._clone.commit_tree(
                refused.tree,
                parents=parents,
                message=message,
                author=self._author,
                at=self._clock.stamp(),
            )
        task_run = replace(task_run, commit=commit, parents=parents, marked=marked)
        folder = self.folder(task_run)
        make_private(folder.parent)
        if folder.exists():  # of a process that was killed before it saved the run
            self._clone.remove(folder)
        self._clone.check_out(folder, commit)
        self._task_runs.save(task_run)
        return task_run

    def _marked(self, refused: MergeConflict | TestsRed) -> tuple[str, ...]:
        """Return the files of a merge that have conflict marks which they did not have before."""
        return tuple(
            path
            for path in self._clone.changed(refused.head, refused.tree)
            if _MARK.search(self._clone.read(refused.tree, path))
            and not _MARK.search(self._clone.read(refused.head, path))
        )

    async def is_behind(self, task_run: TaskRun) -> bool:
        """Compare with the plan's head; what begins from a refused merge is never behind."""
        head = await asyncio.to_thread(self._clone.branch_at, BRANCH)
        return task_run.parents == (task_run.commit,) != (head,)

    async def earlier_work(self, task_run: TaskRun) -> EarlierWork | None:
        """Compare with the user's commit that the plan's branch began from."""

        def compare() -> EarlierWork | None:
            base = self._clone.base(self._clone.resolve(HEAD), task_run.parents[0])
            return earlier_work(self._clone, base, task_run.commit)

        return await asyncio.to_thread(compare) if task_run.parents else None

    async def merge(
        self, task_run: TaskRun, title: str, result: Result, wanted: Callable[[], bool]
    ) -> MergeOutcome:
        async with self._merge_lock:
            return await self._land(task_run, title, result, wanted)

    async def _land(
        self, task_run: TaskRun, title: str, result: Result, wanted: Callable[[], bool]
    ) -> MergeOutcome:
        made = await run_work(self._state_dir, task_run.run_id)
        earlier = [
            await tests_taken(self._state_dir, one.run_id)
            for one in self._task_runs.of(task_run.task_id)
            if one.run_id not in ("", task_run.run_id)
        ]
        work = TaskWork(
            task_run.task_id,
            title,
            self.folder(task_run),
            task_run.commit,
            task_run.parents,
            result,
            made.paths,
            task_run.allowed,
            **{
                **made.found,
                "proofs": of_its_own(
                    made.proofs, map(CriterionSpec.model_validate, task_run.broken)
                ),
                "taken": made.taken.union(*earlier),
            },
        )
        landed = await merge_work(
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
        return replace(landed, files=await asyncio.to_thread(self._files, task_run, made, landed))

    def _files(self, task_run: TaskRun, made: RunWork, landed: Merged) -> tuple[str, ...]:
        """Return what all runs of the task changed: the merge's first parent has none of that."""
        before = task_run.parents[0]
        touched = {*made.paths, *self._clone.changed(before, task_run.commit)}
        return tuple(sorted(touched.intersection(self._clone.changed(before, landed.commit))))

    async def close(self, task_run: TaskRun) -> None:
        """Remove the work tree; the run's folder keeps what it was."""
        async with self._worktree_lock:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self._clone.remove, self.folder(task_run))


def earlier_work(clone: CloneStore, base: str, commit: str) -> EarlierWork | None:
    """Return the files that came since `base`, and the tests that came or changed in others.

    None where nothing did, and where there is no `base`: the user's history may have begun anew.
    """
    if not base:
        return None
    files, tests = [], {}
    there = clone.modes(base)
    for path in clone.changed(base, commit):
        if path not in there:
            files.append(path)
        elif language := language_of(path):
            before = definitions(clone.read(base, path), language)
            after = definitions(clone.read(commit, path), language)
            if names := [name for name, text in after.items() if before.get(name) != text]:
                tests[path] = names
        else:
            files.append(path)
    return EarlierWork(files=files, tests=tests) if files or tests else None


async def run_work(state_dir: Path, run_id: str) -> RunWork:
    """Return what the run's workers changed, as it was when the run was found COMPLETE.

    Raises UsageError (`unknown-run`, `nothing-to-show`), and InfraError (`work-changed`) where the
    files are no longer what was judged.
    """
    folder = RunFolder.open(state_dir, run_id)
    state = await attempts.latest(folder)
    evidence, baseline = state.get("evidence"), state.get("baseline")
    if evidence is None or baseline is None:
        raise NothingToShow(f"{run_id} has made nothing yet.")
    work = await asyncio.to_thread(_read, folder, baseline.tree, evidence.tree)
    task_id = load_spec(folder).task.id
    proofs = proofs_of(task_id, state["criteria"], evidence.checks)
    before, after = await asyncio.to_thread(_results, folder, baseline.test, evidence.test)
    taken = taken_by(before, after)
    return replace(work, proofs=proofs, sandbox=kept_sandbox(folder), taken=taken, passed=after)


async def tests_taken(state_dir: Path, run_id: str) -> frozenset[str]:
    """Return `RunWork.taken` of an earlier run of a task; empty where nothing is known of it."""
    with contextlib.suppress(AgentRunnerError, OSError):
        folder = RunFolder.open(state_dir, run_id)
        state = await attempts.latest(folder)
        evidence, baseline = state.get("evidence"), state.get("baseline")
        verdict = state.get("verdict")
        if evidence and baseline and verdict and verdict.state == "COMPLETE":
            tests = await asyncio.to_thread(_results, folder, baseline.test, evidence.test)
            return taken_by(*tests)
    return frozenset()


def _results(
    folder: RunFolder, before: TestOutcome | None, after: TestOutcome | None
) -> tuple[Results | None, Results | None]:
    """The results by name of both; None where they have none, or it can't be read any more."""
    with contextlib.suppress(AgentRunnerError, OSError):
        refs = (before.results if before else None, after.results if after else None)
        return kept_results(folder, refs[0]), kept_results(folder, refs[1])
    return None, None


def taken_by(before: Results | None, after: Results | None) -> frozenset[str]:
    """Names that passed before a run and are missing or skipped after it. Pure."""
    if before is None or after is None:
        return frozenset()
    return frozenset(gone(before, after, changing(before)))


def _read(folder: RunFolder, before: str, judged: str) -> RunWork:
    spec, log = load_spec(folder), RunLog(folder.log_file)
    snapshots = Snapshots.of(folder.snapshots_dir, spec)
    trees = Trees(snapshots, spec.task)
    paths = trees.by_workers(worker_changes(log), trees.between(before, judged)).all
    later = {change.path for change in snapshots.changes(judged, trees.now())}
    if changed := sorted(later.intersection(paths)):
        raise WorkChanged(
            f"{', '.join(changed[:5])} was changed since {folder.run_id} was found complete.",
            path=spec.repo,
            remedy=f"agentrunner diff {folder.run_id} shows what was judged; put the files back",
        )
    moves = [record.at for record in log.records("state")]
    return RunWork(tuple(paths), moves[-1])
