"""Evidence about one tree: the test command, every check, the guard, proof of work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agentrunner.evidence.box import (
    TIMED_OUT,
    CopyOfRepo,
    DecisionBox,
    Ran,
    not_ready,
    why_not_started,
)
from agentrunner.evidence.checks import Command, command_of, read_check
from agentrunner.evidence.counts import Counts, disbelief
from agentrunner.evidence.guard import Changes, Guard, changes_between
from agentrunner.evidence.steering import is_executable_config, matches
from agentrunner.evidence.verdict import fail_to_pass
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

Colour = Literal["green", "red", "unknown"]
Emit = Callable[..., Any]


@dataclass(frozen=True)
class WorkerChange:
    """The trees before and after one worker run: what in between is the worker's doing."""

    before: str
    after: str


@dataclass
class Gatherer:
    """Finds out what is true about a tree; `emit` receives the events `baseline` and `check`."""

    spec: TaskSpec
    box: DecisionBox
    snapshots: Snapshots
    guard: Guard
    emit: Emit
    box_name: str
    _summed_up: tuple[list[WorkerChange], Changes] = field(
        default_factory=lambda: ([], Changes()), init=False
    )
    """What the worker runs so far came to, so that each is compared once and not every round."""

    @property
    def test(self) -> TestSpec | None:
        """The task's test command."""
        return self.spec.task.test

    async def setup(self) -> None:
        """Run the task's set-up once per box; raises EnvironmentNotReady where it fails."""
        setup = self.spec.task.setup
        if setup is None:
            return
        network: Literal["none", "full"] = (
            "full" if self.spec.runner.sandbox.network == "full" else "none"
        )
        ran = await self.box.run(
            setup.command, timeout_sec=setup.timeout_sec, network=network, name="setup"
        )
        self.emit("check", target="setup", command=setup.command, exit_code=ran.exit_code,
                  outcome="passed" if ran.exit_code == 0 else "failed")  # fmt: skip
        if ran.exit_code != 0:
            why = (ran.tail.strip().splitlines() or ["no output"])[-1]
            raise not_ready(setup.command, ran, why, self.box_name, what="The set-up command")

    async def baseline(self, criteria: Sequence[Criterion], origin: str) -> Baseline:
        """The tree before the run: its tests and the checks that the task brings.

        Raises EnvironmentNotReady where one of them cannot start; nothing is spent by then.
        """
        tree = await self._tree()
        await asyncio.to_thread(self.box.warm)
        outcome = await self._first_test()
        checks = await self._colours(criteria, tree, None, must_start=True)
        await asyncio.to_thread(lambda: self.box.seal(self.snapshots.ignored_folders()))
        after = await self._tree()
        written = await asyncio.to_thread(changes_between, self.snapshots, tree, after)
        return Baseline(
            tree=after, origin=origin, test=outcome, checks=checks, test_writes=written.all[:200]
        )

    async def look_again(self, baseline: Baseline, criteria: Sequence[Criterion]) -> Baseline:
        """The same tree before the run, asked what a changed task asks now.

        On a copy: the present tree holds the work of earlier attempts. Raises EnvironmentNotReady.
        """
        test = await self.guard.on_copy(baseline.tree, self._first_test)
        checks = await self.colours(criteria, baseline.tree, must_start=True)
        return baseline.model_copy(update={"test": test, "checks": checks})

    async def colours(
        self, criteria: Sequence[Criterion], tree: str, *, must_start: bool = False
    ) -> dict[str, Colour]:
        """What each criterion's own check says on `tree`, the one before the run.

        On a copy of it where somebody has changed the repository since.
        """

        def look(copy: CopyOfRepo | None) -> Awaitable[dict[str, Colour]]:
            return self._colours(criteria, tree, copy, must_start=must_start)

        if not criteria or await self._tree() == tree:
            return await look(None)
        return await self.guard.on_copy(tree, look)

    async def _colours(
        self,
        criteria: Sequence[Criterion],
        tree: str,
        copy: CopyOfRepo | None,
        *,
        must_start: bool,
    ) -> dict[str, Colour]:
        colours: dict[str, Colour] = {}
        for criterion in criteria:
            outcome = await self._check(criterion, tree, [], must_start=must_start, copy=copy)
            if outcome is None:
                continue
            colours[criterion.id] = _COLOURS[outcome.outcome]
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

        `worker_changes` are the run's worker runs so far: a person's edits between them are not
        the worker's. `suspicions` are findings made elsewhere (changed dependencies).
        """
        tree = await self._tree()
        changes = await asyncio.to_thread(self._by_workers, worker_changes)
        run_changes = await asyncio.to_thread(changes_between, self.snapshots, baseline.tree, tree)
        outcome = await self._test_now(baseline, changes)
        checks = [
            check
            for criterion in criteria
            if (check := await self._check(criterion, tree, run_changes.all, baseline.checks))
        ]
        findings = [*suspicions, *self._protected(changes)]
        restored = None
        if self.test is not None and outcome is not None and outcome.green:
            restored, finding = await self.guard.old_tests_pass(
                tree, baseline, changes, self._run_copy
            )
            findings += [finding] if finding else []
        proof = _fail_to_pass(baseline, outcome, restored, checks)
        if not proof and outcome is not None and outcome.green and not _blocking(findings):
            proof = await self._new_tests_prove(baseline, tree, changes)
        after = await self._tree()
        findings += await asyncio.to_thread(self._written_by_checks, tree, after, baseline)
        return Evidence(
            tree=tree,
            tree_after=after,
            test=outcome,
            restored_test=restored,
            checks=checks,
            findings=findings,
            proof=[] if _blocking(findings, "dependencies_changed") else proof,
            changed_files=run_changes.all[:500],
            lines_added=run_changes.lines_added,
            lines_removed=run_changes.lines_removed,
            tests_added=len(changes.tests_added),
        )

    # -- the test command -------------------------------------------------------------------

    async def _run_test(self, copy: CopyOfRepo | None = None) -> Ran:
        assert self.test is not None
        return await self.box.run(
            self.test.command,
            cwd=self.test.cwd,
            timeout_sec=self.test.timeout_sec,
            copy=copy,
            name="test",
        )

    async def _first_test(self, copy: CopyOfRepo | None = None) -> TestOutcome | None:
        """The test command before the run; raises EnvironmentNotReady where it cannot start."""
        if self.test is None or not self.test.baseline:
            return None
        ran = await self._run_test(copy)
        if why := why_not_started(self.test.command, ran, Path(self.spec.repo), is_test=True):
            raise not_ready(self.test.command, ran, why, self.box_name, what="The test command")
        outcome = self._test_outcome(ran, None)
        self.emit(
            "baseline", target="test", command=self.test.command,
            exit_code=outcome.exit_code, outcome="passed" if outcome.green else "failed",
            passed=outcome.passed, failed=outcome.failed,
        )  # fmt: skip
        return outcome

    async def _run_copy(self, copy: CopyOfRepo, before: TestOutcome | None) -> TestOutcome:
        return self._test_outcome(await self._run_test(copy), before)

    async def _test_now(self, baseline: Baseline, changes: Changes) -> TestOutcome | None:
        if self.test is None:
            return None
        wanted = any(matches(path, self.test.may_change) for path in changes.tests_touched)
        outcome = self._test_outcome(await self._run_test(), baseline.test, fewer_is_wanted=wanted)
        self.emit(
            "check", target="test", command=self.test.command, exit_code=outcome.exit_code,
            outcome="passed" if outcome.green else "failed",
            passed=outcome.passed, failed=outcome.failed, finding=outcome.finding,
        )  # fmt: skip
        return outcome

    def _test_outcome(
        self, ran: Ran, before: TestOutcome | None, *, fewer_is_wanted: bool = False
    ) -> TestOutcome:
        assert self.test is not None
        counts = ran.counts
        finding = disbelief(ran.exit_code, counts, _counts(before), fewer_is_wanted=fewer_is_wanted)
        if ran.timed_out:
            finding = f"timed out after {self.test.timeout_sec:g} s"
        return TestOutcome(
            command=self.test.command,
            exit_code=ran.exit_code,
            passed=counts.passed if counts else None,
            failed=counts.failed if counts else None,
            skipped=counts.skipped if counts else None,
            failing=counts.failing if counts else [],
            finding=finding,
            output=ran.output,
            tail=ran.tail,
            duration_sec=ran.duration_sec,
        )

    # -- checks -----------------------------------------------------------------------------

    async def _check(
        self,
        criterion: Criterion,
        tree: str,
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
        reading = read_check(check, lambda path: self.snapshots.read(tree, path), changed)
        if reading is not None:
            outcome = CheckOutcome(
                criterion_id=criterion.id, what=what, before=was, detail=reading.detail,
                outcome="passed" if reading.passed else "failed",
            )  # fmt: skip
        elif (command := command_of(check, self.test)) is None:
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
            name=criterion.id,
        )  # fmt: skip
        why = why_not_started(command.shell, ran, Path(self.spec.repo), is_test=False)
        if why and must_start:
            raise not_ready(
                command.shell, ran, why, self.box_name, what=f"The check of {criterion.id}"
            )
        passed = ran.exit_code == command.expect_exit and not ran.timed_out
        doubt = disbelief(ran.exit_code, ran.counts, None) if passed else ""
        detail = why or doubt or (f"timed out after {command.timeout_sec:g} s" * ran.timed_out)
        if not (passed or detail) and ran.tail.strip():
            detail = f"exit {ran.exit_code}: {ran.tail.strip().splitlines()[-1][:200]}"
        unsure = bool(why) and criterion.check_origin == "model"
        return CheckOutcome(
            criterion_id=criterion.id,
            what=what,
            outcome="not_run" if unsure else "passed" if passed and not doubt else "failed",
            exit_code=TIMED_OUT if ran.timed_out else ran.exit_code,
            before=was,
            detail=detail,
            output=ran.output,
        )

    # -- what else the trees tell -----------------------------------------------------------

    async def _tree(self) -> str:
        return (await asyncio.to_thread(self.snapshots.take)).tree

    def _by_workers(self, worker_changes: Sequence[WorkerChange]) -> Changes:
        """What the run's workers did together, a person's edits in between left out."""
        done, total = self._summed_up
        if worker_changes[: len(done)] != done:
            done, total = [], Changes()
        for change in worker_changes[len(done) :]:
            total = total.then(changes_between(self.snapshots, change.before, change.after))
        self._summed_up = list(worker_changes), total
        return total.named_by(self.test.command if self.test else "")

    def _protected(self, changes: Changes) -> list[Finding]:
        task = self.spec.task
        protected = [path for path in changes.all if matches(path, task.protect)]
        executable = [
            path
            for path in changes.all
            if is_executable_config(path)
            and not matches(path, task.allow_changes)
            and path not in protected
        ]
        paths = [*protected, *executable]
        if not paths:
            return []
        message = f"Protected paths were changed: {', '.join(paths[:5])}"
        return [Finding(code="protected_path", message=message, paths=paths[:50])]

    async def _new_tests_prove(self, baseline: Baseline, tree: str, changes: Changes) -> list[str]:
        """Tests the worker wrote that fail on the tree before the run and pass now."""
        written = changes.tests_written
        if not written:
            return []
        outcome = await self.guard.run_on_old_code(
            baseline.tree, tree, written, lambda copy: self._run_copy(copy, None)
        )
        if outcome.green:
            return []
        files = ", ".join(written[:3])
        return [f"new tests fail on the tree before the run and pass now: {files}"]

    def _written_by_checks(self, tree: str, after: str, baseline: Baseline) -> list[Finding]:
        """The tree must be the same before and after the checks, but for what tests write."""
        if after == tree:
            return []
        moved = changes_between(self.snapshots, tree, after)
        moved = moved.named_by(self.test.command if self.test else "")
        known = set(baseline.test_writes)
        grave = [path for path in moved.touched_or_steering if path not in known]
        if grave:
            return [
                Finding(
                    code="tree_changed_by_checks",
                    message=f"Files changed while the checks ran: {', '.join(grave[:5])}",
                    paths=grave[:50],
                )
            ]
        message = f"The checks wrote files into the repository: {', '.join(moved.all[:5])}"
        return [
            Finding(code="checks_wrote_files", message=message, paths=moved.all[:50], blocks=False)
        ]


_COLOURS: dict[str, Colour] = {"passed": "green", "failed": "red", "not_run": "unknown"}


def _counts(outcome: TestOutcome | None) -> Counts | None:
    if outcome is None or outcome.passed is None:
        return None
    return Counts(outcome.passed, outcome.failed or 0, outcome.skipped or 0)


def _blocking(findings: Sequence[Finding], code: str = "") -> bool:
    return any(f.blocks and (not code or f.code == code) for f in findings)


def _fail_to_pass(
    baseline: Baseline,
    test: TestOutcome | None,
    restored: TestOutcome | None,
    checks: Sequence[CheckOutcome],
) -> list[str]:
    """What was red on the tree before the run and is green now."""
    trusted = restored is None or restored.green
    proof = fail_to_pass(baseline, test) if trusted else []
    proof += [
        f"{check.criterion_id}: `{check.what}` failed before and passes now"
        for check in checks
        if check.outcome == "passed" and check.before == "red"
    ]
    return proof
