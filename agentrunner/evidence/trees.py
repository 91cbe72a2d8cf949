"""What the trees of a run tell: who changed what, and what the checks themselves wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentrunner.evidence.checks import ReadFile
from agentrunner.evidence.config import PARTS, steers_alike
from agentrunner.evidence.guard import Changes, changes_between
from agentrunner.evidence.scripts import SOURCE, scripts_run
from agentrunner.evidence.steering import is_executable_config, matches
from agentrunner.runs.snapshots import Snapshots
from agentrunner.task.context import Baseline, Finding
from agentrunner.task.spec import TaskSection

MOST_WRITES = 200
"""Paths of a baseline's own writes that are kept one by one; more are kept by their folders."""


@dataclass(frozen=True)
class WorkerChange:
    """The trees before and after something that ran workers' code: what in between is theirs."""

    before: str
    after: str
    by_checks: bool = False
    """A round of checks; else a worker run."""


@dataclass
class Trees:
    """Compares snapshots. Everything here blocks: call it with `asyncio.to_thread`."""

    snapshots: Snapshots
    task: TaskSection
    _summed_up: tuple[list[WorkerChange], Changes] = field(
        default_factory=lambda: ([], Changes()), init=False
    )
    """What the worker runs so far came to, so that each is compared once and not every round."""
    _scripts: dict[str, frozenset[str]] = field(default_factory=dict, init=False)
    """By tree before the run: the scripts that the test command runs."""

    def now(self) -> str:
        """The present tree."""
        return self.snapshots.take().tree

    def reader(self, tree: str) -> ReadFile:
        """Reads files of one tree."""
        return self.snapshots.reader(tree)

    def between(self, before: str, after: str) -> Changes:
        """What differs, whoever did it."""
        return changes_between(self.snapshots, before, after)

    def by_workers(self, worker_changes: Sequence[WorkerChange], total: Changes) -> Changes:
        """What the run's workers did together, a person's edits in between left out.

        `total` is what differs between baseline and present tree: a worker's change that was
        put back is none.
        """
        done, changes = self._summed_up
        if worker_changes[: len(done)] != done:
            done, changes = [], Changes()
        for change in worker_changes[len(done) :]:
            changes = changes.then(self.between(change.before, change.after))
        self._summed_up = list(worker_changes), changes
        return changes.only(total.all)

    def judged(self, changes: Changes, baseline: Baseline, tree: str) -> Changes:
        """The same changes, told what the test command runs and which configuration is harmless."""
        known = [path for path in changes.modified if path.rpartition("/")[2] in PARTS]
        harmless = set()
        if known:
            before, now = self.reader(baseline.tree), self.reader(tree)
            for path in known:
                if steers_alike(path, before(path) or b"", now(path) or b""):
                    harmless.add(path)
        return changes.knowing(self._scripts_run(baseline.tree), frozenset(harmless))

    def _scripts_run(self, tree: str) -> frozenset[str]:
        test = self.task.test
        if test is not None and tree not in self._scripts:
            self._scripts[tree] = scripts_run(test.command, test.cwd, self.reader(tree))
        return self._scripts.get(tree, frozenset())

    def protected(self, changes: Changes) -> list[Finding]:
        """A finding where paths were changed that the task or threat T2 protects."""
        protected = [path for path in changes.all if matches(path, self.task.protect)]
        executable = [
            path
            for path in changes.all
            if is_executable_config(path)
            and not matches(path, self.task.allow_changes)
            and path not in protected
        ]
        paths = [*protected, *executable]
        if not paths:
            return []
        message = f"Protected paths were changed: {', '.join(paths[:5])}"
        return [Finding(code="protected_path", message=message, paths=paths[:50])]

    def written_by_checks(
        self,
        tree: str,
        after: str,
        baseline: Baseline,
        worker_changes: Sequence[WorkerChange],
    ) -> list[Finding]:
        """The tree must be the same before and after the checks, but for what tests write."""
        if after == tree:
            return []
        moved = self.judged(self.between(tree, after), baseline, after)
        artifacts = self._artifacts(worker_changes)
        grave = [
            path
            for path in moved.touched_or_steering
            if path not in artifacts and not _written_before(path, baseline.test_writes)
        ]
        if grave:
            message = f"Files changed while the checks ran: {', '.join(grave[:5])}"
            return [Finding(code="tree_changed_by_checks", message=message, paths=grave[:50])]
        message = f"The checks wrote files into the repository: {', '.join(moved.all[:5])}"
        return [
            Finding(code="checks_wrote_files", message=message, paths=moved.all[:50], blocks=False)
        ]

    def _artifacts(self, worker_changes: Sequence[WorkerChange]) -> set[str]:
        """What earlier rounds of checks wrote anew, such as reports; never code or tests."""
        rounds = [change for change in worker_changes if change.by_checks]
        moved = [self.between(change.before, change.after) for change in rounds]
        return {
            path
            for changes in moved
            for path in changes.added.difference(changes.tests_added, changes.steering)
            if not SOURCE.search(path)
        }


def writes_of(changes: Changes) -> list[str]:
    """What tests write by themselves, bounded: paths, or the folders of very many."""
    paths = changes.all
    if len(paths) > MOST_WRITES:
        paths = sorted({path.rpartition("/")[0] + "/" if "/" in path else path for path in paths})
    return paths[:MOST_WRITES]


def _written_before(path: str, writes: Sequence[str]) -> bool:
    return any(path == one or (one.endswith("/") and path.startswith(one)) for one in writes)
