"""What a COMPLETE run has made, from its own record and not from the present folder."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from agentrunner.engine import attempts
from agentrunner.errors.plans import WorkChanged
from agentrunner.errors.runs import NothingToShow
from agentrunner.git.snapshots import Snapshots
from agentrunner.nodes.validate import worker_changes
from agentrunner.plans.execution.merging.proofs import ProvenCriterion, proofs_of
from agentrunner.storage.run_folder import RunFolder, kept_sandbox, load_spec
from agentrunner.storage.run_log import RunLog
from agentrunner.verification.trees import Trees


@dataclass(frozen=True)
class RunWork:
    """The part of a work tree that is to be committed, and the time of the commit."""

    paths: tuple[str, ...]
    ended_at: str
    """UTC, ISO 8601: the same at every call."""
    proofs: tuple[ProvenCriterion, ...] = ()
    """Checks of its criteria that were green then."""
    sandbox: tuple[str, str] = ("", "")
    """Kind and image of the sandbox that it had (`kept_sandbox`)."""


async def run_work(state_dir: Path, run_id: str) -> RunWork:
    """Return what the run's workers changed, as it was when the run was found COMPLETE.

    Raises UsageError (`unknown-run`, `nothing-to-show`), and InfraError (`work-changed`) where the
    files are no longer what was judged.
    """
    folder = RunFolder.open(state_dir, run_id)
    state = await attempts.latest(folder)
    evidence, baseline = state.get("evidence"), state.get("baseline")
    if evidence is None or baseline is None:
        raise NothingToShow(f"{run_id} has made nothing yet.")
    work = await asyncio.to_thread(_read, folder, baseline.tree, evidence.tree)
    task_id = load_spec(folder).task.id
    proofs = proofs_of(task_id, state["criteria"], evidence.checks)
    return replace(work, proofs=proofs, sandbox=kept_sandbox(folder))


def _read(folder: RunFolder, before: str, judged: str) -> RunWork:
    spec, log = load_spec(folder), RunLog(folder.log_file)
    snapshots = Snapshots(
        folder.snapshots_dir,
        Path(spec.repo),
        spec.runner.note.dir,
        keep_up_to=spec.runner.sandbox.kept_bytes,
    )
    trees = Trees(snapshots, spec.task)
    paths = trees.by_workers(worker_changes(log), trees.between(before, judged)).all
    later = {change.path for change in snapshots.changes(judged, trees.now())}
    if changed := sorted(later.intersection(paths)):
        raise WorkChanged(
            f"{', '.join(changed[:5])} was changed since {folder.run_id} was found complete.",
            path=spec.repo,
            remedy=f"agentrunner diff {folder.run_id} shows what was judged; put the files back",
        )
    moves = [record.at for record in log.records("state")]
    return RunWork(tuple(paths), moves[-1])
