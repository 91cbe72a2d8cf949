"""Removing runs: those past their retention, and those that never began."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from agentrunner.engine.unrecorded import has_spent
from agentrunner.errors import CheckpointCorrupt, UsageError
from agentrunner.git.scratch import sweep
from agentrunner.git.worktree import orphans, places_of, remove_places
from agentrunner.sandboxes.gitdirs import remove_mask
from agentrunner.state.lifecycle import TERMINAL, TaskState
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.locks import run_lock
from agentrunner.storage.plan_folder import is_workspace
from agentrunner.storage.run_folder import RunFolder, load_spec, runs_root, verify_root
from agentrunner.storage.run_log import RunLog
from agentrunner.storage.state_size import KeptRun, disk_bytes, too_many

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec


class Collected(TypedDict):
    """Runs by their ids."""

    removed: list[str]
    kept: list[str]


def collect_garbage(
    state_dir: Path,
    now: datetime,
    older_than_days: float | None = None,
    max_bytes: int | None = None,
    *,
    dry: bool = False,
) -> Collected:
    """Remove ended runs that are past their retention; runs that wait or go on are kept. One that
    did not start has ended, too.

    Runs whose work is not part of their plan yet are kept, too. Runs of Studio are included. Around
    kept runs, the remains of killed processes are removed: sockets without a listener, the empty
    `.git` that a sandbox was mounted on, and what a verification wrote. Work trees outside of
    checkouts are removed with their runs, and so are notes in repositories that are still as the
    run has written them. If the state folder then takes more than `max_bytes`, further ended runs
    go, the oldest first. With `dry` nothing is removed.
    """
    removed: list[str] = []
    kept: list[str] = []
    ready: dict[str, tuple[Path, KeptRun]] = {}
    spared = 0
    for root, row in _all_runs(state_dir):
        try:
            folder = RunFolder.open(root, row.run_id)
        except UsageError:
            continue
        days = older_than_days
        if days is None:
            try:
                days = load_spec(folder).runner.retention_days
            except CheckpointCorrupt:  # how long it is wanted for, nobody can tell
                kept.append(row.run_id)
                continue
        over = row.finished_at or (row.start_error and row.started_at)
        ended = over and datetime.fromisoformat(over)
        driven = run_lock(folder).taken()
        if not driven and not dry:
            remove_dead_sockets(folder.sock_dir)
            with contextlib.suppress(OSError, CheckpointCorrupt):  # or a folder of another user
                remove_mask(Path(load_spec(folder).repo))
        young = not ended or now - ended < timedelta(days=days)
        in_use = not ended or driven or _awaits_merge(state_dir, folder)
        if young or in_use:
            kept.append(row.run_id)
            if ended and not in_use:
                places = (folder.root, *places_of(root, row.run_id))
                at = ended.astimezone(UTC).isoformat()
                ready[row.run_id] = (root, KeptRun(row.run_id, at, places))
            continue
        removed.append(row.run_id)
        if dry:
            spared += disk_bytes([folder.root, *places_of(root, row.run_id)])
            continue
        _remove(root, folder)
    if not dry:
        sweep(verify_root(state_dir))
        for place in orphans(state_dir):
            place.remove()
    if max_bytes is not None:
        for run in too_many(state_dir, [one for _, one in ready.values()], max_bytes + spared):
            root = ready[run.run_id][0]
            if not dry:
                _remove(root, RunFolder.open(root, run.run_id))
            kept.remove(run.run_id)
            removed.append(run.run_id)
    return {"removed": removed, "kept": kept}


def forget(state_dir: Path, run_id: str) -> None:
    """Remove a run that has asked no model and started no worker; any other stays as it is.

    Raises UsageError for an unknown run, and OSError.
    """
    folder = RunFolder.open(state_dir, run_id)
    if not run_lock(folder).taken() and not has_spent(folder):
        _remove(state_dir, folder)


def _remove(root: Path, folder: RunFolder) -> None:
    """Remove a run's folder, its work tree, and its note where nobody has edited that."""
    from agentrunner.notes.writer import remove_note

    with contextlib.suppress(OSError, CheckpointCorrupt):
        spec = load_spec(folder)
        text = folder.note_file.read_bytes()
        remove_note(Path(spec.shown_repo), spec.runner.note.dir, spec.task_id, folder.run_id, text)
    folder.remove()
    remove_places(root, folder.run_id)


def _awaits_merge(state_dir: Path, folder: RunFolder) -> bool:
    """Whether the run is of a plan's task that still has its work tree."""
    with contextlib.suppress(CheckpointCorrupt):
        return is_workspace(state_dir, Path(load_spec(folder).repo))
    return False


def _all_runs(state_dir: Path) -> Iterator[tuple[Path, RunRow]]:
    """Yield each run with the folder that it is kept in."""
    for row in RunIndex(state_dir).runs():
        yield state_dir, row
    studio = state_dir / "studio"
    for place in sorted(runs_root(studio).glob("*/spec.json")):
        folder = RunFolder(place.parent)
        with contextlib.suppress(CheckpointCorrupt):
            yield studio, _studio_row(folder, load_spec(folder))


def _studio_row(folder: RunFolder, spec: TaskSpec) -> RunRow:
    """Return the row that the index would have; runs of Studio are not in the index."""
    moves = RunLog(folder.log_file).records("state")
    state = moves[-1].data["to"] if moves else str(TaskState.PENDING)
    ended = moves[-1].at if state in TERMINAL else None
    return RunRow(
        folder.run_id, spec.task_id, spec.title, spec.shown_repo, state, finished_at=ended
    )


def remove_dead_sockets(folder: Path) -> list[str]:
    """Remove the sockets in a folder that nothing listens on, and return their names.

    Call it only while no process drives the run: a socket that is about to listen looks dead, too.
    """
    removed = []
    with contextlib.suppress(OSError):
        # Through the descriptor, because a socket's path may have at most 107 bytes.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in sorted(os.listdir(descriptor)):  # noqa: PTH208 - the descriptor's
                mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
                if stat.S_ISSOCK(mode) and _refuses(f"/proc/self/fd/{descriptor}/{name}"):
                    os.unlink(name, dir_fd=descriptor)
                    removed.append(name)
        finally:
            os.close(descriptor)
    return removed


def _refuses(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
