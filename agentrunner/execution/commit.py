"""The commit of a run that is COMPLETE: exactly what was proven, made once.

What is committed comes from the snapshot that the proof is about, never from the work tree, which
may have changed since. It is recorded before any branch moves, so that a run which is killed in
between ends with that same commit.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentrunner.config.spec import Landing, TaskSpec
from agentrunner.errors import UsageError
from agentrunner.errors.repositories import GitFailed
from agentrunner.execution.deps import Deps
from agentrunner.git.checkout import Checkout, CheckoutState
from agentrunner.git.identity import identity_of
from agentrunner.git.private_clone import CloneStore
from agentrunner.git.snapshots import Snapshots
from agentrunner.git.user_repository import by_hand as by_hand
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


class CommitTools(Struct, frozen=True):
    """What a commit is made with."""

    spec: TaskSpec
    folder: RunFolder
    log: RunLog
    snapshots: Snapshots
    environ: Mapping[str, str]
    redact: Callable[[str], str]

    @property
    def landing(self) -> Landing:
        """Return where the commit goes; the task must have that set."""
        assert self.spec.landing is not None
        return self.spec.landing

    @property
    def place(self) -> WorktreePlace:
        """Return where the private clone is."""
        state_dir = self.folder.root.parents[1]
        return worktree_place(state_dir, Path(self.landing.repo), self.folder.run_id)


def commit_of(log: RunLog) -> CommitMade | None:
    """Return the newest commit of a run that is on its branch; None for none."""
    on_branch = [record.data for record in log.records("commit") if record.data.get("landed")]
    return CommitMade(id=on_branch[-1]["id"], branch=on_branch[-1]["branch"]) if on_branch else None


def commit_work(state: TaskContext, deps: Deps) -> None:
    """Commit the work of a run that is COMPLETE, or warn why not. Blocks.

    Raises InfraError where the machine prevents it; running the step again then finishes it.
    """
    if deps.spec.landing is None:
        return
    tools = CommitTools(
        deps.spec, deps.folder, deps.log, deps.snapshots, deps.environ, deps.redactor.redact
    )
    try:
        made = commit_attempt(state, tools, deps.clock.stamp())
    except UsageError as error:
        deps.warn(state, error.code, error.in_one_text)
        return
    if made is None:
        deps.warn(state, "nothing-to-commit", "No file was changed, so nothing was committed.")
    else:
        deps.emit("committed", id=made["id"], branch=made["branch"], files=made["files"])


def commit_attempt(state: TaskContext, tools: CommitTools, at: str) -> dict[str, object] | None:
    """Make the commit of an attempt and put it on its branch; return None where nothing was
    changed.

    A second call for the same attempt finds the commit and changes nothing. `at` is now, UTC, ISO
    8601. Raises UsageError where the branch is unavailable, and GitFailed. Blocks.
    """
    clone = CloneStore(tools.place.clone, Path(tools.landing.repo))
    clone.fetch()
    attempt = state["run"].attempt
    records = tools.log.records("commit")
    recorded = next((record for record in records if record.attempt == attempt), None)
    earlier = [r for r in records if r.attempt < attempt and r.data.get("landed")]
    before = str(earlier[-1].data["id"]) if earlier else tools.landing.base
    if recorded is None or not _exists(clone, str(recorded.data["id"])):
        parent = tools.landing.base if tools.landing.outside else before
        data = _made(state, tools, clone, parent, at)
        if data is None:
            return None
        recorded = _record(tools.log, state, data, at)
        reach("commit_made")
    if not recorded.data["landed"]:
        _publish(tools, clone, recorded.data, before)
        reach("commit_published")
        recorded = _record(tools.log, state, {**recorded.data, "landed": True}, at)
    return dict(recorded.data)


def _exists(clone: CloneStore, commit: str) -> bool:
    try:
        clone.resolve(commit)
    except GitFailed:
        return False
    return True


def _record(log: RunLog, state: TaskContext, data: Mapping[str, Any], at: str) -> Record:
    attempt, loop = state["run"].attempt, state["counters"].loops
    log.append("commit", "commit", data, attempt=attempt, loop=loop, at=at)
    return Record("commit", "commit", attempt, loop, at, dict(data))


def _publish(tools: CommitTools, clone: CloneStore, data: Mapping[str, Any], before: str) -> None:
    landing, made = tools.landing, str(data["id"])
    if landing.outside:
        replaces = before if before != landing.base else None
        clone.publish(made, landing.branch, replaces=replaces)
        return
    paths = clone.changed(before, made)
    Checkout(clone).step(made, CheckoutState(landing.branch, before), paths)


def _made(
    state: TaskContext, tools: CommitTools, clone: CloneStore, parent: str, at: str
) -> dict[str, object] | None:
    """Make the commit and return its record; None where it would change nothing."""
    tree, paths = _proven(state, tools)
    named = {clean(path) for path in paths}
    unlanded = [path for path in tools.landing.carried if path not in named]
    copy = tools.place.root / "commit"
    shutil.rmtree(copy, ignore_errors=True)
    try:
        tools.snapshots.export_files(tree, paths, copy)
        made = clone.commit(
            copy,
            paths,
            parents=(parent,),
            message=tools.redact(_message(state, tools, unlanded)),
            author=identity_of(clone, tools.environ),
            at=at,
        )
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    changed = clone.changed(parent, made)
    if not changed:
        return None
    return {
        "id": made,
        "branch": tools.landing.branch,
        "files": [clean(path) for path in changed],
        "uncommitted": unlanded,
        "landed": False,
    }


def _proven(state: TaskContext, tools: CommitTools) -> tuple[str, list[str]]:
    """Return the tree that the verdict is about, and the paths in it that the run changed.

    In the checkout, files that only a person changed while the run waited are left out.
    """
    baseline, evidence = state.get("baseline"), state.get("evidence")
    assert baseline is not None
    tree = evidence.tree if evidence else state.get("tree") or baseline.tree
    changes = tools.snapshots.changes(baseline.origin or baseline.tree, tree)
    by_person = set() if tools.landing.outside else by_hand(tools.snapshots, tools.log)
    return tree, [change.path for change in changes if change.path not in by_person]


def _message(state: TaskContext, tools: CommitTools, unlanded: Sequence[str]) -> str:
    """Return the commit message: the title, what was executed as proof, and the run's id."""
    evidence = state.get("evidence")
    proof = evidence.proof[:MAX_PROOF] if evidence else []
    title = one_line(tools.spec.title, TITLE_WIDTH) or tools.spec.task_id
    parts = [title, "\n".join(f"- {one_line(line, PROOF_WIDTH)}" for line in proof)]
    if unlanded:
        more = len(unlanded) - MAX_NAMED + tools.landing.carried_more
        names = ", ".join(one_line(name, PROOF_WIDTH) for name in unlanded[:MAX_NAMED])
        rest = f" and {more} more" if more > 0 else ""
        parts.append(f"Proven together with files that are not committed: {names}{rest}")
    parts.append(f"Run: {tools.folder.run_id}")
    return sanitize("\n\n".join(filter(None, parts))) + "\n"
