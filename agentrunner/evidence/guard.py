"""The tamper guard: do the old tests pass on the new code?

A worker may delete, weaken, skip or shadow the tests. So where one touched an existing test or
anything that steers the test tool, the same command runs again on a copy of its tree in which
every test and steering path is exactly as it was before the run, new ones removed.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from agentrunner.evidence.box import CopyOfRepo
from agentrunner.evidence.steering import is_steering, is_test, matches
from agentrunner.runs.snapshots import Snapshots
from agentrunner.sandboxes.base import Mount
from agentrunner.task.context import Baseline, Finding, TestOutcome

Answer = TypeVar("Answer")
RunCopy = Callable[[CopyOfRepo, TestOutcome | None], Awaitable[TestOutcome]]


@dataclass(frozen=True)
class Changes:
    """Paths that differ between two trees, and what kind of path they are."""

    added: frozenset[str] = frozenset()
    modified: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    lines_added: int = 0
    lines_removed: int = 0
    named: frozenset[str] = field(default=frozenset(), compare=False)
    """The scripts that the test command runs: they steer, too."""
    harmless: frozenset[str] = field(default=frozenset(), compare=False)
    """Configuration whose change steers no test."""

    @property
    def all(self) -> list[str]:
        """Every changed path, sorted."""
        return sorted(self.added | self.modified | self.deleted)

    @property
    def tests_touched(self) -> list[str]:
        """Tests that existed before and were changed or deleted."""
        return sorted(path for path in self.modified | self.deleted if is_test(path))

    @property
    def tests_added(self) -> list[str]:
        """New test files."""
        return sorted(
            path for path in self.added if is_test(path) and not self._steers(path, new=True)
        )

    @property
    def tests_written(self) -> list[str]:
        """Test files that were added or changed and still exist."""
        return sorted({*self.tests_added, *self.tests_touched} - self.deleted)

    @property
    def steering(self) -> list[str]:
        """Whatever steers the test tool and was added, changed or deleted."""
        old = {path for path in self.modified | self.deleted if self._steers(path)}
        return sorted(old | {path for path in self.added if self._steers(path, new=True)})

    @property
    def touched_or_steering(self) -> list[str]:
        """Everything but plainly new files: what no check should ever change."""
        return sorted(self.modified | self.deleted | set(self.steering) | set(self.tests_added))

    def _steers(self, path: str, *, new: bool = False) -> bool:
        return path not in self.harmless and is_steering(path, self.named, new=new)

    def guards(self, path: str, *, new: bool) -> bool:
        """Whether the guard puts this path back as it was."""
        return is_test(path) or self._steers(path, new=new)

    def knowing(self, named: frozenset[str], harmless: frozenset[str] = frozenset()) -> Changes:
        """The same changes, told which paths steer and which do not."""
        return replace(self, named=named, harmless=harmless)

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
            named=self.named | later.named,
            harmless=self.harmless & later.harmless,
        )


def changes_between(snapshots: Snapshots, before: str, after: str) -> Changes:
    """The paths that differ between two snapshots. Blocking."""
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


@dataclass
class Guard:
    """Runs the test command on copies of the repository. `scratch` is a folder of the run."""

    snapshots: Snapshots
    scratch: Path
    may_change: Sequence[str] = ()
    """Globs of tests whose change is wanted."""
    mounts: bool = True
    """Whether the sandbox can mount; else the copy has links to installed packages."""

    async def old_tests_pass(
        self, tree: str, baseline: Baseline, changes: Changes, run: RunCopy
    ) -> tuple[TestOutcome | None, Finding | None]:
        """The test command with the old tests and steering, and a finding where it is red.

        (None, None) where no worker touched either. A new test is suspect as well: many runners
        load all of them into one process, where it can mend the product for the others.
        """
        suspects = [
            path
            for path in [*changes.tests_touched, *changes.tests_added, *changes.steering]
            if not matches(path, self.may_change)
        ]
        if not suspects:
            return None, None
        restored = await asyncio.to_thread(self._restored, baseline.tree, tree, changes)
        outcome = await self.on_copy(restored, lambda copy: run(copy, baseline.test))
        if outcome.green:
            return outcome, None
        if baseline.test is None and _ran_nothing(outcome):
            paths_before = await asyncio.to_thread(self.snapshots.list, baseline.tree)
            if not any(map(is_test, paths_before)):
                return None, None  # the first tests of a repository: no old ones are to pass
        why = outcome.finding or f"exit {outcome.exit_code}"
        paths = sorted(set(suspects))[:50]
        names = [f"{path} (deleted)" if path in changes.deleted else path for path in paths[:5]]
        message = (
            f"The tests pass only as the worker left them: {', '.join(names)}; "
            f"with the tests as they were: {why}"
        )
        return outcome, Finding(code="tests_changed", message=message, paths=paths)

    async def run_on_old_code(
        self,
        old: str,
        new: str,
        tests: Sequence[str],
        run: Callable[[CopyOfRepo], Awaitable[TestOutcome]],
    ) -> TestOutcome:
        """The test command on the old tree with only `tests` taken over from the new one."""

        def mixed() -> str:
            entries = self.snapshots.list(new)
            return self.snapshots.combine(old, {path: entries.get(path) for path in tests})

        return await self.on_copy(await asyncio.to_thread(mixed), run)

    def _restored(self, old: str, new: str, changes: Changes) -> str:
        """`new` with every test and steering path exactly as in `old`, later ones removed."""
        before, now = self.snapshots.list(old), self.snapshots.list(new)
        overrides = {}
        for path in before.keys() | now.keys():
            is_new = path not in before
            wanted = matches(path, self.may_change)
            differs = before.get(path) != now.get(path)
            if differs and not wanted and changes.guards(path, new=is_new):
                overrides[path] = before.get(path)
        return self.snapshots.combine(new, overrides)

    async def on_copy(self, tree: str, run: Callable[[CopyOfRepo], Awaitable[Answer]]) -> Answer:
        """What `run` finds out with this tree in the repository's place.

        Installed packages are mounted as they are, writable, since tools keep caches in them; a
        change of anything else in them is noticed (`dependencies_changed`).
        """
        folder = await asyncio.to_thread(self._scratch_folder)
        try:
            target = Path(folder.name) / "copy"
            ignored = await asyncio.to_thread(self.snapshots.copy_worktree, target, tree)
            if not self.mounts:
                await asyncio.to_thread(_link, target, ignored)
                return await run(CopyOfRepo(target, ()))
            mounts = tuple(
                Mount(source, self.snapshots.work_tree / relative, read_only=False)
                for source, relative in ignored
            )
            return await run(CopyOfRepo(target, mounts))
        finally:
            await asyncio.to_thread(folder.cleanup)

    def _scratch_folder(self) -> tempfile.TemporaryDirectory[str]:
        self.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        return tempfile.TemporaryDirectory(dir=self.scratch, ignore_cleanup_errors=True)


def _ran_nothing(outcome: TestOutcome) -> bool:
    return (outcome.passed, outcome.failed, outcome.skipped) == (0, 0, 0)


def _link(copy: Path, folders: Sequence[tuple[Path, str]]) -> None:
    for source, relative in folders:
        (copy / relative).rmdir()
        (copy / relative).symlink_to(source)
