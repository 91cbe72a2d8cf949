"""A person accepts a tree in which nothing changed: refused, unless they say that it is meant."""

from __future__ import annotations

from agentrunner.execution.deps import Deps
from agentrunner.state.run_state import TaskContext


def why_not_acceptable(state: TaskContext, deps: Deps) -> str:
    """Return a sentence where the tree is the one from before the run; "" where it can be accepted.

    It says what to do: how to get the work back, or how to state that nothing had to change.
    Blocks.
    """
    evidence, baseline = state.get("evidence"), state.get("baseline")
    accepting = [
        acceptance
        for acceptance in state.get("acceptances", [])
        if evidence and acceptance.tree == evidence.tree
    ]
    if evidence is None or baseline is None or not accepting:
        return ""
    if any(acceptance.unchanged for acceptance in accepting):
        return ""
    changes = deps.snapshots.changes(baseline.origin or baseline.tree, evidence.tree)
    if {change.path for change in changes} - set(baseline.test_writes):
        return ""
    run = state["run"].run_id
    unchanged = f'agentrunner accept {run} --unchanged --reason "…"'
    undone = [record for record in deps.log.records("undo") if not record.data.get("redone")]
    rounds = [r for r in deps.log.history().worker_runs if r.data.get("tree_after")]
    worked = [
        number
        for number, record in enumerate(rounds, start=1)
        if record.data["tree_before"] != record.data["tree_after"]
    ]
    if not worked:
        return f"The run changed nothing; where nothing had to change, say so: {unchanged}"
    if undone and undone[-1].data["tree_after"] in (evidence.tree, evidence.tree_after):
        back = f"agentrunner undo {run}"
    else:
        back = "; ".join(f"agentrunner diff {run} --round {n} | git apply" for n in worked[-3:])
    return (
        "The run's work is no longer there: the files are as they were before it. "
        f"It comes back with: {back}. Where nothing had to change: {unchanged}"
    )
