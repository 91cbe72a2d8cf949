"""A worker run that no saved state counts yet: who drove the run was killed while it was at work.

Its supervisor outlives that, lets the worker end and takes a snapshot; `resume` takes it over.
"""

from __future__ import annotations

from msgspec import Struct

from agentrunner.execution.tries import ordered_as
from agentrunner.storage.locks import FileLock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from agentrunner.storage.worker_ledger import read_json


class UnrecordedRun(Struct, frozen=True):
    """What is known of such a worker run."""

    at_work: bool
    tree: str
    """The snapshot that was taken after it; "" while it is at work, and where none was taken."""
    begins_round: bool
    """Whether no try of its order is recorded."""

    @property
    def lost(self) -> bool:
        """Whether it was killed with its supervisor: nothing tells how it left the files."""
        return not self.at_work and not self.tree


def unrecorded_run(folder: RunFolder) -> UnrecordedRun | None:
    """Return the worker run that was started and is not in the run log; None for none.

    Raises OSError.
    """
    started = [place.parent for place in folder.workers_dir.glob("*/started.json")]
    if not started:
        return None
    recorded = {record.key for record in RunLog(folder.log_file).records("worker_run")}
    for place in started:
        if place.name in recorded:
            continue
        begins = ordered_as(place.name) not in {ordered_as(one) for one in recorded}
        if FileLock(place / "lock").taken():
            return UnrecordedRun(at_work=True, tree="", begins_round=begins)
        after = (read_json(place / "result.json") or {}).get("after")
        tree = str(after.get("tree", "")) if isinstance(after, dict) else ""
        return UnrecordedRun(at_work=False, tree=tree, begins_round=begins)
    return None


def has_worked(folder: RunFolder) -> bool:
    """Whether a worker has begun in the run, also one whose end is in no log. Raises OSError."""
    ended = RunLog(folder.log_file).history().worker_runs
    return bool(ended) or unrecorded_run(folder) is not None


def has_spent(folder: RunFolder) -> bool:
    """Whether the run has asked a model or started a worker. Raises OSError."""
    return bool(RunLog(folder.log_file).history().meta_calls) or has_worked(folder)
