"""What a COMPLETE run has made, from its own record and not from the present folder."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

from agentrunner.engine import attempts
from agentrunner.errors import AgentRunnerError
from agentrunner.errors.plans import WorkChanged
from agentrunner.errors.runs import NothingToShow
from agentrunner.git.snapshots import Snapshots
from agentrunner.nodes.validate import worker_changes
from agentrunner.plans.execution.merging.proofs import RunFindings, proofs_of
from agentrunner.state.run_state import TestOutcome
from agentrunner.storage.run_folder import RunFolder, kept_sandbox, load_spec
from agentrunner.storage.run_log import RunLog
from agentrunner.verification.evidence.measure import kept_results
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import changing, gone
from agentrunner.verification.trees import Trees


@dataclass(frozen=True)
class RunWork(RunFindings):
    """The part of a work tree that is to be committed, and the time of the commit."""

    paths: tuple[str, ...]
    ended_at: str
    """UTC, ISO 8601: the same at every call."""


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
    before, after = await asyncio.to_thread(_results, folder, baseline.test, evidence.test)
    taken = taken_by(before, after)
    return replace(work, proofs=proofs, sandbox=kept_sandbox(folder), taken=taken, passed=after)


async def tests_taken(state_dir: Path, run_id: str) -> frozenset[str]:
    """Return `RunWork.taken` of an earlier run of a task; empty where nothing is known of it."""
    with contextlib.suppress(AgentRunnerError, OSError):
        folder = RunFolder.open(state_dir, run_id)
        state = await attempts.latest(folder)
        evidence, baseline = state.get("evidence"), state.get("baseline")
        verdict = state.get("verdict")
        if evidence and baseline and verdict and verdict.state == "COMPLETE":
            tests = await asyncio.to_thread(_results, folder, baseline.test, evidence.test)
            return taken_by(*tests)
    return frozenset()


def _results(
    folder: RunFolder, before: TestOutcome | None, after: TestOutcome | None
) -> tuple[Results | None, Results | None]:
    """The results by name of both; None where they have none, or it can't be read any more."""
    with contextlib.suppress(AgentRunnerError, OSError):
        refs = (before.results if before else None, after.results if after else None)
        return kept_results(folder, refs[0]), kept_results(folder, refs[1])
    return None, None


def taken_by(before: Results | None, after: Results | None) -> frozenset[str]:
    """Names that passed before a run and are missing or skipped after it. Pure."""
    if before is None or after is None:
        return frozenset()
    return frozenset(gone(before, after, changing(before)))


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
