"""Bringing a task's work together with the rest: one commit, merged into the plan's branch.

The branch moves last, in one step of git, so that a landing which was cut short is done again or
found done: the commits that come of the same work are the same.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agentrunner.conductor.message import DEFAULT_TEMPLATE, TITLE_WIDTH, commit_message, harmless
from agentrunner.conductor.proofs import Proof
from agentrunner.runs.failpoints import reach
from agentrunner.runs.git import GitFailed
from agentrunner.runs.workspace import CloneStore, Identity

MAX_EVIDENCE = 12_000
"""Characters of evidence that a second round is told, at most."""
MAX_HUNK = 2_000
_OPENS, _CLOSES = re.compile(rb"(?m)^<{7} "), re.compile(rb"(?m)^>{7} ")
_HUNK = re.compile(r"(?ms)^<{7} .*?^>{7} [^\n]*$")


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
    paths: tuple[str, ...] | None = None
    """What the run changed, where the result may name only the first of it (`changed_paths`)."""
    proofs: tuple[Proof, ...] = ()
    """Checks that were green in the run."""


@dataclass(frozen=True)
class Landed:
    """It is part of the plan's branch."""

    commit: str
    """The plan's new head; the old one where nothing was changed."""
    files: tuple[str, ...] = ()
    """What the task changed in the plan; sorted."""


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
    broken: tuple[Proof, ...] = ()
    """Checks of tasks that were green and are red on it."""


class TreeTests(Protocol):
    """Runs a plan's tests, and the checks of its tasks, on whole commits."""

    async def newly_red(self, commit: str, before: str, *, removed: int = 0) -> str:
        """What fails on a commit and did not on the one before; "" for nothing.

        `removed` tests fewer are expected.
        """

    async def broken(
        self, commit: str, before: str, mine: str, task_id: str, proofs: Sequence[Proof]
    ) -> tuple[tuple[Proof, ...], str]:
        """What tasks had proven and a commit breaks, with the evidence in words.

        Checks of tasks that have landed were green on the commit before, the `proofs` of the task
        that lands on its own work, `mine`. Where nothing is broken they count from then on.
        """


@dataclass(frozen=True)
class _Merge:
    """A new head that is still to be looked at."""

    commit: str
    head: str
    tree: str


async def land(
    clone: CloneStore,
    branch: str,
    work: Work,
    *,
    author: Identity,
    at: str,
    template: str = DEFAULT_TEMPLATE,
    tests: TreeTests | None = None,
) -> Landed | Conflict | TestsRed:
    """Commit the work and merge it into the plan's branch of the clone.

    `tests` decide before the branch moves. Once more for the same work changes nothing. `at` is a
    UTC time, ISO 8601, and the same each time. Raises GitFailed, UsageError (`commit-message`),
    and what `tests` raise where they cannot be run.
    """
    mine = await asyncio.to_thread(_commit, clone, work, author, at, template)
    while True:
        found = await asyncio.to_thread(_merge, clone, branch, work, mine, author, at)
        if not isinstance(found, _Merge):
            return found
        if tests is not None:
            removed = _removed(work.result)
            evidence = await tests.newly_red(found.commit, found.head, removed=removed)
            if evidence:
                return TestsRed(evidence[:MAX_EVIDENCE], found.head, found.tree)
            broken, evidence = await tests.broken(
                found.commit, found.head, mine, work.task_id, work.proofs
            )
            if broken:
                return TestsRed(evidence[:MAX_EVIDENCE], found.head, found.tree, broken)
        if await asyncio.to_thread(_move, clone, branch, found):
            return Landed(found.commit)


def _commit(clone: CloneStore, work: Work, author: Identity, at: str, template: str) -> str:
    message = commit_message(
        template,
        title=work.title,
        proof=work.result.get("proof", ()),
        task_id=work.task_id,
        run_id=work.result.get("run_id", ""),
    )
    return clone.commit(
        work.folder,
        work.result["changed_files"] if work.paths is None else work.paths,
        parents=work.parents,
        message=message,
        author=author,
        at=at,
        tree=clone.tree_of(work.commit),
    )


def _merge(
    clone: CloneStore, branch: str, work: Work, mine: str, author: Identity, at: str
) -> Landed | Conflict | _Merge:
    """What comes of the work and the present head; nothing is moved."""
    head = clone.resolve(f"refs/heads/{branch}")
    if clone.contains(head, mine):
        return Landed(head)
    if unsolved := _unsolved(clone, work, mine):
        names = ", ".join(unsolved)
        told = f"Marks of the conflict are still in {names}. Bring both sides together."
        return Conflict(told, work.parents[0], clone.tree_of(mine))
    merged = clone.merge(head, mine)
    if merged.conflicts:
        return Conflict(_told(clone, merged.tree, merged.conflicts), head, merged.tree)
    if merged.tree == clone.tree_of(head):
        return Landed(head)
    if head == work.parents[0]:
        return _Merge(mine, head, merged.tree)
    message = f"Merge {work.task_id}: {harmless(work.title, TITLE_WIDTH)}\n"
    new = clone.commit_tree(
        merged.tree, parents=(head, mine), message=message, author=author, at=at
    )
    return _Merge(new, head, merged.tree)


def _move(clone: CloneStore, branch: str, merge: _Merge) -> bool:
    """Let the branch point to the merge; False where another task's work came before."""
    reach("landing_before_move")
    try:
        clone.branch(branch, merge.commit, before=merge.head)
    except GitFailed:
        if clone.branch_at(branch) == merge.head:
            raise
        return False
    reach("landing_after_move")
    return True


def _unsolved(clone: CloneStore, work: Work, mine: str) -> list[str]:
    """Files that were handed over with the marks of a conflict and still have them."""
    if work.commit == work.parents[0]:
        return []
    return [
        path
        for path in clone.changed(work.parents[0], work.commit)
        if _marked(clone.read(work.commit, path))
        and _marked(clone.read(mine, path))
        and not _marked(clone.read(work.parents[0], path))
    ]


def _marked(content: bytes) -> bool:
    return bool(_OPENS.search(content) and _CLOSES.search(content))


def _told(clone: CloneStore, tree: str, conflicts: Iterable[str]) -> str:
    """The conflict in words and hunks, bounded."""
    names = list(conflicts)
    text = (
        f"Both this task and others, whose work is part of the plan by now, changed"
        f" {', '.join(names[:20])}. The files here hold both sides: between `<<<<<<<` and"
        " `=======` what the others made of it, after that what this task did. Keep what both"
        " want, and remove the marks.\n"
    )
    for hunk in _hunks(clone, tree, names):
        if len(text) + len(hunk) > MAX_EVIDENCE:
            return text + "\nAnd more of the kind.\n"
        text += hunk
    return text


def _hunks(clone: CloneStore, tree: str, names: Iterable[str]) -> Iterator[str]:
    for path in names:
        content = clone.read(tree, path).decode("utf-8", "replace")
        hunks = _HUNK.findall(content)
        if not hunks:
            yield f"\n{path}: one side changed it, the other one deleted or replaced it.\n"
        for hunk in hunks:
            yield f"\n{path}:\n\n```\n{hunk[:MAX_HUNK]}\n```\n"


def _removed(result: Mapping[str, Any]) -> int:
    """How many tests fewer there are because the run, which is COMPLETE, took some away."""
    test = result.get("test") or {}
    names = ("baseline_passed", "baseline_failed", "passed", "failed")
    if any(test.get(name) is None for name in names):
        return 0
    was = int(test["baseline_passed"]) + int(test["baseline_failed"])
    return max(0, was - int(test["passed"]) - int(test["failed"]))
