"""`agentrunner verify`: the whole verification once more, on what a run delivered.

Nothing of the run is changed: clean rooms, reports and outputs go to a temporary folder.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.resources import make_verifier, sandbox_order
from agentrunner.environment import home_of
from agentrunner.errors.runs import NothingDelivered
from agentrunner.execution.credentials import secrets_of
from agentrunner.git.borrow import store_above
from agentrunner.git.process import read_small
from agentrunner.git.scratch import room, sweep
from agentrunner.git.snapshots import Snapshots
from agentrunner.sandboxes.choose import open_sandbox
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.run_state import Baseline, Criterion, Evidence, TaskContext
from agentrunner.storage.failpoints import reach
from agentrunner.storage.run_folder import RunFolder, kept_sandbox, make_private, verify_root
from agentrunner.storage.run_log import RunLog
from agentrunner.text.redaction import Redactor
from agentrunner.verification.criterion_status import settle
from agentrunner.verification.evidence.outside_work import without_credit
from agentrunner.verification.evidence.verifier import Verifier
from agentrunner.verification.proof.mutation import Mutation, try_mutants
from agentrunner.verification.proof.proving import make_prover
from agentrunner.verification.rooms.decision_sandbox import DecisionSandbox
from agentrunner.verification.rooms.sealed import Sealed
from agentrunner.verification.trees import Changes
from agentrunner.verification.verdict import judge
from agentrunner.workers.member import make_members

MOST_READ = 1 << 30
"""Files in the repository up to so many bytes are compared with what was delivered."""


class Verification(Struct, frozen=True):
    """The outcome of verifying a run a second time."""

    run_id: str
    state: str
    """How the run ended."""
    complete: bool
    """Whether what it delivered is complete by evidence now."""
    confirmed: bool
    missing: list[str] = field(default_factory=list)
    criteria: list[Criterion] = field(default_factory=list)
    evidence: Evidence | None = None
    completion: str = ""
    """The completion mode in force."""
    mutation: Mutation | None = None
    differs_here: list[str] = field(default_factory=list)
    """Changed paths whose content in the repository's folder is different now."""

    @property
    def exit_code(self) -> int:
        """Return 0 for confirmed, 1 for contradicted."""
        return 0 if self.confirmed else 1

    def as_json(self) -> dict[str, object]:
        """Return the values for `--json`."""
        return {
            "run_id": self.run_id,
            "state": self.state,
            "complete": self.complete,
            "confirmed": self.confirmed,
            "missing": self.missing,
            "acceptance_criteria": [
                {
                    "id": criterion.id,
                    "description": criterion.description,
                    "status": criterion.status,
                    "evidence": criterion.evidence,
                    "grade": criterion.grade,
                    "author": criterion.author,
                    "detail": criterion.proof,
                }
                for criterion in self.criteria
            ],
            "findings": [f.model_dump() for f in self.evidence.findings] if self.evidence else [],
            "proofs": [p.model_dump() for p in self.evidence.proofs] if self.evidence else [],
            "mutants": self.mutation.as_json() if self.mutation else None,
            "differs_here": self.differs_here,
        }


async def verify(
    folder: RunFolder,
    spec: TaskSpec,
    state: TaskContext,
    *,
    state_dir: Path,
    environ: Mapping[str, str],
    emit: Callable[..., Any],
    mutants_sec: float = 0,
) -> Verification:
    """Verify what a run delivered, from nothing; `mutants_sec` limits the time spent on mutants, 0
    is none.

    Raises UsageError for a run that has delivered nothing yet, and InfraError or SandboxError where
    the sandbox or its commands do not start.
    """
    baseline, known = state.get("baseline"), state.get("evidence")
    if baseline is None or known is None:
        raise NothingDelivered(
            f"{folder.run_id} has delivered nothing that could be verified.",
            remedy=f"agentrunner resume {folder.run_id}",
        )
    members = make_members(spec)
    rooms = verify_root(state_dir)
    await asyncio.to_thread(make_private, rooms)
    await asyncio.to_thread(sweep, rooms)  # what killed verifications have left
    async with _own_room(rooms) as place:
        scratch = RunFolder(place)
        for directory in (scratch.sandbox_dir, scratch.sock_dir, scratch.checks_dir):
            directory.mkdir(mode=0o700)
        await asyncio.to_thread(store_above, folder.snapshots_dir, scratch.snapshots_dir)
        snapshots = await asyncio.to_thread(Snapshots.of, scratch.snapshots_dir, spec)
        kind, image = kept_sandbox(folder)
        wanted = replace(sandbox_order(spec, members, scratch), pull="never")
        wanted = replace(wanted, image=image or wanted.image)
        sandbox = await open_sandbox(
            kind or spec.runner.sandbox.kind,
            wanted,
            environ,
            home_of(environ),
            state_root=state_dir,
        )
        try:
            redact = Redactor(secrets_of(spec, members, environ)).redact
            verifier = make_verifier(
                spec,
                DecisionSandbox(sandbox, Path(spec.repo), scratch, redact, environ, spec.task.env),
                snapshots,
                scratch,
                mounts=sandbox.isolates,
                emit=emit,
                log=RunLog(folder.log_file),
            )
            verifier.rooms.sealed = Sealed(folder.root / "sealed", Path(spec.repo))
            return await _verified(verifier, spec, state, baseline, known, mutants_sec)
        finally:
            await sandbox.close()


@asynccontextmanager
async def _own_room(rooms: Path) -> AsyncIterator[Path]:
    """Like `room`, without blocking. Who is cancelled while it is made removes it, too."""
    own = room(rooms)
    making = asyncio.ensure_future(asyncio.to_thread(own.__enter__))
    try:
        yield await asyncio.shield(making)
    finally:
        await asyncio.wait([making])
        if making.exception() is None:
            await asyncio.to_thread(own.__exit__, None, None, None)


async def _verified(
    verifier: Verifier,
    spec: TaskSpec,
    state: TaskContext,
    baseline: Baseline,
    known: Evidence,
    mutants_sec: float,
) -> Verification:
    criteria, tree = state["criteria"], known.tree
    fresh = await verifier.look_afresh(
        Baseline(tree=baseline.tree, origin=baseline.origin), criteria
    )
    total = await asyncio.to_thread(verifier.trees.between, baseline.tree, tree)
    kept = [finding for finding in known.findings if finding.code == "protected_path"]
    evidence = await verifier.measure_tree(
        tree, criteria, fresh, total, total, suspicions=kept, careful=True
    )
    evidence = evidence.model_copy(update={"findings": _each_once(evidence)})
    reach("during_verify")
    if not evidence.red:
        approved = state.get("approved", [])
        prover = make_prover(verifier)
        evidence = without_credit(
            await prover.prove(
                criteria,
                fresh,
                evidence.model_copy(update={"outside": known.outside, "by_hand": known.by_hand}),
                known.allowed,
                approved,
            )
        )
    acceptances = state.get("acceptances", [])
    settled = settle(criteria, evidence, state.get("assessment"), spec.task.test, acceptances)
    judgement = judge(
        settled,
        evidence,
        spec.completion,
        approved=state.get("approved", []),
        acceptances=acceptances,
        trial=spec.is_trial,
    )
    was_complete = state["state"] == TaskState.COMPLETE
    mutation = None
    if mutants_sec and not evidence.red:
        mutation = await try_mutants(verifier, settled, fresh, evidence, mutants_sec)
    return Verification(
        run_id=state["run"].run_id,
        state=str(state["state"]),
        complete=judgement.complete,
        confirmed=judgement.complete == was_complete,
        missing=judgement.missing,
        criteria=settled,
        evidence=evidence,
        completion=spec.completion,
        mutation=mutation,
        differs_here=await asyncio.to_thread(_differs_here, verifier, tree, total),
    )


def _differs_here(verifier: Verifier, tree: str, total: Changes) -> list[str]:
    """Return changed paths whose content in the repository's folder is different now. Blocks."""
    repo = Path(verifier.spec.repo)
    if not repo.is_dir():
        return []
    entries, delivered = verifier.snapshots.list(tree), verifier.snapshots.reader(tree)
    return [
        path
        for path in total.all
        if not (repo / path).is_symlink()
        and read_small(os.fsencode(repo / path), MOST_READ)
        != (delivered(path) if path in entries else None)
    ]


def _each_once(evidence: Evidence) -> list[Any]:
    found: list[Any] = []
    for finding in evidence.findings:
        if finding not in found:
            found.append(finding)
    return found
