"""The runs of a repository as lists show them."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from agentrunner.state.lifecycle import TERMINAL, state_word
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.locks import is_driven
from agentrunner.storage.run_folder import RunFolder, runs_root
from agentrunner.storage.run_log import RunLog
from agentrunner.text.times import stamp


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
