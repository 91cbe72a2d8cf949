"""Compares the trees of a run: which paths changed, and who changed them. Everything blocks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec import Struct

from agentrunner.config.spec import TaskSection, TaskSpec
from agentrunner.git.snapshots import Snapshots
from agentrunner.registry import GRADLE_FILES
from agentrunner.state.run_state import Finding
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.globs import is_executable_config, matches
from agentrunner.verification.inputs.wanted_changes import asked_in, wanted_new
from agentrunner.verification.syntax.edits import Edit, applied

MANIFEST = lazy_regex(
    r"(^|/)(package(-lock)?\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?"
    r"|pyproject\.toml|setup\.(py|cfg)|Pipfile(\.lock)?|poetry\.lock|uv\.lock|pdm\.lock"
    r"|[\w.-]*requirements[\w.-]*\.(txt|in)|requirements/[^/]+\.txt|environment\.ya?ml"
    r"|go\.(mod|sum|work)|Cargo\.(toml|lock)|pom\.xml|gradle\.lockfile"
    rf"|{'|'.join(map(re.escape, GRADLE_FILES))}"
    r"|Gemfile(\.lock)?|[^/]+\.gemspec|composer\.(json|lock)"
    r"|[^/]+\.(csproj|fsproj|sln)|mix\.(exs|lock)|CMakeLists\.txt|meson\.build|cpanfile)$"
)
"""Files in which package managers read what is to be installed."""
NATIVE = lazy_regex(r"\.(c|cc|cpp|cxx|h|hpp|pyx|pxd|rs|f90|f|m|swift)$")
"""Sources from which an installed package may have been compiled."""

DRIVER = lazy_regex(rb"\b(?:filter|diff|merge|textconv)\s*=")
"""An attribute by which git starts a program that somebody's settings name."""


@dataclass(frozen=True)
class Changes:
    """Paths that differ between two trees."""

    added: frozenset[str] = frozenset()
    modified: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    lines: Mapping[str, tuple[int, int]] = field(default_factory=dict, hash=False)
    """How many lines were added and removed, by path; none of a binary file."""

    @property
    def lines_added(self) -> int:
        return sum(added for added, _ in self.lines.values())

    @property
    def lines_removed(self) -> int:
        return sum(removed for _, removed in self.lines.values())

    @property
    def all(self) -> list[str]:
        """Every changed path, sorted."""
        return sorted(self.added | self.modified | self.deleted)

    def only(self, paths: Collection[str]) -> Changes:
        """The part about `paths`. A path that was changed and put back is not in it."""
        paths = frozenset(paths)
        return replace(
            self,
            added=self.added.intersection(paths),
            modified=self.modified.intersection(paths),
            deleted=self.deleted.intersection(paths),
            lines={path: counts for path, counts in self.lines.items() if path in paths},
        )

    def then(self, later: Changes) -> Changes:
        """These changes and `later` ones in a row, as one."""
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
        lines={change.path: (change.added or 0, change.removed or 0) for change in changes},
    )


class WorkerChange(Struct, frozen=True):
    """The trees before and after something that ran workers' code: what differs is the workers'."""

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
    """What a worker left and the latest tree cannot hold: pipes, unreadable files."""
    empty: tuple[str, ...] = ()
    """Empty folders that a worker left: the latest tree cannot hold them either."""
    _workers_so_far: tuple[list[WorkerChange], Changes] = field(
        default_factory=lambda: ([], Changes()), init=False
    )
    """The worker runs compared so far and their joint changes, so that each is compared once."""

    def now(self) -> str:
        """Take a snapshot and return its tree id."""
        snapshot = self.snapshots.take()
        self.unkept, self.skipped = tuple(snapshot.unkept), tuple(snapshot.skipped)
        self.empty = tuple(snapshot.empty)
        return snapshot.tree

    def between(self, before: str, after: str) -> Changes:
        """All paths that differ, whoever changed them."""
        return changes_between(self.snapshots, before, after)

    def by_workers(self, worker_changes: Sequence[WorkerChange], total: Changes) -> Changes:
        """The joint changes of the run's workers, without a person's edits in between.

        `total` is what differs between baseline and present tree: a worker's change that was
        put back does not count.
        """
        compared, changes = self._workers_so_far
        if worker_changes[: len(compared)] != compared:
            compared, changes = [], Changes()
        for change in worker_changes[len(compared) :]:
            changes = changes.then(self.between(change.before, change.after))
        self._workers_so_far = list(worker_changes), changes
        return changes.only(total.all)

    def protected(self, changes: Changes, wanted: str, before: str, after: str) -> list[Finding]:
        """A finding where paths were changed that the task or threat T2 protects.

        `wanted` is the text of what was asked for. A `.gitattributes` that it names may change, as
        long as the new lines make git run nothing.
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
        """Whether the task names this `.gitattributes` and no new line of it starts a program."""
        if path != ".gitattributes" or not (wanted_new(wanted, path) or asked_in(wanted, path)):
            return False
        was, now = (self.snapshots.reader(tree)(path) or b"" for tree in (before, after))
        known = set(was.splitlines())
        return not any(DRIVER.search(line) for line in now.splitlines() if line not in known)


def with_edits(snapshots: Snapshots, tree: str, edits: Mapping[str, Iterable[Edit]]) -> str:
    """A tree with edits in its files, by path. Blocks."""
    read = snapshots.reader(tree)
    return snapshots.with_texts(
        tree, {path: applied(read(path) or b"", some) for path, some in edits.items()}
    )


def installs_anew(paths: list[str]) -> bool:
    """Whether a change of these paths requires the set-up to be run again."""
    return any(MANIFEST.search(path) or NATIVE.search(path) for path in paths)


def delivered_tree(
    snapshots: Snapshots, spec: TaskSpec, tree: str, before: str, total: Changes
) -> tuple[str, list[str], list[str]]:
    """`tree` with ignored files as they were in `before`, and the paths put back so. Blocks.

    An ignored file that the task names is part of the work, and stays. Those are returned last:
    they are handed over, and left out by `git add`.
    """
    if not total.all:
        return tree, [], []
    ignored = snapshots.ignored_paths(total.all)
    added = sorted(total.added)
    if added and any(path.rpartition("/")[2] == ".gitignore" for path in total.all):
        # The worker's own ignore rules keep new files out of what git would hand over.
        hidden = snapshots.ignored_by(tree, added) - snapshots.ignored_by(before, added)
        ignored = ignored | hidden
    text = spec.prd_text + "\n".join(
        f"{one.description} {one.check or ''}" for one in spec.criteria
    )
    wanted = {
        path for path in ignored if re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-])", text)
    }
    put_back = sorted(ignored - wanted)
    old = snapshots.list(before) if put_back else {}
    made = snapshots.combine(tree, {path: old.get(path) for path in put_back}) if put_back else tree
    return made, put_back, sorted(wanted - total.deleted)
