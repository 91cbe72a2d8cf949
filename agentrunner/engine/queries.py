"""Showing runs and undoing their work, without driving them."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from agentrunner import __version__
from agentrunner.engine.unrecorded import unrecorded_run
from agentrunner.errors import AgentRunnerError
from agentrunner.errors.runs import NothingToShow, UnknownRound
from agentrunner.state.lifecycle import TERMINAL, state_word
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.locks import is_driven, me, repository_lock, run_lock
from agentrunner.storage.run_folder import RunFolder, load_spec, runs_root, write_private
from agentrunner.storage.run_log import Record, RunLog
from agentrunner.storage.worker_ledger import read_json
from agentrunner.text.times import stamp

if TYPE_CHECKING:
    from agentrunner.git.snapshots import Change, Snapshots
    from agentrunner.results import Result, Undone
    from agentrunner.state.run_state import TaskContext


@dataclass(frozen=True)
class ListedRun(RunRow):
    """The row of a run, whether a process drives it now, and when it last did anything."""

    running: bool = False
    latest_at: str = ""
    """Of its latest event, UTC, ISO 8601; "" where it has none."""

    @property
    def stands(self) -> str:
        """Return the state in the word of all lists and screens."""
        return state_word(asdict(self))


FILE = "remembered.json"
Read = TypeVar("Read")


class ChangedFile(TypedDict):
    """A file that a run changed, with its line counts; None for those of a binary file."""

    path: str
    kind: str
    added: int | None
    removed: int | None


def show(state_dir: Path, run_id: str) -> Result:
    """Return the present result of a run; raise CheckpointCorrupt, UsageError."""
    from agentrunner.results import Result

    return Result.model_validate(show_values(state_dir, run_id))


def show_values(state_dir: Path, run_id: str) -> dict[str, object]:
    """Return the same as plain JSON values: for an ended run that takes half the time."""
    folder = RunFolder.open(state_dir, run_id)

    def read() -> dict[str, object]:
        from agentrunner.engine import attempts
        from agentrunner.engine.indexing import note_end

        if attempts.unsaved(folder):
            return _never_started(folder)
        state, question = attempts.read_sync(folder)
        note_end(folder, RunIndex(state_dir), state)
        return attempts.result_of(folder, load_spec(folder), state, question).as_dict()

    row = read_json(folder.index_file) or {}
    ended = row.get("finished_at")
    # A run that is driven is read anew: its files are changing.
    quiet = ended or not run_lock(folder).taken()
    name = "result" if ended else "standing"
    values = remembered(folder, name, read) if quiet else read()
    if quiet and (why := row.get("start_error")):
        return {**values, "reason": "not_started", "text": why}
    if quiet and not ended and (why := row.get("stop_error")):
        values = {**values, "reason": "interrupted", "text": why}
    if ended:
        return {**values, "undone": True} if row.get("undone") else values
    if not quiet:  # the saved state has a wait until the step after it is saved, lists do not
        values = {**values, "waiting_until": row.get("waiting_until")}
    return _with_unrecorded(folder, values)


def _with_unrecorded(folder: RunFolder, values: dict[str, object]) -> dict[str, object]:
    """Count a worker run that no saved state has yet, and name what it changed once it is over."""
    found = unrecorded_run(folder)
    if found is None:
        return values
    more: dict[str, object] = {
        name: int(str(values.get(name) or 0)) + further
        for name, further in (("worker_runs", 1), ("rounds", found.begins_round))
    }
    if not found.at_work:
        changes = _snapshots(folder).changes(*_ends(folder))
        more["changed_files"] = [one.path for one in changes]
        more["deleted_files"] = [one.path for one in changes if one.kind == "deleted"]
        more["lines_added"] = sum(one.added or 0 for one in changes)
        more["lines_removed"] = sum(one.removed or 0 for one in changes)
    return {**values, **more}


def has_worker(state_dir: Path, run_id: str) -> bool:
    """Whether a worker of a run that nobody drives is still at work: its supervisor outlives us."""
    with contextlib.suppress(OSError):
        found = unrecorded_run(RunFolder.open(state_dir, run_id))
        return found is not None and found.at_work
    return False


NEVER_STARTED = "It was stopped before its first step: nothing ran, and nothing was changed."


def _never_started(folder: RunFolder) -> dict[str, object]:
    """Return the result of a run that was stopped before its first saved state, or begins now."""
    from agentrunner.engine import attempts
    from agentrunner.execution.deps import Clock

    spec = load_spec(folder)
    result = attempts.result_of(folder, spec, attempts.begun(folder, spec, Clock()))
    driven = run_lock(folder).taken()
    return result.model_copy(update={"text": None if driven else NEVER_STARTED}).as_dict()


def remember(state_dir: Path, run_id: str) -> None:
    """Cache what `show` and `diff` need of a run that was just driven, so that they are quick.

    Where that fails, they say so when they are asked: the run has come to what it came to.
    """
    with contextlib.suppress(AgentRunnerError, OSError, sqlite3.Error):
        show_values(state_dir, run_id)
        folder = RunFolder.open(state_dir, run_id)
        _ends(folder)
        _snapshots(folder)


def diff(
    state_dir: Path,
    run_id: str,
    round: int | None = None,  # noqa: A002  (what people call it)
    stat: bool = False,
) -> str:
    """Return what the run changed so far, or what its n-th worker run did, as a unified diff.

    Files that only a person changed while the run waited are left out.
    """
    folder = RunFolder.open(state_dir, run_id)
    snapshots = _snapshots(folder)
    before, after = _compared(folder, snapshots, round)
    if not stat:
        return snapshots.patch(before, after)
    lines = [
        f"{change.kind:<9} +{change.added or 0} -{change.removed or 0}  {change.path}"
        for change in snapshots.changes(before, after)
    ]
    return "\n".join([*lines, snapshots.stat_line(before, after)]) + "\n"


def changes(state_dir: Path, run_id: str, round: int | None = None) -> list[ChangedFile]:  # noqa: A002
    """Return each changed file of `diff` with its line counts."""
    folder = RunFolder.open(state_dir, run_id)
    snapshots = _snapshots(folder)
    return [
        {"path": c.path, "kind": c.kind, "added": c.added, "removed": c.removed}
        for c in snapshots.changes(*_compared(folder, snapshots, round))
    ]


def changes_not_seen(folder: RunFolder, state: TaskContext) -> list[Change]:
    """Return what a run changed where its latest worker run was not verified; [] where it was."""
    baseline, tree, evidence = state.get("baseline"), state.get("tree"), state.get("evidence")
    if baseline is None or not tree or (evidence.tree if evidence else baseline.tree) == tree:
        return []
    return list(_snapshots(folder).changes(baseline.origin or baseline.tree, tree))


def _compared(folder: RunFolder, snapshots: Snapshots, number: int | None) -> tuple[str, str]:
    """Return the trees before and after the run, or its n-th worker run."""
    if number is not None:
        run = _worker_run(folder, number)
        return run.data["tree_before"], run.data["tree_after"]
    from agentrunner.git.user_repository import by_hand

    before, after = _ends(folder)
    if by_person := by_hand(snapshots, RunLog(folder.log_file)):
        entries = snapshots.list(before)
        after = snapshots.combine(after, {path: entries.get(path) for path in by_person})
    return before, after


def undo(state_dir: Path, run_id: str, force: bool = False) -> Undone:
    """Put the files back as they were before the run; a second call takes that back.

    Files that only a person changed while the run waited stay as they are, and files that were
    edited since are refused by name, unless `force`. Raises Busy while another run works in the
    repository, and InfraError where the run's own work tree is gone.
    """
    folder = RunFolder.open(state_dir, run_id)
    from agentrunner.engine.commits import load_task_of
    from agentrunner.git.snapshot_writer import changed_since
    from agentrunner.git.user_repository import by_hand
    from agentrunner.results import Undone
    from agentrunner.verification.rooms.sealed import Sealed

    spec = load_task_of(folder)
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    lock = repository_lock(state_dir, Path(spec.repo), "")
    lock.acquire(me(run_id, now))
    with contextlib.closing(lock):
        snapshots = _snapshots(folder)
        log = RunLog(folder.log_file)
        undone = [record for record in log.records("undo") if not record.data.get("redone")]
        before, after = _ends(folder)
        if undone and snapshots.take().tree == undone[-1].data["tree_after"]:
            source, target = str(undone[-1].data["tree_after"]), str(undone[-1].data["tree_before"])
            redoing = True
        else:
            source, target, redoing = after, before, False
            if by_person := set() if force else by_hand(snapshots, log):
                entries = snapshots.list(after)
                target = snapshots.combine(target, {path: entries.get(path) for path in by_person})
        present = snapshots.take().tree
        restored = snapshots.restore(source, target, force=force)
        if restored.files and not restored.refused:
            log.append(
                "undo",
                str(len(log.records("undo")) + 1),
                {"tree_before": present, "tree_after": snapshots.take().tree, "redone": redoing},
                attempt=0,
                loop=0,
                at=now,
            )
            index = RunIndex(state_dir)
            for row in index.runs():
                if row.run_id == run_id:
                    index.record(replace(row, undone=not redoing))
        seen = {} if redoing else Sealed(folder.root / "sealed", Path(spec.repo)).files_seen()
        lost = changed_since(snapshots.work_tree, seen or {})
        return Undone(
            files=list(restored.files),
            refused=list(restored.refused),
            not_kept=sorted({*restored.unkept, *lost}),
            undo_taken_back=redoing,
        )


def _snapshots(folder: RunFolder) -> Snapshots:
    from agentrunner.git.snapshots import Snapshots  # `show` does without

    def read() -> dict[str, Any]:
        spec = load_spec(folder)
        limit = spec.runner.sandbox.kept_bytes
        return {"repo": spec.repo, "notes": spec.runner.note.dir, "keep_up_to": limit}

    known = remembered(folder, "places", read)
    return Snapshots(
        folder.snapshots_dir,
        Path(known["repo"]),
        known["notes"],
        keep_up_to=known["keep_up_to"],
    )


def _worker_run(folder: RunFolder, number: int) -> Record:
    runs = [r for r in RunLog(folder.log_file).history().worker_runs if r.data.get("tree_after")]
    if not 1 <= number <= len(runs):
        raise UnknownRound.of(folder.run_id, len(runs), number)
    return runs[number - 1]


def _ends(folder: RunFolder) -> tuple[str, str]:
    """Return the tree before the run and the latest one that is known, also of a worker that ended
    after its driver was killed; if its supervisor was killed too, the files as they are."""

    def read() -> dict[str, str]:
        from agentrunner.engine import attempts

        if attempts.unsaved(folder):
            return {}
        state: TaskContext = attempts.read_sync(folder)[0]
        baseline = state.get("baseline")
        if baseline is None:
            return {}
        before = baseline.origin or baseline.tree
        return {"before": before, "after": state.get("tree") or baseline.tree}

    ends = remembered(folder, "ends", read)
    if not ends:
        raise NothingToShow(
            f"{folder.run_id} has not looked at the repository yet; nothing was changed.",
            remedy=f"agentrunner resume {folder.run_id}",
        )
    found = unrecorded_run(folder)
    if found and found.lost:
        return ends["before"], _snapshots(folder).take().tree
    return ends["before"], (found.tree if found else "") or ends["after"]


def remembered(
    folder: RunFolder, name: str, read: Callable[[], dict[str, Read]]
) -> dict[str, Read]:
    """Return what `read` gives, cached under `name` for as long as the run is unchanged.

    Loading LangGraph to show an ended run takes longer than everything else about it.
    """
    path = folder.root / FILE
    saved = read_json(path) or {}
    known: dict[str, dict[str, Read]] = saved["found"] if saved.get("key") == _key(folder) else {}
    if name in known:
        return known[name]
    value = read()
    # The key anew: reading alone changes the times of the file of saved states.
    text = json.dumps({"key": _key(folder), "found": {**known, name: value}})
    # The folder may be read-only, and a lone surrogate is not worth a crash here.
    with contextlib.suppress(OSError, ValueError):
        write_private(path, text.encode(), sync=False)
    return value


def _key(folder: RunFolder) -> list[Any]:
    """Return a key that changes with every file that a result is made of."""
    key: list[Any] = [__version__]
    paths = [folder.checkpoints, folder.log_file, folder.root / "note-path", folder.spec_file]
    paths.append(folder.checkpoints.with_name(folder.checkpoints.name + "-wal"))
    for path in paths:
        try:
            facts = path.stat()
        except FileNotFoundError:
            key.append(None)
        else:
            times = (facts.st_mtime_ns, facts.st_ctime_ns)
            key.append([os.fspath(path), facts.st_size, facts.st_ino, *times])
    return key


def listed_runs(state_dir: Path, repo: Path | None = None) -> list[ListedRun]:
    """Return the runs of a repository, or of all, the newest first. Blocks.

    The end of a run that was killed before it recorded that itself is recorded. One whose files
    cannot be read is listed as it was last known: whoever names it is told why.
    """
    index = RunIndex(state_dir)
    for row in index.runs(repo):
        with contextlib.suppress(Exception):
            _record_end(index, row)
    return [
        ListedRun(
            **asdict(row),
            running=not row.finished_at and _is_running(state_dir, row),
            latest_at=_latest(RunFolder(runs_root(state_dir) / row.run_id)),
        )
        for row in index.runs(repo)
    ]


def _latest(folder: RunFolder) -> str:
    """Return when the run's latest event was written."""
    with contextlib.suppress(OSError):
        return stamp(datetime.fromtimestamp(folder.events_file.stat().st_mtime, UTC))
    return ""


def _is_running(state_dir: Path, row: RunRow) -> bool:
    with contextlib.suppress(OSError):
        return is_driven(state_dir, row.run_id)
    return False


def _record_end(index: RunIndex, row: RunRow) -> None:
    """Record the end of a run that was killed before it did so itself."""
    if row.finished_at or row.waiting or is_driven(index.state_dir, row.run_id):
        return
    moves = RunLog(RunFolder.open(index.state_dir, row.run_id).log_file).records("state")
    if moves and moves[-1].data["to"] in TERMINAL:
        from agentrunner.engine import queries

        queries.show_values(index.state_dir, row.run_id)
