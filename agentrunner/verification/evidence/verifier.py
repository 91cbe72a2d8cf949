"""What is true about a tree: the outcome of the test command and of every check, in clean rooms.

`baseline` measures the tree before the run; `measure` measures the tree of a round, once. What a
request for completion needs beyond that is added by `Prover.prove` (see `proof.proving`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from glob import escape
from pathlib import Path, PurePath
from typing import Any

from agentrunner.config.sandbox import KEPT
from agentrunner.config.spec import TaskSpec, TestSpec
from agentrunner.errors import EnvironmentNotReady
from agentrunner.git.snapshots import Snapshots
from agentrunner.git.submodules import by_submodule, remote_has, submodules_in
from agentrunner.state.red_tests import as_values, path_of, shown_red
from agentrunner.state.run_state import (
    Baseline,
    CheckOutcome,
    Criterion,
    Evidence,
    Finding,
    TestOutcome,
)
from agentrunner.storage.failpoints import reach
from agentrunner.text.mentions import speaks_of
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.check_runner import (
    MOST_PATHS,
    CheckRunner,
    Emit,
    Tried,
    is_one_stage,
)
from agentrunner.verification.evidence.claims import (
    Claims,
    claims_of,
    is_listed,
    listed_but_green,
    listed_for_nothing,
    red_names,
)
from agentrunner.verification.evidence.findings import (
    checkout_lacks,
    empty_folders,
    first_few,
    flaky,
    ignored_lost,
    left_in_submodule,
    links_out,
    may_be_old,
    not_held,
    not_in_git,
    not_kept,
)
from agentrunner.verification.evidence.ignored_builds import IgnoredBuilds, is_compiled
from agentrunner.verification.evidence.measure import Measurer
from agentrunner.verification.evidence.outcomes import Colour, named_outcome, outcome_of
from agentrunner.verification.evidence.target import Measured, Target, target_of, test_target
from agentrunner.verification.evidence.task_set_up import TaskSetUp
from agentrunner.verification.evidence.wanted import mapped_by, named_by, wanted_by
from agentrunner.verification.results.model import ReadFile, Results
from agentrunner.verification.results.registry import readers_of
from agentrunner.verification.rooms.decision_sandbox import TEST_COMMAND, DecisionSandbox, not_ready
from agentrunner.verification.rooms.lacking_packages import package_lacked_by
from agentrunner.verification.rooms.left_out import LeftOut, is_folder_named, words_of_red
from agentrunner.verification.rooms.room import Room, Rooms
from agentrunner.verification.rooms.start_up import (
    NO_TESTS,
    may_be_made,
    missing_program,
    tests_that_could_not_run,
    why_no_test_says_anything,
)
from agentrunner.verification.trees import Changes, Trees, WorkerChange, delivered_tree

MOST_KNOWN = 50
ONCE_MORE = "once more"
COLOURS: Mapping[str, Colour] = {"passed": "green", "failed": "red", "not_run": "unknown"}


@dataclass
class Verifier:
    """Measures trees. `emit` receives the events `awaiting`, `baseline`, `check` and `warning`."""

    spec: TaskSpec
    sandbox: DecisionSandbox
    snapshots: Snapshots
    rooms: Rooms
    measurer: Measurer
    emit: Emit
    accepted_red: Sequence[str] = ()
    """Names of tests that a person accepted as known reds in this run."""

    def __post_init__(self) -> None:
        self.trees = Trees(self.snapshots, self.spec.task)
        self.left_out = LeftOut(self.rooms)
        self.builds = IgnoredBuilds(self.rooms)
        self.check_runner = CheckRunner(self.spec, self.sandbox, self.measurer, self.emit)
        self.set_up = TaskSetUp(self.spec, self.sandbox, self.rooms, self.emit)
        self.announce = self.check_runner.announce

    def clear(self) -> None:
        """Remove rooms and reports that a killed process has left. Blocks."""
        self.rooms.clear()
        self.measurer.clear()

    @property
    def test(self) -> TestSpec | None:
        """The task's test command."""
        return self.spec.task.test

    # -- before the run -------------------------------------------------------------------------

    async def baseline(self, criteria: Sequence[Criterion], origin: str) -> Baseline:
        """Measure the tree before the run: its tests and the checks that the task brings.

        What git ignores is sealed here. Raises EnvironmentNotReady where a command cannot start,
        and where a known red of the task file is green; nothing has been spent by then.
        """
        tree = await asyncio.to_thread(self.trees.now)
        await asyncio.to_thread(self.rooms.sealed.seal, self.snapshots)
        await asyncio.to_thread(self.sandbox.warm)
        await asyncio.to_thread(self._warn_about_large_files, tree)
        found = await self._measure_old(Baseline(tree=tree, origin=origin), criteria)
        await asyncio.to_thread(lambda: self.sandbox.seal(self.snapshots.ignored_folders()))
        return found

    def _warn_about_large_files(self, tree: str) -> None:
        large = self.snapshots.large_in(tree)
        if large:
            most = self.spec.runner.sandbox.keep_files_up_to or KEPT
            self.emit("warning", code="large-files", message=large_files(large, most))

    async def look_again(self, baseline: Baseline, criteria: Sequence[Criterion]) -> Baseline:
        """Measure the tree before the run again, for a task that has changed since.

        Also for a run that an older version began: what git ignores is then sealed now, late, in
        its present state. Raises EnvironmentNotReady.
        """
        await asyncio.to_thread(self.rooms.sealed.seal_once, self.snapshots)
        return await self._measure_old(baseline, criteria)

    async def look_afresh(self, baseline: Baseline, criteria: Sequence[Criterion]) -> Baseline:
        """The same, where nothing is compiled yet: the test command compiles what it imports.

        No check does, for a planner may have written it.
        """
        await asyncio.to_thread(self.rooms.sealed.seal_once, self.snapshots)
        return await self._measure_old(baseline, criteria, warm=True)

    def has_sealed(self) -> bool:
        """Whether what git ignores was sealed, as runs of this version do. Blocks."""
        return self.rooms.sealed.made

    async def _measure_old(
        self, baseline: Baseline, criteria: Sequence[Criterion], *, warm: bool = False
    ) -> Baseline:
        read = await asyncio.to_thread(self.snapshots.reader, baseline.tree)
        async with self.rooms.where_needed(baseline.tree, self._executes(criteria, read)) as room:
            if warm:
                await asyncio.to_thread(self.sandbox.warm)
            test, writes = await self._first_test(room, read, criteria)
            if warm:
                await asyncio.to_thread(lambda: self.sandbox.seal(self.snapshots.ignored_folders()))
            reach("during_baseline")
            results = await asyncio.to_thread(self.measurer.kept, test.results) if test else None
            listed = (await asyncio.to_thread(self.claims, results, criteria)).listed
            checks = await self._first_checks(criteria, room, read, listed)
        return self.measurer.remember(baseline).model_copy(
            update={
                "test": test,
                "checks": colours_of(criteria, checks),
                "check_outcomes": checks,
                "test_writes": sorted(writes)[:MOST_PATHS],
                "measured_with": self.measured_with(criteria),
            }
        )

    def measured_with(self, criteria: Sequence[Criterion]) -> str:
        """A digest of what the tree before the run is measured with: set-up, tests and checks."""
        task = self.spec.task
        parts = [task.setup, task.test, *(one.check for one in criteria)]
        values = [one and one.model_dump(mode="json") for one in parts]
        text = json.dumps([values, task.env, [one.id for one in criteria]], sort_keys=True)
        return hashlib.sha256(to_bytes(text)).hexdigest()

    async def first_tries(self, criteria: Sequence[Criterion], baseline: Baseline) -> list[Tried]:
        """Try these criteria's own checks on the tree before the run; return how each ran."""
        self._recall(baseline)
        read = await asyncio.to_thread(self.snapshots.reader, baseline.tree)
        found = []
        needed = self._executes(criteria, read, test=False)
        async with self.rooms.where_needed(baseline.tree, needed) as room:
            for criterion in criteria:
                tried = await self.check_runner.first_try(criterion, room, read)
                found.append(tried)
                self._emit_first(tried.outcome)
        return found

    async def _first_test(
        self, room: Room, read: ReadFile, criteria: Sequence[Criterion]
    ) -> tuple[TestOutcome | None, list[str]]:
        """The test command's outcome before the run, and the paths that it writes.

        None where there is no test command, or it is not run before the work. Raises
        EnvironmentNotReady as `baseline` does.
        """
        if self.test is None or not self.test.baseline:
            return None, []
        target = test_target(self.test)
        self.announce(target)
        measured = await self.measurer.find_reporter(target, room, read)
        wanted = f"{self.spec.title}\n{self.spec.wanted}"
        why = why_no_test_says_anything(
            target.shell, measured.ran, measured.results, Path(self.spec.repo), wanted, target.cwd
        )
        why = why or await asyncio.to_thread(
            self._not_installed, target, measured.ran.exit_code, wanted, read
        )
        if why and why != NO_TESTS:
            raise not_ready(
                target.shell,
                measured.ran,
                why,
                self.sandbox.describe(),
                what="The test command",
                path=TEST_COMMAND,
                place=self.spec.places.get(TEST_COMMAND) or self.spec.places.get("task.test", ""),
            )
        if green := listed_but_green(self.test.known_red, measured.results):
            raise EnvironmentNotReady(
                f"{green[0]} is listed as a known red and is green.",
                path=self._place_of_known_red(green[0]),
                remedy=f"take {green[0]} off the list",
                nothing_spent=True,
            )
        if idle := listed_for_nothing(self.test.known_red, measured.results):
            self.emit(
                "warning", code="known-red-unknown",
                message=f"No test is called {first_few(idle)}, which is listed as a known red",
            )  # fmt: skip
        ref = await asyncio.to_thread(self.measurer.keep, measured.results, target.id)
        outcome = outcome_of(measured, results=ref)
        known = sorted(self.claims(measured.results, criteria).known)
        self.emit(
            "baseline", target="test", command=target.shell,
            exit_code=outcome.exit_code, outcome="passed" if outcome.green else "failed",
            passed=outcome.passed, failed=outcome.failed,
            red=as_values(shown_red(outcome)), output=path_of(outcome.output),
            known_red=known[:MOST_KNOWN], known_red_in_all=len(known),
        )  # fmt: skip
        await asyncio.to_thread(self._warn_about_left_out_files, outcome)
        return outcome, list(measured.written)

    def _not_installed(self, target: Target, exit_code: int, wanted: str, read: ReadFile) -> str:
        """Why the test command's own program is to be installed first; "" where it is not.

        A program of the repository may be what is to be written, but for a test tool that we know,
        and for one that git ignores; that one a set-up can make of what the work adds.
        """
        path = missing_program(target.shell, exit_code, Path(self.spec.repo), target.cwd)
        if not path or self.spec.task.setup or may_be_made(path, read):
            return ""
        ignored = self.snapshots.ignored_paths([path])
        if not ignored and not readers_of(target.shell, target.cwd, read):
            return ""
        name = Path(path).name  # a text that names the language asks nobody to write `python`
        if speaks_of(wanted, path if shutil.which(name) else name):
            return ""
        why = "and git ignores it" if ignored else "and it runs the tests"
        return f"{path}: not found, {why}: it has to be installed or built first"

    def _place_of_known_red(self, name: str) -> str:
        """The file and line where a known red is listed; the setting where that is not known."""
        key, places = "task.test.known_red", self.spec.places
        listed = self.test.known_red if self.test else []
        own = places.get(f"{key}[{listed.index(name)}]") if name in listed else None
        return own or places.get(key) or key

    def _warn_about_left_out_files(self, outcome: TestOutcome) -> None:
        words = words_of_red(outcome, [])
        empty = [one for one in self.snapshots.empty_at_first() if is_folder_named(one, words)]
        file = "A file in it, such as .gitkeep, or "
        for named, why, remedy in (
            (empty, "an empty folder, which git does not hold", file),
            (self.left_out.named(words), "git ignores it and it is too large to be kept", ""),
        ):
            if named:
                message = (
                    f"The tests are red and name {', '.join(named[:5])}: {why}, so no clean room"
                    f" has it. {remedy}task.setup.command can make it"
                )
                self.emit("warning", code="left-out", message=message)

    async def _first_checks(
        self,
        criteria: Sequence[Criterion],
        room: Room,
        read: ReadFile,
        listed: Collection[str],
    ) -> list[CheckOutcome]:
        found = []
        for criterion in criteria:
            outcome = await self.check_runner.check(
                criterion, room, read, [], first=True, listed=listed
            )
            if outcome is not None:
                found.append(outcome)
                self._emit_first(outcome)
        return found

    def _emit_first(self, outcome: CheckOutcome) -> None:
        self.emit(
            "baseline", target=outcome.criterion_id, command=outcome.what,
            exit_code=outcome.exit_code, outcome=outcome.outcome,
        )  # fmt: skip

    # -- a round --------------------------------------------------------------------------------

    async def measure(
        self,
        criteria: Sequence[Criterion],
        baseline: Baseline,
        worker_changes: Sequence[WorkerChange],
        *,
        suspicions: Sequence[Finding] = (),
        careful: bool = False,
    ) -> Evidence:
        """Measure the present tree once: everything that can be executed or read about it.

        `worker_changes` are the run's worker runs so far: a person's edits between them are not
        the worker's. `suspicions` are findings made elsewhere. With `careful`, and
        where a test is red that was green before the run, a red test command is run again before
        it counts. Raises SandboxError and OSError.
        """
        tree, total, own = await asyncio.to_thread(self._compare, baseline, worker_changes)
        lost = await asyncio.to_thread(self.left_out.lost, baseline.test_writes)
        suspicions = [*suspicions, *([ignored_lost(lost)] if lost else [])]
        return await self.measure_tree(
            tree, criteria, baseline, total, own, suspicions=suspicions, careful=careful
        )

    async def measure_tree(
        self,
        tree: str,
        criteria: Sequence[Criterion],
        baseline: Baseline,
        total: Changes,
        own: Changes,
        *,
        suspicions: Sequence[Finding] = (),
        careful: bool = False,
    ) -> Evidence:
        """Measure any tree like `measure`; `own` is the part of `total` that workers changed."""
        self._recall(baseline)
        room_tree, lacking, carried = await asyncio.to_thread(
            delivered_tree, self.snapshots, self.spec, tree, baseline.tree, total
        )
        read = await asyncio.to_thread(self.snapshots.reader, room_tree)
        findings = [
            *map(self._as_notice_if_sealed, suspicions),
            *await asyncio.to_thread(self._about_paths, own, baseline.tree, tree),
        ]
        if carried:
            findings.append(not_in_git(carried))
        began = time.time()
        async with self.rooms.where_needed(room_tree, self._executes(criteria, read)) as room:
            room, failed = await self.set_up.in_room(room, total)
            findings += failed
            results = await asyncio.to_thread(self.before, baseline)
            claims = await asyncio.to_thread(self.claims, results, criteria)
            test = await self._test_now(
                room, read, baseline, results, claims, total, careful=careful
            )
            before = {one.criterion_id: one for one in baseline.check_outcomes}
            checks = []
            for criterion in criteria:
                outcome = await self.check_runner.check(
                    criterion, room, read, total.all,
                    was=before, colours=baseline.checks, listed=claims.listed,
                )  # fmt: skip
                if outcome is not None:
                    checks.append(outcome)
            checks += await asyncio.to_thread(self._named_in_suite, criteria, results, test)
            if words_of_red(test, checks):
                findings += await asyncio.to_thread(
                    self._old_builds, own, baseline.tree, room, began
                )
        handed_over = own.only(set(own.all).difference(lacking))
        if words := words_of_red(test, checks):
            named = await asyncio.to_thread(self.left_out.changed, words)
            lacking = [*lacking, *(path for path in named if path not in lacking)]
        evidence = Evidence(
            tree=tree,
            tree_after=tree,
            test=test,
            checks=checks,
            proof=_facts_of_turning(baseline, test, checks, criteria),
            changed_files=handed_over.all[:MOST_PATHS],
            deleted_files=sorted(handed_over.deleted)[:MOST_PATHS],
            lines_added=handed_over.lines_added,
            lines_removed=handed_over.lines_removed,
        )
        if evidence.red and lacking:
            findings.append(checkout_lacks(lacking))
        if test is not None and test.flaky:
            findings.append(flaky(test.flaky, "Red", "green"))
        empty = await asyncio.to_thread(
            self.left_out.empty_folders, self.trees.empty, baseline.tree, all_of_them=evidence.red
        )
        if empty:
            findings.append(empty_folders(empty, red=evidence.red))
        return evidence.model_copy(update={"findings": findings})

    def _about_paths(self, own: Changes, before: str, tree: str) -> list[Finding]:
        """What a tree's paths say, before anything runs: protected, not kept, in submodules, …"""
        found = self.trees.protected(own, self.spec.wanted, before, tree)
        if unkept := {*self.trees.unkept, *self.snapshots.unkept_between(before, tree)}:
            found.append(not_kept(sorted(unkept)))
        if self.trees.skipped:
            found.append(not_held(self.trees.skipped))
        found += self._in_submodules(own, before, tree)
        if links := self.left_out.links_out(tree, own.all):
            found.append(links_out(links))
        return found

    def delivered(self, before: str, tree: str) -> tuple[str, Changes]:
        """The tree that a run hands over of `tree`, and what it changed. Blocks."""
        left = self.trees.between(before, tree)
        new, *_ = delivered_tree(self.snapshots, self.spec, tree, before, left)
        return new, self.trees.between(before, new)

    def _old_builds(self, own: Changes, before: str, room: Room, began: float) -> list[Finding]:
        """A notice where red tests may load what old sources were built to, without a set-up."""
        sources = [path for path in own.all if is_compiled(path)]
        if self.spec.task.setup is not None or not sources:
            return []
        builds = self.builds.of(before, room.tree, sources)
        places = {path: room.copy.path / path for path in builds}
        old = [one for one, at in places.items() if at.is_file() and at.lstat().st_mtime < began]
        return [may_be_old(sorted(old), sources)] if old else []

    def _in_submodules(self, own: Changes, before: str, tree: str) -> list[Finding]:
        """A finding for each submodule in which workers left what its remote does not have."""
        known = submodules_in(self.rooms.sealed.git / "index")
        folder, old = self.snapshots.work_tree, self.snapshots.list(before)
        found = by_submodule(own.all, known, folder, old)
        if not found:
            return []
        # New binary files are what a build or a test leaves beside its sources.
        changes = self.snapshots.changes(before, tree)
        built = {one.path for one in changes if one.kind == "added" and one.added is None}
        found = {name: [one for one in paths if one not in built] for name, paths in found.items()}
        found = {name: paths for name, paths in found.items() if paths}
        entries = {
            path: one for path, one in self.snapshots.list(tree).items() if path not in built
        }
        git, remotes = self.snapshots.git, self.rooms.sealed.remotes()
        return [
            left_in_submodule(name, paths)
            for name, paths in found.items()
            if not remote_has(git, folder, name, entries, remotes.get(name, ()))
        ]

    @asynccontextmanager
    async def room_for(
        self,
        tree: str,
        total: Changes | None = None,
        prepare: Callable[[Room], object] = lambda room: room,
    ) -> AsyncIterator[tuple[Room, Callable[..., Coroutine[Any, Any, Measured]]]]:
        """Open a room with a tree, and a function that runs targets in it as `Measurer.run` does.

        It is set up as `total`, the changes of the tree, requires; `prepare` is called before that,
        beside the loop. Raises SandboxError and OSError.
        """
        read = await asyncio.to_thread(self.snapshots.reader, tree)
        async with self.rooms.open(tree) as room:
            await asyncio.to_thread(prepare, room)
            if total is not None:
                room, _ = await self.set_up.in_room(room, total)
            yield room, partial(self.measurer.run, room=room, read=read)

    def _executes(
        self, criteria: Sequence[Criterion], read: ReadFile, *, test: bool = True
    ) -> bool:
        """Whether the test command (unless `test` is False) or a check executes anything."""
        if test and self.test is not None:
            return True
        return any(target_of(one, self.spec, read) is not None for one in criteria)

    def _recall(self, baseline: Baseline) -> None:
        """Take from the baseline how each target reports and which tree is the old one."""
        self.measurer.recall(baseline)
        self.rooms.since = baseline.tree

    def _as_notice_if_sealed(self, finding: Finding) -> Finding:
        """Return a finding that no longer blocks where only packages were changed that are sealed,
        or that were not there before the run.

        They decide nothing: every room has them as they were before, or has none. Where not all
        changes are listed, one of the others may decide.
        """
        copied = {one.name: one.copied for one, _ in self.rooms.sealed.folders()}
        decide = [
            path
            for path in finding.paths
            if not copied.get(path) and any(map(PurePath(path).is_relative_to, copied))
        ]
        listed = len(finding.paths) < MOST_PATHS
        if finding.code != "dependencies_changed" or decide or not listed:
            return finding
        return finding.model_copy(update={"blocks": False})

    def _compare(
        self, baseline: Baseline, worker_changes: Sequence[WorkerChange]
    ) -> tuple[str, Changes, Changes]:
        """The present tree, its changes against the tree before the run, and the workers' part."""
        tree = self.trees.now()
        total = self.trees.between(baseline.tree, tree)
        own = self.trees.by_workers(worker_changes, total)
        if own.all == total.all:
            return tree, total, total
        return tree, total, replace(own, lines=total.only(own.all).lines)

    def claims(self, before: Results | None, criteria: Sequence[Criterion]) -> Claims:
        """Which tests that are red on the old tree have to turn green, and which are known reds."""
        return claims_of(
            before,
            wanted_by(self.spec, criteria),
            listed=[*(self.test.known_red if self.test else ()), *map(escape, self.accepted_red)],
            mapped=mapped_by(criteria),
            named=named_by(criteria),
            only_listed=self.spec.completion == "strict" or not criteria,
        )

    def _named_in_suite(
        self, criteria: Sequence[Criterion], before: Results | None, test: TestOutcome | None
    ) -> list[CheckOutcome]:
        """The outcomes of tests that people named and that only the test command runs. Blocks."""
        named = [one for one in criteria if one.tests_of_person]
        now = self.measurer.kept(test.results) if test and named else None
        outcomes = [] if now is None else [named_outcome(one, now, before) for one in named]
        for outcome in outcomes:
            self.check_runner.emit_check(outcome)
        return outcomes

    async def _test_now(
        self,
        room: Room,
        read: ReadFile,
        baseline: Baseline,
        before: Results | None,
        claims: Claims,
        total: Changes,
        *,
        careful: bool,
    ) -> TestOutcome | None:
        if self.test is None:
            return None
        target = test_target(self.test)
        self.announce(target)
        measured = await self.measurer.run(target, room, read)

        def summarise(one: Measured) -> TestOutcome:
            outcome = outcome_of(
                one,
                baseline.test,
                before,
                claims,
                fewer_is_wanted=bool(self.test and self.test.may_change),
                one_stage=is_one_stage(target.shell, target.cwd, read),
                results=self.measurer.keep(one.results, target.id),
            )
            reds = one.results.red if one.results and not outcome.hint else []
            lacks = (package_lacked_by(test.message, room.copy.path, "") for test in reds)
            if why := next(filter(None, lacks), ""):
                hint = f"{why}; task.setup.command, with task.setup.network, installs packages"
                return outcome.model_copy(update={"hint": hint})
            return outcome

        outcome = await asyncio.to_thread(summarise, measured)
        doubtful = careful or bool(outcome.newly_red)
        if doubtful and not outcome.green and measured.results and not measured.ran.timed_out:
            again, flaky = await self._run_red_again(target, room.tree, total, measured, claims)
            if flaky:
                outcome = (await asyncio.to_thread(summarise, again)).model_copy(
                    update={"flaky": flaky[:50]}
                )
        self.emit(
            "check", target="test", command=target.shell, exit_code=outcome.exit_code,
            outcome="passed" if outcome.green else "failed",
            passed=outcome.passed, failed=outcome.failed, finding=outcome.finding,
            red=as_values(shown_red(outcome)), output=path_of(outcome.output),
        )  # fmt: skip
        return outcome

    async def _run_red_again(
        self,
        target: Target,
        tree: str,
        total: Changes,
        first: Measured,
        claims: Claims,
    ) -> tuple[Measured, list[str]]:
        """Run a red test command once more, in another room; return that run and the flaky names.

        Flaky are those that were red first and pass now, known reds left out.
        """
        self.announce(target, ONCE_MORE)
        async with self.room_for(tree, total) as (_, run):
            again = await run(target)
        if again.results is None or first.results is None:
            return again, []
        red = [name for name in red_names(first.results) if name not in claims.known]
        return again, [name for name in red if again.results.passed(name)]

    def accept_reds(self, names: Sequence[str]) -> None:
        """Take more tests for known reds, by their whole names, as a person said."""
        self.accepted_red = list(dict.fromkeys([*self.accepted_red, *names]))

    def could_not_run(self, baseline: Baseline) -> dict[str, str]:
        """Tests that could say nothing before the run, with the reason, where others could. Blocks.

        Those that are listed as known reds are left out: of them a person knows.
        """
        before = self.before(baseline)
        if before is None or self.test is None:
            return {}
        wanted = f"{self.spec.title}\n{self.spec.wanted}"
        found = tests_that_could_not_run(before, Path(self.spec.repo), wanted)
        listed = self.test.known_red
        return {name: why for name, why in found.items() if not is_listed(name, listed)}

    def before(self, baseline: Baseline) -> Results | None:
        """The test command's results by name on the old tree. Blocks."""
        return self.measurer.kept(baseline.test.results) if baseline.test else None


def colours_of(
    criteria: Sequence[Criterion], outcomes: Sequence[CheckOutcome]
) -> dict[str, Colour]:
    """Each check's colour on the old tree, by criterion id."""
    by_id = {criterion.id: criterion for criterion in criteria}
    found: dict[str, Colour] = {}
    for outcome in outcomes:
        criterion = by_id[outcome.criterion_id]
        # Nothing has changed before the run: a later change proves nothing for a model's claim.
        empty = looks_at_changes(criterion) and criterion.check_origin == "model"
        found[outcome.criterion_id] = "unknown" if empty else COLOURS[outcome.outcome]
    return found


def looks_at_changes(criterion: Criterion) -> bool:
    """Whether a criterion's check asks what changed (kind `diff`)."""
    return criterion.check is not None and criterion.check.kind == "diff"


def large_files(paths: Sequence[str], most: str) -> str:
    """A warning about files that undo cannot bring back, before anything is paid for."""
    what = "is a file" if len(paths) == 1 else "are files"
    return (
        f"{first_few(paths)} {what} of more than {most}: if a worker changes one, undo"
        " cannot bring it back, and the run is for a person to look at."
        " runner.sandbox.keep_files_up_to keeps larger ones"
    )


def _facts_of_turning(
    baseline: Baseline,
    test: TestOutcome | None,
    checks: Sequence[CheckOutcome],
    criteria: Sequence[Criterion],
) -> list[str]:
    """Sentences about what was red before the run and is green now, as far as one run shows."""
    by_model = {criterion.id for criterion in criteria if criterion.check_origin == "model"}
    proof = []
    if test is not None and test.green and baseline.test is not None and not baseline.test.green:
        if test.exit_code == 0:
            proof.append(f"`{test.command}` failed before and passes now")
        elif test.turned:  # with known reds the command fails as before
            more = test.how_many("turned") - 1
            names = f"{test.turned[0]} and {more} more" if more else test.turned[0]
            proof.append(f"{names} failed before and {'pass' if more else 'passes'} now")
    proof += [
        f"{check.criterion_id}: `{check.what}`"
        f"{', a check of the planner,' * (check.criterion_id in by_model)}"
        " failed before and passes now"
        for check in checks
        if check.outcome == "passed" and check.before == "red"
    ]
    return proof
