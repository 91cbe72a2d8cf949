"""The commit of a run that is COMPLETE: exactly what was proven, made once.

What is committed comes from the snapshot that the proof is about, never from the work tree as it
may be by now. It is recorded before any branch moves, so that a run which is killed in between
ends with that same commit.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrunner.config.spec import Landing, TaskSpec
from agentrunner.errors import UsageError
from agentrunner.errors.repositories import GitFailed
from agentrunner.execution.deps import Deps
from agentrunner.git.checkout import Checkout, CheckoutState
from agentrunner.git.identity import identity_of
from agentrunner.git.manual_changes import by_hand as by_hand
from agentrunner.git.private_clone import CloneStore
from agentrunner.git.snapshots import Snapshots
from agentrunner.git.worktree import WorktreePlace, worktree_place
from agentrunner.results import CommitMade
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.failpoints import reach
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import Record, RunLog
from agentrunner.text.terminal import one_line, sanitize
from agentrunner.text.unicode import clean

TITLE_WIDTH = 72
PROOF_WIDTH = 200
MAX_PROOF = 20
MAX_NAMED = 20


@dataclass(frozen=True)
class CommitTools:
    """What a commit is made with."""

    spec: TaskSpec
    folder: RunFolder
    log: RunLog
    snapshots: Snapshots
    environ: Mapping[str, str]
    redact: Callable[[str], str]

    @property
    def landing(self) -> Landing:
        """Where it goes; the task has one."""
        assert self.spec.landing is not None
        return self.spec.landing

    @property
    def place(self) -> WorktreePlace:
        """Where the private clone is."""
        state_dir = self.folder.root.parents[1]
        return worktree_place(state_dir, Path(self.landing.repo), self.folder.run_id)


def commit_of(log: RunLog) -> CommitMade | None:
    """The newest commit of a run that is on its branch; None for none."""
    landed = [record.data for record in log.records("commit") if record.data.get("landed")]
    return CommitMade(id=landed[-1]["id"], branch=landed[-1]["branch"]) if landed else None


def commit_work(state: TaskContext, deps: Deps) -> None:
    """Commit the work of a run that is COMPLETE, or say why not. Blocking.

    Raises InfraError where the machine is in the way; once more then ends it.
    """
    if deps.spec.landing is None:
        return
    bench = CommitTools(
        deps.spec, deps.folder, deps.log, deps.snapshots, deps.environ, deps.redactor.redact
    )
    try:
        made = land(state, bench, deps.clock.stamp())
    except UsageError as error:
        message = " ".join(filter(None, (error.message, error.remedy and f"Try: {error.remedy}")))
        deps.warn(state, error.code, message)
        return
    if made is None:
        deps.warn(state, "nothing-to-commit", "No file was changed, so nothing was committed.")
    else:
        deps.emit("committed", id=made["id"], branch=made["branch"], files=made["files"])


def land(state: TaskContext, bench: CommitTools, at: str) -> dict[str, Any] | None:
    """Make the commit of an attempt and put it on its branch; None where nothing was changed.

    Once more for the same attempt finds what was made and changes nothing. `at` is now, UTC,
    ISO 8601. Raises UsageError where the branch is not to be had, and GitFailed. Blocking.
    """
    clone = CloneStore(bench.place.clone, Path(bench.landing.repo))
    clone.fetch()
    attempt = state["run"].attempt
    records = bench.log.records("commit")
    mine = next((one for one in records if one.attempt == attempt), None)
    earlier = [one for one in records if one.attempt < attempt and one.data.get("landed")]
    before = str(earlier[-1].data["id"]) if earlier else bench.landing.base
    if mine is None or not _is_there(clone, str(mine.data["id"])):
        parent = bench.landing.base if bench.landing.outside else before
        data = _made(state, bench, clone, parent, at)
        if data is None:
            return None
        mine = _record(bench.log, state, data, at)
        reach("commit_made")
    if not mine.data["landed"]:
        _publish(bench, clone, mine.data, before)
        reach("commit_published")
        mine = _record(bench.log, state, {**mine.data, "landed": True}, at)
    return dict(mine.data)


def _is_there(clone: CloneStore, commit: str) -> bool:
    try:
        clone.resolve(commit)
    except GitFailed:
        return False
    return True


def _record(log: RunLog, state: TaskContext, data: Mapping[str, Any], at: str) -> Record:
    attempt, loop = state["run"].attempt, state["counters"].loops
    log.append("commit", "commit", data, attempt=attempt, loop=loop, at=at)
    return Record("commit", "commit", attempt, loop, at, dict(data))


def _publish(bench: CommitTools, clone: CloneStore, data: Mapping[str, Any], before: str) -> None:
    landing, made = bench.landing, str(data["id"])
    if landing.outside:
        replaces = before if before != landing.base else None
        clone.publish(made, landing.branch, replaces=replaces)
        return
    paths = clone.changed(before, made)
    Checkout(clone).step(made, CheckoutState(landing.branch, before), paths)


def _made(
    state: TaskContext, bench: CommitTools, clone: CloneStore, parent: str, at: str
) -> dict[str, Any] | None:
    """The commit as the record of it; None where it would change nothing."""
    tree, paths = _proven(state, bench)
    named = {clean(path) for path in paths}
    unlanded = [path for path in bench.landing.carried if path not in named]
    copy = bench.place.root / "commit"
    shutil.rmtree(copy, ignore_errors=True)
    try:
        bench.snapshots.export_files(tree, paths, copy)
        made = clone.commit(
            copy,
            paths,
            parents=(parent,),
            message=bench.redact(_message(state, bench, unlanded)),
            author=identity_of(clone, bench.environ),
            at=at,
        )
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    changed = clone.changed(parent, made)
    if not changed:
        return None
    return {
        "id": made,
        "branch": bench.landing.branch,
        "files": [clean(path) for path in changed],
        "uncommitted": unlanded,
        "landed": False,
    }


def _proven(state: TaskContext, bench: CommitTools) -> tuple[str, list[str]]:
    """The tree that the verdict is about, and what in it is the run's.

    In the checkout, files that only a person changed while it waited are not.
    """
    baseline, evidence = state.get("baseline"), state.get("evidence")
    assert baseline is not None
    tree = evidence.tree if evidence else state.get("tree") or baseline.tree
    changes = bench.snapshots.changes(baseline.origin or baseline.tree, tree)
    theirs = set() if bench.landing.outside else by_hand(bench.snapshots, bench.log)
    return tree, [change.path for change in changes if change.path not in theirs]


def _message(state: TaskContext, bench: CommitTools, unlanded: Sequence[str]) -> str:
    """What the commit says: the title, what was executed, and which run it was."""
    evidence = state.get("evidence")
    proof = evidence.proof[:MAX_PROOF] if evidence else []
    title = one_line(bench.spec.title, TITLE_WIDTH) or bench.spec.task_id
    parts = [title, "\n".join(f"- {one_line(line, PROOF_WIDTH)}" for line in proof)]
    if unlanded:
        more = len(unlanded) - MAX_NAMED + bench.landing.carried_more
        names = ", ".join(one_line(name, PROOF_WIDTH) for name in unlanded[:MAX_NAMED])
        rest = f" and {more} more" if more > 0 else ""
        parts.append(f"Proven together with files that are not committed: {names}{rest}")
    parts.append(f"Run: {bench.folder.run_id}")
    return sanitize("\n\n".join(filter(None, parts))) + "\n"
