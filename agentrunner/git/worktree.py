"""A run outside the checkout: its folder, what it starts from, and what it takes along.

Everything here blocks and may raise GitFailed and OSError.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from agentrunner.errors.repositories import BranchExists
from agentrunner.folders import remove_tree
from agentrunner.git.ignore import IgnoreRules
from agentrunner.git.private_clone import CloneStore
from agentrunner.git.snapshots import Snapshots
from agentrunner.storage.plan_folder import repository_key
from agentrunner.storage.run_folder import make_private, runs_root

ORPHAN_SEC = 24 * 3600
"""How long a folder without a run is left alone: its run may be about to begin."""


class WorktreePlace(Struct, frozen=True):
    """The folder that one run has for a repository: a private clone, and its work tree."""

    root: Path

    @property
    def clone(self) -> Path:
        """The private clone of `CloneStore`."""
        return self.root / "clone.git"

    @property
    def work(self) -> Path:
        return self.root / "work"

    def remove(self) -> None:
        """Remove all of it, whatever a worker did to it."""
        if self.root.is_dir():
            remove_tree(str(self.root))


class Prepared(Struct, frozen=True):
    """What a work tree was made from."""

    base: str
    """The commit."""
    carried: tuple[str, ...]
    """Files with uncommitted changes, copied from the checkout; sorted."""
    left: tuple[str, ...]
    """Submodules and other repositories below the top, which were not taken along; sorted."""


def worktree_place(state_dir: Path, repo: Path, run_id: str) -> WorktreePlace:
    """Return the folder of a run of the user's repository; nothing is created."""
    return WorktreePlace(state_dir / "worktrees" / repository_key(repo) / run_id)


def remove_places(state_dir: Path, run_id: str) -> None:
    """Remove the folder of a run, whichever repository it is for."""
    for root in places_of(state_dir, run_id):
        WorktreePlace(root).remove()


def places_of(state_dir: Path, run_id: str) -> Iterable[Path]:
    """Return the worktree folders of a run, whichever repository they are for."""
    return sorted((state_dir / "worktrees").glob(f"*/{run_id}"))


def orphans(state_dir: Path) -> Iterator[WorktreePlace]:
    """Yield folders whose run is gone, or was killed before it began, and temporary ones that a
    killed `verify` of an older version has left.
    """
    for root in (*(state_dir / "worktrees").glob("*/*"), *state_dir.glob("verify-*")):
        recent = time.time() - root.stat().st_mtime < ORPHAN_SEC
        if not recent and not (runs_root(state_dir) / root.name).is_dir():
            yield WorktreePlace(root)


def prepare(
    place: WorktreePlace, repo: Path, note_dir: str, *, clean: bool, branch: str = ""
) -> Prepared:
    """Make the work tree of a run at the repository's HEAD.

    Uncommitted changes are taken along unless `clean`; ignored files never are. Raises UsageError
    (`no-repository`, `no-commit`, and for a new `branch` that cannot be made `branch-exists`,
    `branch-name`).
    """
    make_private(place.root)
    store = CloneStore(place.clone, repo)
    base = store.fetch()
    if branch:
        try:
            store.check_branch(branch)
        except BranchExists as error:
            error.remedy = f"--worktree {store.free_branch(branch)}, or {error.remedy}"
            raise
    store.check_out(place.work, base)
    theirs = Snapshots(place.root / "theirs", repo, note_dir)
    ours = Snapshots(place.root / "ours", place.work, note_dir)
    try:
        taken = theirs.take()
        embedded = {str(PurePosixPath(path).parent) for path in taken.embedded}
        left = tuple(sorted(embedded | set(store.submodules(base))))
        carried = () if clean else tuple(sorted(_uncommitted(theirs, ours, left)))
    finally:
        for part in (theirs.git_dir, ours.git_dir):
            shutil.rmtree(part, ignore_errors=True)
    store.carry_over(place.work, carried)
    return Prepared(base, carried, left)


def _uncommitted(theirs: Snapshots, ours: Snapshots, left: Iterable[str]) -> Iterator[str]:
    """Yield files that differ between the checkout and the work tree.

    Folders are compared, not commits, so that line endings and large-file pointers are as in a
    fresh checkout.
    """
    now, fresh = theirs.take(), ours.take()
    after, before = theirs.list(now.tree), ours.list(fresh.tree)
    outside = tuple(f"{name}/" for name in left)
    large = {*now.large, *fresh.large}
    differing = [
        path
        for path in {*after, *before}
        if after.get(path) != before.get(path)
        and not path.startswith(outside)
        and path not in now.skipped
        and not (
            path in large and _has_same_content(theirs.work_tree / path, ours.work_tree / path)
        )
    ]
    rules = IgnoreRules(theirs.git, os.fsencode(theirs.work_tree))
    ignored = rules.ignored_files([path for path in differing if path not in before])
    yield from (path for path in differing if path not in ignored)


def _has_same_content(file: Path, reference: Path) -> bool:
    with contextlib.suppress(OSError):
        regular = file.is_file() and reference.is_file() and not file.is_symlink()
        return regular and filecmp.cmp(file, reference, shallow=False)
    return False
