"""What a person changed while a run waited or was stopped."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.git.snapshots import Snapshots
from agentrunner.storage.run_log import Record, RunLog


def by_hand(snapshots: Snapshots, log: RunLog) -> set[str]:
    """Return the paths that a person, and no worker, changed between the steps of a run."""

    def changed(records: Sequence[Record]) -> set[str]:
        trees = [(r.data.get("tree_before"), r.data.get("tree_after")) for r in records]
        return {
            change.path
            for before, after in trees
            if before and after and before != after
            for change in snapshots.changes(str(before), str(after))
        }

    history = log.history()
    return changed(history.human_edits) - changed(history.worker_runs)
