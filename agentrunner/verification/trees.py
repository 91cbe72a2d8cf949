"""What the trees of a run tell: who changed what. Everything here blocks."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from agentrunner.config.spec import TaskSection
from agentrunner.git.snapshots import Snapshots
from agentrunner.state.run_state import Finding
from agentrunner.verification.checks import ReadFile
from agentrunner.verification.inputs.asked import asked_in, wanted_new
from agentrunner.verification.inputs.steering import is_executable_config, matches

DRIVER = re.compile(rb"\b(?:filter|diff|merge|textconv)\s*=")
"""An attribute by which git starts a program that somebody's settings name."""


@dataclass(frozen=True)
class Changes:
    """Paths that differ between two trees."""

    added: frozenset[str] = frozenset()
    modified: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    lines_added: int = 0
    lines_removed: int = 0

    @property
    def all(self) -> list[str]:
        """Every changed path, sorted."""
        return sorted(self.added | self.modified | self.deleted)

    def only(self, paths: Collection[str]) -> Changes:
        """Those of `paths`: what was changed and put back is no change."""
        return replace(
            self,
            added=self.added.intersection(paths),
            modified=self.modified.intersection(paths),
            deleted=self.deleted.intersection(paths),
        )

    def then(self, later: Changes) -> Changes:
        """Both changes in a row, as one."""
        return Changes(
            added=(self.added - later.deleted) | (later.added - self.deleted),
            modified=((self.modified | later.modified) - self.added - later.deleted)
            | (self.deleted & later.added),
            deleted=(self.deleted - later.added) | (later.deleted - self.added),
        )


def changes_between(snapshots: Snapshots, before: str, after: str) -> Changes:
    """The paths that differ between two snapshots. Blocks."""
    if before == after:
        return Changes()
    changes = snapshots.changes(before, after)
    return Changes(
        added=frozenset(change.path for change in changes if change.kind == "added"),
        modified=frozenset(
            change.path for change in changes if change.kind in ("modified", "type")
        ),
        deleted=frozenset(change.path for change in changes if change.kind == "deleted"),
        lines_added=sum(change.added or 0 for change in changes),
        lines_removed=sum(change.removed or 0 for change in changes),
    )


@dataclass(frozen=True)
class WorkerChange:
    """The trees before and after something that ran workers' code: what in between is theirs."""

    before: str
    after: str


@dataclass
class Trees:
    """Compares snapshots of one run."""

    snapshots: Snapshots
    task: TaskSection
    unkept: tuple[str, ...] = ()
    """Changed files of the latest tree whose content could not be kept."""
    skipped: tuple[str, ...] = ()
    """What a worker left and the latest tree does not hold: pipes, unreadable files."""
    _summed_up: tuple[list[WorkerChange], Changes] = field(
        default_factory=lambda: ([], Changes()), init=False
    )
    """What the worker runs so far came to, so that each is compared once and not every round."""

    def now(self) -> str:
        """The present tree."""
        snapshot = self.snapshots.take()
        self.unkept, self.skipped = tuple(snapshot.unkept), tuple(snapshot.skipped)
        return snapshot.tree

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

    def protected(self, changes: Changes, wanted: str, before: str, after: str) -> list[Finding]:
        """A finding where paths were changed that the task or threat T2 protects.

        `wanted`: what was asked for. Attributes of git that it names are free where they run
        nothing.
        """
        protected = [path for path in changes.all if matches(path, self.task.protect)]
        executable = [
            path
            for path in changes.all
            if is_executable_config(path)
            and not matches(path, self.task.allow_changes)
            and path not in protected
            and not self._is_asked_and_runs_nothing(path, wanted, before, after)
        ]
        paths = [*protected, *executable]
        if not paths:
            return []
        setting = "task.protect" if protected else "task.allow_changes"
        return [
            Finding(
                code="protected_path",
                message=f"Protected paths were changed: {', '.join(paths[:5])}",
                paths=paths[:50],
                remedy=f"{setting} in the task file settles it for the next run",
            )
        ]

    def _is_asked_and_runs_nothing(self, path: str, wanted: str, before: str, after: str) -> bool:
        """Whether what was asked for names this file of git's attributes, and no driver is new."""
        if path != ".gitattributes" or not (wanted_new(wanted, path) or asked_in(wanted, path)):
            return False
        was, now = self.reader(before)(path) or b"", self.reader(after)(path) or b""
        known = set(was.splitlines())
        return not any(DRIVER.search(line) for line in now.splitlines() if line not in known)
