"""Merges a task's work with the rest: one commit, merged into the plan's branch.

The branch moves last, in one step of git. A merge that was interrupted is done again or found done,
because the same work always gives the same commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agentrunner.errors.repositories import GitFailed
from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.plans.execution.commit_message import (
    DEFAULT_TEMPLATE,
    TITLE_WIDTH,
    commit_message,
    harmless,
)
from agentrunner.plans.execution.merging.merge_verdict import MergeCandidate, MergeVerdict
from agentrunner.plans.execution.merging.proofs import ProvenCriterion, RunFindings
from agentrunner.results import Result
from agentrunner.storage.failpoints import reach
from agentrunner.text.lazy_regex import lazy_regex

MAX_EVIDENCE = 12_000
"""Characters of evidence that a further run gets, at most."""
MAX_HUNK = 2_000
MAX_FILES = 20
UNFIT = (
    "Both this task and others, whose work is part of the plan by now, changed {names}, and the"
    " set-up command fails on the merge with the marks of the conflict in it.\n"
)
NO_START = "No run can begin on that, so this"
NOTHING_RED = "Nothing is red on the merge, so no run could prove that it fixed it. This"
ANEW = (
    " work tree has what the others did and nothing of this task. Do it anew so that it fits. This"
    " is what it had changed:\n"
)
_OPENS, _CLOSES = lazy_regex(rb"(?m)^<{7} "), lazy_regex(rb"(?m)^>{7} ")
_HUNK = lazy_regex(r"(?ms)^<{7} .*?^>{7} [^\n]*$")


@dataclass(frozen=True)
class TaskWork(RunFindings):
    """What a task's run has made, and from where."""

    task_id: str
    title: str
    folder: Path
    """The work tree."""
    commit: str
    """The commit it was checked out at."""
    parents: tuple[str, ...]
    """Of the commit to be made; the first is the plan's head at that time."""
    result: Result
    """The `result` object of the run, which is COMPLETE."""
    paths: tuple[str, ...] | None = None
    """What the run changed, where the result may name only the first of it (`changed_paths`)."""
    allowed: tuple[str, ...] = ()
    """See `MergeCandidate.allowed`."""


@dataclass(frozen=True)
class Merged:
    """The work is part of the plan's branch."""

    commit: str
    """The plan's new head; the old one where nothing was changed."""
    files: tuple[str, ...] = ()
    """What the task changed in the plan; sorted."""
    doubts: tuple[ProvenCriterion, ...] = ()
    """Checks that were green in the run and are red on a fresh checkout of its commit."""


@dataclass(frozen=True)
class MergeConflict:
    """Both changed the same lines."""

    evidence: str
    """For the run that has to resolve the conflict."""
    head: str
    """The plan's head that it could not be merged with."""
    tree: str
    """The merge, with marks in the files; the head's tree where no run could start on that."""
    files: tuple[str, ...] = ()
    """Files that have marks, or are gone on one side."""


class TestsRed(Struct, frozen=True):
    """The merge is clean, and its tests fail."""

    __test__ = False

    evidence: str
    head: str
    tree: str
    """The merge; the head's tree where no run could start on that."""
    broken: tuple[ProvenCriterion, ...] = ()
    """Checks of tasks that were green and are red on it."""
    asks: str = ""
    """What a person has to decide (`MergeVerdict.asks`). The tree is the head's then."""
    unproven: tuple[str, ...] = ()
    """The checks that this is about (`ProvenCriterion.key`)."""


class NoLongerPlanned(Exception):
    """The plan no longer asks for the work."""


class TreeTests(Protocol):
    """Runs a plan's tests, and the checks of its tasks, on whole commits.

    Methods raise EnvironmentNotReady where the set-up also fails on the commit before, and
    InfraError where there is no sandbox.
    """

    async def examine(self, candidate: MergeCandidate) -> MergeVerdict:
        """Return whether a task's work may be merged; if so, its proofs count from then on."""

    async def joined(self, commit: str, onto: str, head: str) -> MergeVerdict:
        """Return whether a commit that merges the plan's `head` into `onto`, a branch's, is
        acceptable.

        The test command was green on `onto`, and what tasks have proven on `head`.
        """

    async def sets_up(self, commit: str, sandbox: tuple[str, str]) -> bool:
        """Whether the set-up command, where there is one, succeeds on a commit."""

    async def doubts(self, task_id: str) -> tuple[ProvenCriterion, ...]:
        """Return `MergeVerdict.doubts` of the task's latest work that may be merged."""


class _Merge(Struct, frozen=True):
    """A new head that is still to be examined."""

    commit: str
    head: str
    tree: str


async def merge_work(
    clone: CloneStore,
    branch: str,
    work: TaskWork,
    *,
    author: Identity,
    at: str,
    tests: TreeTests,
    template: str = DEFAULT_TEMPLATE,
    wanted: Callable[[], bool] = lambda: True,
) -> Merged | MergeConflict | TestsRed:
    """Commit the work and merge it into the plan's branch of the clone.

    `tests` decide before the branch moves. A second call for the same work changes nothing. `at` is
    a UTC time, ISO 8601, and the same each time. `wanted` is asked last. Raises GitFailed,
    UsageError (`commit-message`), NoLongerPlanned, and what `tests` raise where they cannot be run.
    """
    own_commit = await asyncio.to_thread(_commit, clone, work, author, at, template)
    while True:
        found = await asyncio.to_thread(_merge, clone, branch, work, own_commit, author, at)
        if isinstance(found, Merged):
            return replace(found, doubts=await tests.doubts(work.task_id))
        if isinstance(found, MergeConflict):
            marked = await asyncio.to_thread(
                clone.commit_tree,
                found.tree,
                parents=(own_commit,),
                message="-\n",
                author=author,
                at=at,
            )
            return await _to_be_solved(clone, work, own_commit, found, tests, marked)
        verdict = await tests.examine(_candidate(work, own_commit, found))
        if verdict.evidence:
            return await asyncio.to_thread(_refused, clone, work, own_commit, found, verdict)
        if not await asyncio.to_thread(wanted):
            raise NoLongerPlanned
        if await asyncio.to_thread(_move, clone, branch, found):
            return Merged(found.commit, doubts=verdict.doubts)


async def _to_be_solved(
    clone: CloneStore,
    work: TaskWork,
    mine: str,
    found: MergeConflict,
    tests: TreeTests,
    marked: str,
) -> MergeConflict:
    """Return the conflict with a tree on which a run can start: set-ups may read marked files."""
    if await tests.sets_up(marked, work.sandbox):
        return found
    text = UNFIT.format(names=", ".join(found.files[:MAX_FILES]))
    anew = await asyncio.to_thread(_evidence_to_redo, clone, work, mine, text)
    return replace(found, evidence=anew, tree=await asyncio.to_thread(clone.tree_of, found.head))


def _refused(
    clone: CloneStore, work: TaskWork, mine: str, merge: _Merge, verdict: MergeVerdict
) -> TestsRed:
    if not (verdict.stuck or verdict.asks or verdict.anew):
        return TestsRed(verdict.evidence[:MAX_EVIDENCE], merge.head, merge.tree, verdict.broken)
    asks = verdict.asks[:MAX_EVIDENCE]
    begins = "This" if asks else NO_START if verdict.stuck else NOTHING_RED
    evidence = _evidence_to_redo(clone, work, mine, verdict.evidence, begins)
    tree = clone.tree_of(merge.head)
    if asks:  # what a person decides about is green on either tree: no run could prove it
        unproven = tuple(proof.key for proof in verdict.broken)
        return TestsRed(evidence, merge.head, tree, asks=asks, unproven=unproven)
    return TestsRed(evidence, merge.head, tree, verdict.broken)


def _evidence_to_redo(
    clone: CloneStore, work: TaskWork, mine: str, why: str, begins: str = NO_START
) -> str:
    """Return evidence for a run that starts without the task's work: the diff of that work."""
    plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
    patch = clone.git.run("diff", *plain, work.parents[0], mine).decode("utf-8", "replace")
    text = f"{why[: MAX_EVIDENCE // 2]}\n{begins}{ANEW}\n"
    room = MAX_EVIDENCE - len(text)
    cut = "\nAnd more of the kind.\n" * (len(patch) > room)
    return f"{text}```diff\n{patch[:room].strip()}\n```\n{cut}"


def _candidate(work: TaskWork, mine: str, merge: _Merge) -> MergeCandidate:
    return MergeCandidate(
        merge.commit,
        merge.head,
        mine,
        work.task_id,
        removed=_removed(work.result),
        allowed=work.allowed,
        **work.found,
    )


def _commit(clone: CloneStore, work: TaskWork, author: Identity, at: str, template: str) -> str:
    message = commit_message(
        template,
        title=work.title,
        proof=work.result.proof,
        task_id=work.task_id,
        run_id=work.result.run_id or "",
    )
    return clone.commit(
        work.folder,
        work.result.changed_files if work.paths is None else work.paths,
        parents=work.parents,
        message=message,
        author=author,
        at=at,
        tree=clone.tree_of(work.commit),
    )


def _merge(
    clone: CloneStore, branch: str, work: TaskWork, mine: str, author: Identity, at: str
) -> Merged | MergeConflict | _Merge:
    """Return the merge of the work and the present head; nothing is moved."""
    head = clone.resolve(f"refs/heads/{branch}")
    if clone.contains(head, mine):
        return Merged(head)
    if unsolved := _unsolved(clone, work, mine):
        names = ", ".join(unsolved)
        text = f"Marks of the conflict are still in {names}. Bring both sides together."
        return MergeConflict(text, work.parents[0], clone.tree_of(mine), tuple(unsolved))
    merged = clone.merge(head, mine)
    if merged.conflicts:
        text = _described(clone, merged.tree, merged.conflicts)
        return MergeConflict(text, head, merged.tree, merged.conflicts)
    if merged.tree == clone.tree_of(head):
        return _Merge(head, head, merged.tree)
    if head == work.parents[0]:
        return _Merge(mine, head, merged.tree)
    message = f"Merge {work.task_id}: {harmless(work.title, TITLE_WIDTH)}\n"
    new = clone.commit_tree(
        merged.tree, parents=(head, mine), message=message, author=author, at=at
    )
    return _Merge(new, head, merged.tree)


def _move(clone: CloneStore, branch: str, merge: _Merge) -> bool:
    """Move the branch to the merge; return False where another task's work came first."""
    reach("landing_before_move")
    try:
        clone.branch(branch, merge.commit, before=merge.head)
    except GitFailed:
        if clone.branch_at(branch) == merge.head:
            raise
        return False
    reach("landing_after_move")
    return True


def _unsolved(clone: CloneStore, work: TaskWork, mine: str) -> list[str]:
    """Return files that the run started with conflict marks in and that still have them."""
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


def _described(clone: CloneStore, tree: str, conflicts: Iterable[str]) -> str:
    """Return the conflict in words and hunks, bounded."""
    names = list(conflicts)
    text = (
        f"Both this task and others, whose work is part of the plan by now, changed"
        f" {', '.join(names[:MAX_FILES])}. The files here hold both sides: between `<<<<<<<` and"
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


def _removed(result: Result) -> int:
    """Return how many tests fewer there are because the run, which is COMPLETE, removed some.

    Of tests without names; of others see `MergeCandidate.taken`.
    """
    test = result.test
    if test is None or None in (
        counts := (test.baseline_passed, test.baseline_failed, test.passed, test.failed)
    ):
        return 0
    passed_before, failed_before, passed, failed = (count or 0 for count in counts)
    return max(0, passed_before + failed_before - passed - failed)
