"""What a finding is about, as a diff against the tree before the run. Blocks."""

from __future__ import annotations

from agentrunner.execution.deps import Deps
from agentrunner.state.run_state import Evidence, Finding, TaskContext

MOST_DIFF = 12_000
"""Characters of a diff in a question; the state has to stay small."""
MOST_AT_END = 2_000
"""Characters of a diff that stands beside the end of a run."""
MOST_FINDINGS = 3


def diff_of(state: TaskContext, deps: Deps, finding: Finding, most: int = MOST_DIFF) -> str:
    """The change of a finding's paths; "" where it names none, or no tree was measured."""
    evidence, baseline = state["evidence"], state.get("baseline")
    if evidence is None or baseline is None or not finding.paths:
        return ""
    patch = deps.snapshots.patch(baseline.tree, evidence.tree, finding.paths)
    shown = deps.redactor.redact(patch[:most])
    return shown + ("\n… (cut; agentrunner diff shows all)" if len(patch) > most else "")


def with_diffs(state: TaskContext, deps: Deps) -> Evidence | None:
    """The evidence of a run that ends with open findings, which then have their diffs."""
    evidence = state.get("evidence")
    if evidence is None:
        return None
    found, left = [], MOST_FINDINGS
    for finding in evidence.findings:
        if finding.blocks and finding.paths and left:
            left -= 1
            text = diff_of(state, deps, finding, MOST_AT_END)
            found.append(finding.model_copy(update={"diff": text}))
        else:
            found.append(finding)
    return evidence.model_copy(update={"findings": found})
