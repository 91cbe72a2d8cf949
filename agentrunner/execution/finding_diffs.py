"""What a finding is about, as a diff against the tree before the run. Blocks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentrunner.state.run_state import Finding, TaskContext
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.worker_ledger import read_json
from agentrunner.verification.evidence.findings import approval_of

if TYPE_CHECKING:
    from agentrunner.execution.deps import Deps

FILE = "finding-diffs.json"
"""File name in the folder of a run."""
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


def keep_diffs(state: TaskContext, deps: Deps) -> None:
    """Keep the diffs of what is open where a run ends, in its folder: the state stays as it is."""
    evidence = state.get("evidence")
    if evidence is None:
        return
    open_ones = [one for one in evidence.findings if one.blocks and one.paths][:MOST_FINDINGS]
    kept = {
        approval_of(one, evidence.tree): diff_of(state, deps, one, MOST_AT_END) for one in open_ones
    }
    deps.folder.write(FILE, json.dumps(kept, ensure_ascii=False))


def kept_diffs(folder: RunFolder) -> dict[str, str]:
    """The diffs that were kept, by finding and tree (`approval_of`); {} for none."""
    return read_json(folder.root / FILE) or {}
