"""A fresh checkout of a commit, in a sandbox like that of the runs, set up once for all checks."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from agentrunner.config.prd import describe_check
from agentrunner.config.spec import TaskSpec
from agentrunner.engine.resources import sandbox_order, with_caches
from agentrunner.environment import home_of
from agentrunner.execution.credentials import secrets_of
from agentrunner.git.private_clone import CloneStore
from agentrunner.plans.execution.merging.merge_verdict import (
    CheckOutput,
    CommitFindings,
    SetUpFailed,
)
from agentrunner.plans.execution.merging.proofs import ProvenCriterion
from agentrunner.sandboxes.base import Owner, SandboxOrder
from agentrunner.sandboxes.choose import open_sandbox
from agentrunner.storage.run_folder import RunFolder, make_private
from agentrunner.text.redaction import Redactor
from agentrunner.verification.evidence.checks import read_check
from agentrunner.verification.evidence.measure import Measurer
from agentrunner.verification.evidence.outcomes import check_outcome, outcome_of
from agentrunner.verification.evidence.target import target_of, test_target
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.rooms.decision_sandbox import CopyOfRepo, DecisionSandbox
from agentrunner.verification.rooms.room import Room
from agentrunner.verification.rooms.set_up import run_set_up, set_up_failed
from agentrunner.verification.rooms.start_up import why_not_started
from agentrunner.workers.member import Member, make_members


class CommitSandbox(Struct, frozen=True):
    """A commit of a clone, checked out in a sandbox."""

    spec: TaskSpec
    commit: str
    tree: Path
    sandbox: DecisionSandbox
    measurer: Measurer
    read: ReadFile
    """Reads a file as it is committed, whatever the commands did to it."""

    async def look(self, proofs: Iterable[ProvenCriterion], *, test: bool) -> CommitFindings:
        """Run the set-up, then the test command, where wanted, and these checks."""
        if failed := await self._set_up():
            return CommitFindings(failed=failed)
        found = await self._test() if test else CommitFindings()
        return replace(found, seen={proof.key: await self._check(proof) for proof in proofs})

    async def _set_up(self) -> SetUpFailed | None:
        """Run the set-up command, if any; return the failure, or None where it succeeds."""
        ran = await run_set_up(self.sandbox, self.spec, copy=self._room.copy, trusted=False)
        if ran is None or ran.exit_code == 0:
            return None
        sandbox = self.sandbox
        failed = await set_up_failed(
            self.spec, ran, sandbox.describe(), sandbox.environ, sandbox.refused("setup")
        )
        return SetUpFailed(failed, ran.tail)

    @property
    def _room(self) -> Room:
        return Room(self.commit, CopyOfRepo(self.tree, ()))

    async def _test(self) -> CommitFindings:
        test = self.spec.task.test
        if test is None:
            return CommitFindings()
        measured = await self.measurer.run(test_target(test), self._room, self.read)
        outcome = outcome_of(measured)
        why = why_not_started(test.command, measured.ran, self.tree, is_test=True, cwd=test.cwd)
        if measured.results and measured.results.tests:
            why = ""
        outcome = outcome.model_copy(update={"finding": outcome.finding or why})
        return CommitFindings(outcome, started=not why, results=measured.results)

    async def _check(self, proof: ProvenCriterion) -> CheckOutput:
        """Run or read one check as a run does."""
        criterion = proof.criterion
        assert criterion.check is not None
        reading = await asyncio.to_thread(read_check, criterion.check, self.read, ())
        if reading is not None:
            return CheckOutput(reading.passed is False, reading.detail)
        target = await asyncio.to_thread(target_of, criterion, self.spec, self.read)
        if target is None:
            return CheckOutput(False)
        measured = await self.measurer.run(target, self._room, self.read)
        why = why_not_started(target.shell, measured.ran, self.tree, is_test=False)
        outcome = check_outcome(measured, describe_check(criterion.check), why)
        detail = f"{outcome.detail}\n{measured.ran.tail}".strip()
        return CheckOutput(outcome.outcome == "failed", detail, started=not why)


@asynccontextmanager
async def open_commit(
    clone: CloneStore,
    folder: Path,
    spec: TaskSpec,
    commit: str,
    kept: tuple[str, str],
    proofs: Sequence[ProvenCriterion],
    *,
    state_dir: Path,
    environ: Mapping[str, str],
) -> AsyncIterator[CommitSandbox]:
    """Check a commit out below `folder`, with a sandbox around it; remove both at the end.

    `spec` is any task of the plan, `kept` the kind and image that its runs had, where known, and
    `proofs` are checks whose programs must be visible. Raises InfraError where no sandbox opens.
    """
    run, tree = RunFolder(folder / "box"), folder / "tree"
    await asyncio.to_thread(_prepare, clone, run, tree, commit)
    try:
        criteria = [*spec.criteria, *(proof.as_criterion() for proof in proofs)]
        here = spec.model_copy(update={"repo": str(tree), "criteria": criteria})
        members = make_members(here)
        kind, image = kept
        wanted = _sandbox_order(here, members, run, image, folder.parent.name)
        sandbox = await open_sandbox(
            kind or spec.runner.sandbox.kind,
            await asyncio.to_thread(with_caches, wanted, here, environ),
            environ,
            home_of(environ),
            state_root=state_dir,
        )
        try:
            redact = Redactor(secrets_of(here, members, environ)).redact
            decides = DecisionSandbox(sandbox, tree, run, redact, environ, here.task.env)
            hosts = spec.task.test.network if spec.task.test else ()
            mounts = sandbox.isolates
            measurer = Measurer(decides, run, hosts, tuple, mounts=mounts)
            yield CommitSandbox(here, commit, tree, decides, measurer, clone.reader(commit))
        finally:
            await sandbox.close()
    finally:
        await asyncio.to_thread(_clear, clone, run, tree)


def _prepare(clone: CloneStore, run: RunFolder, tree: Path, commit: str) -> None:
    """Make fresh folders, also where a killed process left some."""
    make_private(tree.parent)
    _clear(clone, run, tree)
    for part in (run.sandbox_dir, run.sock_dir, run.checks_dir):
        make_private(part)
    clone.check_out(tree, commit)


def _clear(clone: CloneStore, run: RunFolder, tree: Path) -> None:
    clone.remove(tree)
    shutil.rmtree(run.root, ignore_errors=True)


def _sandbox_order(
    spec: TaskSpec, members: Sequence[Member], run: RunFolder, image: str, plan: str
) -> SandboxOrder:
    """Return the order as the runs have it; images are not fetched, the runs did that."""
    wanted = sandbox_order(spec, members, run)
    return replace(wanted, image=image or wanted.image, pull="never", owner=Owner(plan, "merged"))
