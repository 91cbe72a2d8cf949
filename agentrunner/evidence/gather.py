"""Evidence about one tree: the test command, every check, the guard, proof of work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentrunner.evidence.box import (
    TIMED_OUT,
    CopyOfRepo,
    DecisionBox,
    Ran,
    not_ready,
    why_not_started,
)
from agentrunner.evidence.checks import Command, ReadFile, command_of, read_check
from agentrunner.evidence.guard import Changes, Guard
from agentrunner.evidence.outcomes import Colour, check_outcome, outcome_of
from agentrunner.evidence.set_up import run_set_up, set_up_failed
from agentrunner.evidence.steering import matches
from agentrunner.evidence.trees import Trees, WorkerChange, writes_of
from agentrunner.evidence.verdict import fail_to_pass, test_proof
from agentrunner.runs.snapshots import Snapshots
from agentrunner.task.context import (
    Baseline,
    CheckOutcome,
    Criterion,
    Evidence,
    Finding,
    TestOutcome,
)
from agentrunner.task.prd import describe_check
from agentrunner.task.spec import TaskSpec, TestSpec

Emit = Callable[..., Any]


@dataclass
class Gatherer:
    """Finds out what is true about a tree; `emit` receives the events `baseline` and `check`."""

    spec: TaskSpec
    box: DecisionBox
    snapshots: Snapshots
    guard: Guard
    emit: Emit

    def __post_init__(self) -> None:
        self.trees = Trees(self.snapshots, self.spec.task)

    @property
    def test(self) -> TestSpec | None:
        """The task's test command."""
        return self.spec.task.test

    async def setup(self) -> None:
        """Run the task's set-up once per box; raises EnvironmentNotReady where it fails."""
        ran = await run_set_up(self.box, self.spec)
        if ran is None or self.spec.task.setup is None:
            return
        command, outcome = self.spec.task.setup.command, "failed" if ran.exit_code else "passed"
        self.emit(
            "check", target="setup", command=command, exit_code=ran.exit_code, outcome=outcome
        )
        if ran.exit_code != 0:
            raise set_up_failed(self.spec, ran, self.box.describe())

    async def baseline(self, criteria: Sequence[Criterion], origin: str) -> Baseline:
        """The tree before the run: its tests and the checks that the task brings.

        Raises EnvironmentNotReady where one of them cannot start; nothing is spent by then.
        """
        tree = await asyncio.to_thread(self.trees.now)
        await asyncio.to_thread(self.box.warm)
        outcome = await self._first_test()
        checks = await self._colours(criteria, tree, None, must_start=True)
        await asyncio.to_thread(lambda: self.box.seal(self.snapshots.ignored_folders()))
        after = await asyncio.to_thread(self.trees.now)
        written = await asyncio.to_thread(self.trees.between, tree, after)
        return Baseline(
            tree=after, origin=origin, test=outcome, checks=checks, test_writes=writes_of(written)
        )

    async def look_again(self, baseline: Baseline, criteria: Sequence[Criterion]) -> Baseline:
        """The same tree before the run, asked what a changed task asks now.

        On a copy: the present tree holds the work of earlier attempts. Raises EnvironmentNotReady.
        """
        test = await self.guard.on_copy(baseline.tree, self._first_test) if self.test else None
        checks = await self.colours(criteria, baseline.tree, must_start=True)
        return baseline.model_copy(update={"test": test, "checks": checks})

    async def colours(
        self, criteria: Sequence[Criterion], tree: str, *, must_start: bool = False
    ) -> dict[str, Colour]:
        """What each criterion's own check says on `tree`, the one before the run.

        On a copy of it: somebody may have changed the repository since, and a check that comes
        from the model must not do so itself.
        """

        def look(copy: CopyOfRepo) -> Awaitable[dict[str, Colour]]:
            return self._colours(criteria, tree, copy, must_start=must_start)

        return await self.guard.on_copy(tree, look) if criteria else {}

    async def _colours(
        self,
        criteria: Sequence[Criterion],
        tree: str,
        copy: CopyOfRepo | None,
        *,
        must_start: bool,
    ) -> dict[str, Colour]:
        colours: dict[str, Colour] = {}
        read = await asyncio.to_thread(self.trees.reader, tree)
        for criterion in criteria:
            outcome = await self._check(criterion, read, [], must_start=must_start, copy=copy)
            if outcome is None:
                continue
            # Nothing has changed before the run: that it did later is no proof of a model's claim.
            means_nothing = _is_kind(criterion, "diff") and criterion.check_origin == "model"
            colours[criterion.id] = "unknown" if means_nothing else _COLOURS[outcome.outcome]
            self.emit(
                "baseline", target=criterion.id, command=outcome.what,
                exit_code=outcome.exit_code, outcome=outcome.outcome,
            )  # fmt: skip
        return colours

    async def gather(
        self,
        criteria: Sequence[Criterion],
        baseline: Baseline,
        worker_changes: Sequence[WorkerChange],
        *,
        suspicions: Sequence[Finding] = (),
    ) -> Evidence:
        """Everything that can be executed or read about the present tree.

        `worker_changes` are the run's worker runs and rounds of checks so far: a person's edits
        between them are not the worker's. `suspicions` are findings made elsewhere (changed
        dependencies).
        """
        hidden = await asyncio.to_thread(self.snapshots.dependency_fingerprint)
        tree, total, own, changes = await asyncio.to_thread(self._compare, baseline, worker_changes)
        outcome = await self._test_now(baseline, changes)
        read = await asyncio.to_thread(self.trees.reader, tree)
        checks = [
            check
            for criterion in criteria
            if (check := await self._check(criterion, read, total.all, baseline.checks))
        ]
        findings = [*suspicions, *self.trees.protected(changes)]
        restored = None
        if outcome is not None and outcome.green:
            fewer = self._fewer_is_wanted(changes)
            restored, finding = await self.guard.old_tests_pass(
                tree, baseline, changes, lambda copy, before: self._run_copy(copy, before, fewer)
            )
            findings += [finding] if finding else []
        proof = _fail_to_pass(baseline, outcome, restored, checks, criteria)
        decides = any(_is_kind(criterion, "test") for criterion in criteria)
        wanted = not proof or (decides and not test_proof(proof, checks))
        if wanted and outcome is not None and outcome.green and not _blocking(findings):
            proof += await self._new_tests_prove(baseline, tree, changes)
        after = await asyncio.to_thread(self.trees.now)
        findings += await asyncio.to_thread(
            self.trees.written_by_checks, tree, after, baseline, worker_changes
        )
        unseen = await asyncio.to_thread(self._changed_unseen, hidden)
        findings += [finding for finding in unseen if finding not in findings]
        return Evidence(
            tree=tree,
            tree_after=after,
            test=outcome,
            restored_test=restored,
            checks=checks,
            findings=findings,
            proof=[] if _blocking(findings, "dependencies_changed") else proof,
            changed_files=own.all[:500],
            deleted_files=sorted(own.deleted)[:500],
            lines_added=own.lines_added,
            lines_removed=own.lines_removed,
            tests_added=len(changes.tests_added),
        )

    def _compare(
        self, baseline: Baseline, worker_changes: Sequence[WorkerChange]
    ) -> tuple[str, Changes, Changes, Changes]:
        """The present tree, what differs from the one before the run, the workers' part of it,
        and that part as it is judged.
        """
        tree = self.trees.now()
        total = self.trees.between(baseline.tree, tree)
        own = self.trees.by_workers(worker_changes, total)
        judged = self.trees.judged(own, baseline, tree)
        if own.all == total.all:
            return tree, total, total, judged
        paths = set(own.all)
        lines = [c for c in self.snapshots.changes(baseline.tree, tree) if c.path in paths]
        sized = replace(
            own,
            lines_added=sum(change.added or 0 for change in lines),
            lines_removed=sum(change.removed or 0 for change in lines),
        )
        return tree, total, sized, judged

    def _changed_unseen(self, before: Mapping[str, str]) -> list[Finding]:
        """A finding where the checks, which run a worker's code, changed installed packages."""
        after = self.snapshots.dependency_fingerprint()
        names = sorted(before.keys() | after.keys())
        changed = [name for name in names if before.get(name) != after.get(name)]
        if not changed:
            return []
        message = f"Installed dependencies changed while the checks ran: {', '.join(changed[:5])}"
        return [Finding(code="dependencies_changed", message=message, paths=changed[:50])]

    # -- the test command -------------------------------------------------------------------

    async def _run_test(self, copy: CopyOfRepo | None = None) -> Ran:
        assert self.test is not None
        return await self.box.run(
            self.test.command,
            cwd=self.test.cwd,
            timeout_sec=self.test.timeout_sec,
            hosts=self.test.network,
            copy=copy,
            name="test",
        )

    async def _first_test(self, copy: CopyOfRepo | None = None) -> TestOutcome | None:
        """The test command before the run; raises EnvironmentNotReady where it cannot start."""
        if self.test is None or not self.test.baseline:
            return None
        ran = await self._run_test(copy)
        if why := why_not_started(self.test.command, ran, Path(self.spec.repo), is_test=True):
            raise not_ready(
                self.test.command,
                ran,
                why,
                self.box.describe(),
                what="The test command",
                path="task.test.command",
            )
        outcome = outcome_of(self.test, ran, None)
        self.emit(
            "baseline", target="test", command=self.test.command,
            exit_code=outcome.exit_code, outcome="passed" if outcome.green else "failed",
            passed=outcome.passed, failed=outcome.failed,
        )  # fmt: skip
        return outcome

    async def _run_copy(
        self, copy: CopyOfRepo, before: TestOutcome | None, fewer_is_wanted: bool
    ) -> TestOutcome:
        assert self.test is not None
        ran = await self._run_test(copy)
        return outcome_of(self.test, ran, before, fewer_is_wanted=fewer_is_wanted)

    def _fewer_is_wanted(self, changes: Changes) -> bool:
        may_change = self.test.may_change if self.test else []
        return any(matches(path, may_change) for path in changes.tests_touched)

    async def _test_now(self, baseline: Baseline, changes: Changes) -> TestOutcome | None:
        if self.test is None:
            return None
        fewer = self._fewer_is_wanted(changes)
        ran = await self._run_test()
        outcome = outcome_of(self.test, ran, baseline.test, fewer_is_wanted=fewer)
        self.emit(
            "check", target="test", command=self.test.command, exit_code=outcome.exit_code,
            outcome="passed" if outcome.green else "failed",
            passed=outcome.passed, failed=outcome.failed, finding=outcome.finding,
        )  # fmt: skip
        return outcome

    # -- checks -----------------------------------------------------------------------------

    async def _check(
        self,
        criterion: Criterion,
        read: ReadFile,
        changed: Sequence[str],
        before: Mapping[str, Colour] | None = None,
        *,
        must_start: bool = False,
        copy: CopyOfRepo | None = None,
    ) -> CheckOutcome | None:
        """Run or read one criterion's check; None where it has none of its own."""
        check = criterion.check
        if check is None or (check.kind == "test" and not check.name):
            return None
        what = describe_check(check)
        was: Colour = (before or {}).get(criterion.id, "unknown")
        reading = await asyncio.to_thread(read_check, check, read, changed)
        if reading is not None:
            outcome = CheckOutcome(
                criterion_id=criterion.id, what=what, before=was, detail=reading.detail,
                outcome="passed" if reading.passed
                else "not_run" if reading.passed is None and criterion.check_origin == "model"
                else "failed",
            )  # fmt: skip
        elif (command := command_of(check, self.test, read)) is None:
            return CheckOutcome(
                criterion_id=criterion.id, what=what, outcome="not_run", before=was,
                detail="nothing to execute",
            )  # fmt: skip
        else:
            outcome = await self._run_check(criterion, command, what, was, must_start, copy)
        if before is not None:
            self.emit(
                "check", target=criterion.id, command=what, exit_code=outcome.exit_code,
                outcome=outcome.outcome, detail=outcome.detail,
            )  # fmt: skip
        return outcome

    async def _run_check(
        self,
        criterion: Criterion,
        command: Command,
        what: str,
        was: Colour,
        must_start: bool,
        copy: CopyOfRepo | None,
    ) -> CheckOutcome:
        ran = await self.box.run(
            command.shell, cwd=command.cwd, timeout_sec=command.timeout_sec, copy=copy,
            hosts=self.test.network if self.test else (), name=criterion.id,
        )  # fmt: skip
        why = why_not_started(command.shell, ran, Path(self.spec.repo), is_test=False)
        if why and must_start:
            raise not_ready(
                command.shell, ran, why, self.box.describe(), what=f"The check of {criterion.id}"
            )
        return check_outcome(criterion, command, what, ran, why, was)

    # -- proof of work ----------------------------------------------------------------------

    async def _new_tests_prove(self, baseline: Baseline, tree: str, changes: Changes) -> list[str]:
        """Tests the worker wrote that fail on the tree before the run and pass now.

        They are run there with all that steers them: a test that only misses its new fixture
        proves no work.
        """
        written = changes.tests_written
        if not written:
            return []
        taken = [*written, *changes.steering]
        outcome = await self.guard.run_on_old_code(
            baseline.tree, tree, taken, lambda copy: self._run_copy(copy, None, False)
        )
        if outcome.exit_code in (0, 126, 127, TIMED_OUT) and not outcome.failed:
            return []
        files = ", ".join(written[:3])
        return [f"new tests fail on the tree before the run and pass now: {files}"]


_COLOURS: dict[str, Colour] = {"passed": "green", "failed": "red", "not_run": "unknown"}


def _is_kind(criterion: Criterion, kind: str) -> bool:
    return criterion.check is not None and criterion.check.kind == kind


def _blocking(findings: Sequence[Finding], code: str = "") -> bool:
    return any(f.blocks and (not code or f.code == code) for f in findings)


def _fail_to_pass(
    baseline: Baseline,
    test: TestOutcome | None,
    restored: TestOutcome | None,
    checks: Sequence[CheckOutcome],
    criteria: Sequence[Criterion],
) -> list[str]:
    """What was red on the tree before the run and is green now."""
    trusted = restored is None or restored.green
    by_model = {criterion.id for criterion in criteria if criterion.check_origin == "model"}
    proof = fail_to_pass(baseline, test) if trusted else []
    proof += [
        f"{check.criterion_id}: `{check.what}`"
        f"{', a check of the planner,' * (check.criterion_id in by_model)}"
        " failed before and passes now"
        for check in checks
        if check.outcome == "passed" and check.before == "red"
    ]
    return proof
