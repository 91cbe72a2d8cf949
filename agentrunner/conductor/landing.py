"""Bringing a task's work together with the rest: one commit, merged into the plan's branch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrunner.runs.workspace import CloneStore, Identity


@dataclass(frozen=True)
class Work:
    """What a task's run has made, and from where."""

    task_id: str
    title: str
    folder: Path
    """The work tree."""
    commit: str
    """What it was checked out at."""
    parents: tuple[str, ...]
    """Of the commit to be made; the first is the plan's head of then."""
    result: Mapping[str, Any]
    """The `result` object of the run, which is COMPLETE."""


@dataclass(frozen=True)
class Landed:
    """It is part of the plan's branch."""

    commit: str
    """The plan's new head; the old one where nothing was changed."""


@dataclass(frozen=True)
class Conflict:
    """Both changed the same lines."""

    evidence: str
    """For whoever is to bring them together."""
    head: str
    """The plan's head that it could not be merged with."""
    tree: str
    """The merge, with marks in the files."""


@dataclass(frozen=True)
class TestsRed:
    """The merge is clean, and its tests fail."""

    __test__ = False

    evidence: str
    head: str
    tree: str
    """The merge."""


async def land(
    clone: CloneStore, branch: str, work: Work, *, author: Identity, at: str
) -> Landed | Conflict | TestsRed:
    """Commit the work and merge it into the plan's branch of the clone.

    Once more for the same work changes nothing. `at` is a UTC time, ISO 8601. Raises GitFailed.
    """
    return await asyncio.to_thread(_land, clone, branch, work, author, at)


def _land(
    clone: CloneStore, branch: str, work: Work, author: Identity, at: str
) -> Landed | Conflict:
    head = clone.resolve(f"refs/heads/{branch}")
    mine = clone.commit(
        work.folder,
        work.result["changed_files"],
        parents=work.parents,
        message=f"{work.title}\n\nTask: {work.task_id}\n",
        author=author,
        at=at,
        tree=clone.tree_of(work.commit),
    )
    merged = clone.merge(head, mine)
    if merged.conflicts:
        names = ", ".join(merged.conflicts)
        return Conflict(f"Both this task and others changed {names}.", head, merged.tree)
    if merged.tree == clone.tree_of(head):
        return Landed(head)
    if head == work.parents[0]:
        new = mine
    else:
        message = f"Merge {work.task_id}: {work.title}\n"
        new = clone.commit_tree(
            merged.tree, parents=(head, mine), message=message, author=author, at=at
        )
    clone.branch(branch, new, before=head)
    return Landed(new)
