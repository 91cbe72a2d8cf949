"""Changes that no worker made: recorded, and never attributed to a worker."""

from __future__ import annotations

from agentrunner.execution.deps import Deps
from agentrunner.state.run_state import TaskContext
from agentrunner.verification.trees import changes_between


def note_foreign_edits(state: TaskContext, deps: Deps, tree: str) -> list[str]:
    """Return the paths that changed since the latest known tree, and record them. Blocks.

    Where the run had ended, a finding of its evidence says so.
    """
    known = state.get("tree")
    if not known or known == tree:
        return []
    changes = changes_between(deps.snapshots, known, tree)
    if changes.all:
        shown = ", ".join(changes.all[:5]) + (" …" if len(changes.all) > 5 else "")
        ended = bool(state["run"].accepting)
        if not ended:
            deps.warn(state, "edited", f"edited while running, not by the worker: {shown}")
        data = {
            "paths": changes.all[:500],
            "tree_before": known,
            "tree_after": tree,
            "ended": ended,
        }
        deps.record(state, "human_edit", f"{known[:12]}-{tree[:12]}", data)
    return changes.all
