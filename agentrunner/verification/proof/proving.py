"""Examines a tree when completion is asked for: whether there is proof of the work, and by whom.

For each command that decides:

1. With all inputs of the proof as they were before the run, what passed before and what has to
   turn green must pass by name. Else a person is asked about the smallest set of changes that
   matters.
2. What turned green is confirmed: red again on the old tree, green again on the new one.
3. Tests that the worker wrote must be red on the old code, and red where the functions of the
   change are emptied.
4. A canary made of each claimed test must be reported as failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct, field

from agentrunner.state.run_state import Baseline, Criterion, Evidence, Finding, Proof
from agentrunner.verification.differential import Differential
from agentrunner.verification.evidence.findings import EXAMINED, about_work, leads_out
from agentrunner.verification.evidence.target import TEST, files_of, target_of, test_target
from agentrunner.verification.evidence.verifier import Verifier
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.inspection.missing_names import missing_names
from agentrunner.verification.proof.carried_tests import hold_adapted
from agentrunner.verification.proof.case import Case, ProofReport
from agentrunner.verification.proof.change_alone import (
    is_unchanged,
    lost_code,
    shown_by_the_change,
)
from agentrunner.verification.proof.earlier_workers import grade_by_permission
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.exit_proof import prove_by_exit
from agentrunner.verification.proof.kept_runs import KeptRuns
from agentrunner.verification.proof.name_proof import prove_by_name
from agentrunner.verification.proof.new_checks import subjects_of_checks
from agentrunner.verification.proof.old_inputs import with_old_inputs
from agentrunner.verification.proof.stale_builds import find_stale_build
from agentrunner.verification.proof.unexplained_files import (
    find_unexplained,
    hold_at_once,
    hold_without,
)
from agentrunner.verification.results.names import settled
from agentrunner.verification.unknown_names import UnknownNames
from agentrunner.verification.verdict import NO_CHANGE, texts_of
from agentrunner.verification.world import SnapshotTrees


class Prover(Struct):
    """Examines trees for a verdict."""

    verifier: Verifier
    differential: Differential
    unknown: UnknownNames
    kept: KeptRuns | None = None
    asked_functions: set[tuple[str, str]] = field(default_factory=set)
    """As an examination has them: a tree may be examined again."""

    async def prove(
        self,
        criteria: Sequence[Criterion],
        baseline: Baseline,
        evidence: Evidence,
        allowed: Sequence[str] = (),
        approved: Collection[str] = (),
        step: str = "",
    ) -> Evidence:
        """The evidence with graded proofs, and with findings that a person has to settle.

        `allowed` are paths whose change a person allowed: they count as the worker left them.
        `approved` are ids of findings (`approval_of`) that a person settled: they stop nothing.
        `step` names this examination: one of the same name that was killed is gone on with. Raises
        SandboxError and OSError.
        """
        old = baseline.tree
        new, total = await asyncio.to_thread(self.verifier.delivered, old, evidence.tree)
        report = ProofReport(tree=evidence.tree, approved=frozenset(approved))
        cases: list[Case] = []
        if new == old:
            report.doubts[TEST] = NO_CHANGE
        else:
            cases = await self._cases(criteria, baseline, evidence, new)
            if linked_out := await asyncio.to_thread(self.verifier.rooms.leads_out):
                finding = leads_out(linked_out, str(self.verifier.spec.repo))
                if report.stopped_by(finding, TEST):
                    cases = []
            wanted = outside_of_checks(self.verifier.spec.wanted)
            of_task = (one.check for one in criteria if one.check and one.check_origin == "task")
            checked = "\n".join(check.run for check in of_task if check.kind == "command")
            snapshots, listed = self.verifier.snapshots, self.verifier.spec.criteria
            by_people = [one.description for one in listed if one.check is None]
            missing = await asyncio.to_thread(
                missing_names, snapshots, old, new, wanted, checked, by_people
            )
            if missing:
                report.findings.append(about_work("missing", missing))
            if cases:  # without, nothing asks for the trees of an examination
                self.differential.subjects = frozenset()
                world = await self._world(old, new, cases, allowed)
                exam = Examination(
                    self.verifier,
                    self.differential,
                    world,
                    criteria,
                    total,
                    written_before(baseline),
                    report,
                    await asyncio.to_thread(is_unchanged, world),
                    self.kept,
                    self.unknown,
                    {case.target.id: case.seconds for case in cases if case.seconds},
                    self.asked_functions,
                )
                if self.kept is not None:
                    trees = (world.old, world.new, world.kept, world.mixed)
                    spec = self.verifier.spec.model_dump(mode="json")
                    self.unknown.seed(await self.kept.begin(step, spec, *trees))
                if subjects := await subjects_of_checks(exam, cases):
                    self.differential.subjects = frozenset(subjects)
                    exam = replace(exam, world=await self._world(old, new, cases, allowed))
                for case in cases:
                    await _examine(exam, case)
                found = await asyncio.to_thread(shown_by_the_change, exam, cases, wanted)
                found = found or await lost_code(exam, cases, wanted)
                report.findings += [found] if found is not None else []
            _read_checks(criteria, evidence, report)
        others = [
            one for one in evidence.findings if one.code not in EXAMINED or one.code == "flaky"
        ]
        findings = _each_once([*others, *report.findings])
        return evidence.model_copy(
            update={
                "examined": True,
                "unchanged": new == old,
                "allowed": sorted(allowed),
                "findings": findings,
                "proofs": report.proofs,
                "proof": texts_of(report.proofs),
                "doubts": report.doubts,
                "tests_added": len(_new_tests(report.proofs, cases)),
            }
        )

    async def _cases(
        self,
        criteria: Sequence[Criterion],
        baseline: Baseline,
        evidence: Evidence,
        tree: str,
    ) -> list[Case]:
        """The commands that are green now, with their results before the run."""
        kept = self.verifier.measurer.kept
        read = await asyncio.to_thread(self.verifier.snapshots.reader, tree)
        cases = []
        if evidence.test is not None and evidence.test.green and self.verifier.test is not None:
            was = baseline.test
            cases.append(
                Case(
                    test_target(self.verifier.test),
                    await asyncio.to_thread(kept, was.results if was else None),
                    was is not None and not was.green,
                    await asyncio.to_thread(kept, evidence.test.results),
                    evidence.test.duration_sec,
                )
            )
        before = {one.criterion_id: one for one in baseline.check_outcomes}
        by_id = {criterion.id: criterion for criterion in criteria}
        for outcome in evidence.checks:
            criterion = by_id[outcome.criterion_id]
            target = target_of(criterion, self.verifier.spec, read)
            if outcome.outcome != "passed" or target is None or _proves_no_work(criterion):
                continue
            old = before.get(outcome.criterion_id)
            cases.append(
                Case(
                    target,
                    await asyncio.to_thread(kept, old.results if old else None),
                    outcome.before == "red",
                    await asyncio.to_thread(kept, outcome.results),
                )
            )
        return cases

    async def _world(
        self, old: str, new: str, cases: Sequence[Case], allowed: Sequence[str]
    ) -> SnapshotTrees:
        """Build the trees of this examination."""
        files = set[str]().union(*(files_of(one.before, one.target.cwd) for one in cases))
        targets = [case.target for case in cases]

        def work_out() -> SnapshotTrees:
            found = self.differential.changes(old, new, targets, files, allowed)
            return SnapshotTrees(
                self.verifier.snapshots,
                old=old,
                new=new,
                changes=found,
                kept=self.differential.with_old_inputs(found),
                mixed=self.differential.with_new_tests(),
                old_paths=frozenset(self.verifier.snapshots.list(old)),
                product=self.differential.product(),
                unsure=self.differential.unsure(),
                allowed=tuple(allowed),
            )

        return await asyncio.to_thread(work_out)


async def _examine(exam: Examination, case: Case) -> None:
    """Examine one command: with the old inputs first, then by test names or by its exit code."""
    if exam.report.stopped_by(await find_stale_build(exam, case), case.target.id):
        return
    unexplained = await find_unexplained(exam, case)
    held = await hold_at_once(exam, case, unexplained)
    if held is None:
        held = await with_old_inputs(exam, case)
        if held is None or not await hold_without(exam, case, unexplained):
            return
    if not await hold_adapted(exam, case):
        return
    if case.now is None:
        await prove_by_exit(exam, case, red_with_old=held.red)
    else:
        await prove_by_name(exam, case, held.results)
    await grade_by_permission(exam, case)


def _read_checks(criteria: Sequence[Criterion], evidence: Evidence, report: ProofReport) -> None:
    """Add proofs or doubts for checks of kind file and diff, which are read and not run."""
    by_id = {criterion.id: criterion for criterion in criteria}
    for outcome in evidence.checks:
        criterion = by_id[outcome.criterion_id]
        read = outcome.exit_code is None and outcome.outcome == "passed"
        if not read or outcome.before != "red" or criterion.check is None:
            continue
        if _proves_no_work(criterion):
            continue
        person = criterion.check_origin != "model"
        about = criterion.check.path and criterion.check.path in criterion.description
        if not person and not (about or criterion.check.contains or criterion.check.matches):
            report.doubts[criterion.id] = "it only asks whether a file is there"
            continue
        report.proofs.append(
            Proof(
                target=criterion.id,
                author="person" if person else "planner",
                grade="proven" if person else "shown",
                text=f"{criterion.id}: `{outcome.what}`"
                f"{', a check of the planner,' * (not person)} failed before and passes now",
            )
        )


def written_before(baseline: Baseline) -> dict[str, frozenset[str]]:
    """The paths that each target's command wrote on the tree before the run, by target."""
    checks = {one.criterion_id: frozenset(one.writes) for one in baseline.check_outcomes}
    return {**checks, TEST: frozenset(baseline.test_writes)}


def _proves_no_work(criterion: Criterion) -> bool:
    """Whether a planner's check must pass but proves no work: it was written after work had begun,
    or its tool was not installed, so that it was never seen red.
    """
    tool = criterion.awaits is not None and criterion.awaits.kind == "tool"
    return criterion.check_origin == "model" and (criterion.late or tool)


def _new_tests(proofs: Sequence[Proof], cases: Sequence[Case]) -> set[str]:
    """Tests of the worker's in these proofs that no command ran before."""
    known = {settled(name) for case in cases if case.before for name in case.before.names}
    by_worker = {name for proof in proofs if proof.author == "worker" for name in proof.tests}
    return {name for name in by_worker if settled(name) not in known}


def make_prover(verifier: Verifier, kept_in: Path | None = None) -> Prover:
    """The prover of trees that `verifier` measures; its runs are kept in a folder, if any."""
    return Prover(
        verifier,
        Differential(verifier.snapshots, verifier.spec),
        UnknownNames(),
        KeptRuns(kept_in) if kept_in is not None else None,
    )


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    found: list[Finding] = []
    for finding in findings:
        if finding not in found:
            found.append(finding)
    return found
