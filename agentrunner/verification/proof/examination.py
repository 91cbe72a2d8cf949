"""Runs commands on the trees of one examination, and confirms their results."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentrunner.state.run_state import Criterion
from agentrunner.verification.canaries.canary_trees import CommandOnTrees
from agentrunner.verification.canaries.claimed_tests import FailingEnds
from agentrunner.verification.differential import Differential
from agentrunner.verification.evidence.claims import Claims, red_names
from agentrunner.verification.evidence.findings import flaky, inputs_written
from agentrunner.verification.evidence.target import TEST, Measured, Target
from agentrunner.verification.evidence.verifier import ONCE_MORE, Verifier
from agentrunner.verification.inputs.model import Inputs
from agentrunner.verification.inputs.wanted_moves import renames_in
from agentrunner.verification.inputs.words_of_change import is_looked_at
from agentrunner.verification.proof.case import Case, ProofReport
from agentrunner.verification.proof.kept_runs import KeptRuns
from agentrunner.verification.proof.trees_without_work import TreesWithoutWork
from agentrunner.verification.results.names import function_of, passes
from agentrunner.verification.test_changes.moves import renamed_modules
from agentrunner.verification.trees import Changes
from agentrunner.verification.unknown_names import UnknownNames
from agentrunner.verification.world import SnapshotTrees

LONG_SEC = 60
"""A suite that takes longer is confirmed by the tests that matter, not as a whole."""
TRIES, SUSPICIOUS_TRIES = 2, 5
"""How often a colour is asked for again; the second number is for trees of the same code."""
SHORTEST_SEC = 30.0
MUCH_LONGER = 10
"""The least time of a command on a changed copy, and how many times as long as elsewhere it has."""
FLAKY_TRIES = 6
"""How often the old tree is run to see whether a test was flaky before."""


@dataclass(frozen=True)
class Examination:
    """What is known of the trees, and how commands run on them.

    Methods raise what running in rooms raises: SandboxError and OSError.
    """

    verifier: Verifier
    differential: Differential
    world: SnapshotTrees
    criteria: Sequence[Criterion]
    total: Changes
    """What differs between the old tree and the one that is examined."""
    writes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Paths that a target's command also wrote before the run, by target."""
    report: ProofReport = field(default_factory=ProofReport)
    same_code: bool = False
    """Whether only comments and layout were changed, which turns a test green only by chance."""
    kept: KeptRuns | None = None
    unknown: UnknownNames = field(default_factory=UnknownNames)
    took: dict[str, float] = field(default_factory=dict)
    """The longest that a target has taken on a tree that nobody changed on purpose, in seconds."""
    asked_functions: set[tuple[str, str]] = field(default_factory=set)
    """Trees and functions of them that some test was seen to ask; it grows."""

    @property
    def without_work(self) -> TreesWithoutWork:
        return TreesWithoutWork(self.world)

    async def run(self, target: Target, tree: str, only: Sequence[str] = ()) -> Measured:
        """Run a target on a tree, in a room of its own that is set up as that tree requires."""
        limited = self._cut_short(target, tree)

        async def ask() -> Measured:
            return await self._run(limited, tree, only)

        ran = await (self.kept.run(target, tree, only, ask) if self.kept else ask())
        if self._is_as_it_was(tree) and not ran.ran.timed_out:
            self.took[target.id] = max(self.took.get(target.id, 0), ran.ran.duration_sec)
        return ran

    def on_trees(self, target: Target, inputs: Inputs) -> CommandOnTrees:
        """A command on the trees, of which canaries are made; `inputs` are those of one of them."""
        return CommandOnTrees(self.run, target, self.world, inputs)

    async def _run(self, target: Target, tree: str, only: Sequence[str]) -> Measured:
        self.verifier.announce(target, _why_run_on(tree, self.world))
        total = self.total if tree != self.world.old else None
        async with self.verifier.room_for(tree, total) as (_, run):
            return await run(target, only=only)

    def _cut_short(self, target: Target, tree: str) -> Target:
        """A target with less time on a copy that was made on purpose, as it may never end there.

        It has ten times what it takes elsewhere. The code before the run with the tests of now is
        such a copy: what the work fixes may be that something never ends.
        """
        took = self.took.get(target.id, 0)
        if not took or (self._is_as_it_was(tree) and tree != self.world.mixed):
            return target
        limit = max(SHORTEST_SEC, MUCH_LONGER * took)
        return replace(target, timeout_sec=min(target.timeout_sec, limit))

    def _is_as_it_was(self, tree: str) -> bool:
        world = self.world
        return tree in (world.old, world.new, world.kept, world.mixed)

    async def confirmed_red(self, case: Case, names: list[str]) -> list[str]:
        """Those of `names` that are red in each further run on the old tree.

        A test that is red only after others is always green by itself; such a test has to be red
        in whole runs. A test that shows both colours was flaky before, and is left out.
        """
        if not names:
            return []
        red, green = await self._colours(case, self.world.old, names, names, self.tries)
        if green:
            late, _ = await self._colours(case, self.world.old, green, (), self.tries)
            red += late
        return [name for name in names if name in red]

    async def _colours(
        self, case: Case, tree: str, names: Sequence[str], only: Sequence[str], tries: int
    ) -> tuple[list[str], list[str]]:
        """The names that are red in all of so many runs, and those that are green in all."""
        red, green = list(names), list(names)
        for _ in range(tries):
            again = await self.run(case.target, tree, only)
            if again.results is None:
                passed = set(names) if again.passed else set()
            else:
                passed = {name for name in names if again.results.passed(name)}
            red = [name for name in red if name not in passed]
            green = [name for name in green if name in passed]
            if not (red or green):
                break
        return red, green

    @property
    def tries(self) -> int:
        """How often a colour is asked for: more often where the code cannot have changed it."""
        return SUSPICIOUS_TRIES if self.same_code else TRIES

    async def confirmed_green(self, case: Case, names: Sequence[str]) -> bool:
        """Whether tests that passed pass again in another room; else there is a finding.

        They run by themselves, where the tool can select them. One that passes only after others is
        red each time that it does, and is asked again in a whole run.
        """
        if self.confirms_once:
            return await self._wrote_nothing(case)
        again = await self.run(case.target, self.world.new, names)
        lost = _not_passed(names, again, case)
        if lost and not self.by_names(case):
            red, _ = await self._colours(case, self.world.new, lost, lost, SUSPICIOUS_TRIES)
            if set(lost) <= set(red):
                return await self.all_green_again(case, names)
        return await self._judge_confirmation(case, names, again, lost)

    async def all_green_again(self, case: Case, names: Sequence[str] = ()) -> bool:
        """The same for a whole run: no test may be red that was not; `names` have to pass."""
        if self.confirms_once or self.by_names(case):
            return True
        again = await self.run(case.target, self.world.new)
        return await self._judge_confirmation(case, names, again, _not_passed(names, again, case))

    async def others_green_again(self, case: Case, ends: FailingEnds) -> bool:
        """The same of all tests but those that a whole run saw fail on purpose.

        What failed along in that run, by what a failing test leaves behind or by chance, is asked
        by itself, so often that chance would show. What it did not reach is asked in a whole one.
        """
        if self.confirms_once or self.by_names(case):
            return True
        whole = ends.whole
        if whole is None or whole.results is None:
            return await self.all_green_again(case)
        now = case.results
        others = [one for one in now.names if now.passed(one) and one not in ends.failing]
        missed = _not_passed(others, whole, case)
        red = set(red_names(whole.results))
        written = await asyncio.to_thread(self.deciding, whole.moved, case.target)
        if written or not red.issuperset(missed):
            return await self.all_green_again(case)
        functions = set(map(function_of, ends.failing))
        cases = [name for name in missed if function_of(name) in functions]
        if cases and not await self.confirmed_green(case, cases):
            return False
        along = [name for name in missed if name not in cases]
        if not along:
            return True
        steady = await self._colours(case, self.world.new, along, along, SUSPICIOUS_TRIES)
        unsteady = [name for name in along if not any(name in names for names in steady)]
        if unsteady:
            return await self._settle_unsteady(case, (), unsteady)
        return not steady[0] or await self.all_green_again(case)

    @property
    def confirms_once(self) -> bool:
        """Whether a person wants no further run of green tests."""
        return self.verifier.test is not None and self.verifier.test.confirm == "once"

    async def _wrote_nothing(self, case: Case) -> bool:
        """Whether the run that is not repeated wrote no input of the proof; else adds a finding."""
        moved = case.now.moved if case.now else ()
        written = await asyncio.to_thread(self.deciding, moved, case.target)
        return not (written and self.report.stopped_by(inputs_written(written), case.target.id))

    async def _judge_confirmation(
        self, case: Case, names: Sequence[str], again: Measured, lost: Sequence[str]
    ) -> bool:
        """Whether a further run on the new tree confirms the first one; else adds a finding.

        `lost` are those of `names` that it has not seen pass.
        """
        was_red = set(red_names(case.results))
        red = red_names(again.results) if again.results else []
        failed_now = [name for name in red if name not in was_red]
        written = await asyncio.to_thread(self.deciding, again.moved, case.target)
        if written and self.report.stopped_by(inputs_written(written), case.target.id):
            return False
        if self.same_code and not lost:
            _, green = await self._colours(case, self.world.new, names, names, self.tries)
            lost = [name for name in names if name not in green]
        unsteady = list(dict.fromkeys([*lost, *failed_now]))
        return not unsteady or await self._settle_unsteady(case, names, unsteady)

    async def _settle_unsteady(
        self, case: Case, names: Sequence[str], unsteady: Sequence[str]
    ) -> bool:
        """Add a finding about tests with both colours; whether it stops nothing, as they were so
        before."""
        if not set(unsteady) & set(names) and await self.was_flaky_before(case, unsteady):
            return True
        return not self.report.stopped_by(flaky(unsteady), case.target.id)

    async def was_flaky_before(self, case: Case, names: Sequence[str]) -> bool:
        """Whether each of these tests has both colours on the old tree, too; then it is noted."""
        seen: dict[str, set[bool]] = {
            name: {case.before.passed(name)} for name in names if case.before
        }
        for _ in range(FLAKY_TRIES):
            if seen and all(len(colours) > 1 for colours in seen.values()):
                break
            again = await self.run(case.target, self.world.old, names)
            for name in seen:
                if again.results is not None and again.results.named(name):
                    seen[name].add(again.results.passed(name))
        if not seen or any(len(colours) < 2 for colours in seen.values()):
            return False
        self.report.findings.append(flaky(names).model_copy(update={"blocks": False}))
        return True

    def deciding(self, paths: Sequence[str], target: Target) -> list[str]:
        """Those of the files that changed during a run that are inputs and were not written before.

        A check often runs a part of the test command, so what that wrote before the run counts as
        known for it, but not what another check wrote. A file that the PRD wants changed may be
        written by a command that compares it with its own copy: nothing changes on a second run.
        Blocks.
        """
        asked = self.differential.permitted(self.world.allowed)
        known = self.writes.get(TEST, frozenset()) | self.writes.get(target.id, frozenset())
        return [
            path
            for path in paths
            if path not in known
            and not (path in asked and is_looked_at(target.shell, path))
            and self.differential.counts(path, target)
        ]

    def by_names(self, case: Case) -> bool:
        """Whether a command is confirmed by the tests that matter, not by a run of all."""
        mode = self.verifier.test.confirm if self.verifier.test else "auto"
        return mode == "names" or (mode == "auto" and case.seconds > LONG_SEC)

    async def first_red(self, case: Case, tree: str, names: Sequence[str]) -> str:
        """Return the first of these tests that fails on a tree, without names the command.

        "" for none, and where nothing is known of the names. Raises what running in rooms raises.
        """
        ran = await self.run(case.target, tree, names)
        if not names:
            return "" if ran.passed else f"`{case.target.shell}`"
        if ran.results is None:
            return ""
        return next((name for name in names if not ran.results.passed(name)), "")

    def renames(self) -> list[tuple[str, str]]:
        """Pairs of old and new names: of modules that stand elsewhere, and as people wish it."""
        modules = renamed_modules(sorted(self.total.deleted), sorted(self.total.added))
        return [*modules, *renames_in(self.verifier.spec.wanted).items()]

    def claims(self, case: Case) -> Claims:
        """Which tests that were red before the run have to turn green, and which need not."""
        return self.verifier.claims(case.before, self.criteria)


def _why_run_on(tree: str, world: SnapshotTrees) -> str:
    """Why a command runs on this tree, in words for whoever waits."""
    words = {
        world.mixed: "with the new tests on the code before the run",
        world.kept: "with what decides as it was before the run",
        world.new: ONCE_MORE,
        world.old: "on the code before the run",
    }
    return words.get(tree, "on a copy that is changed on purpose")


def _not_passed(names: Sequence[str], ran: Measured, case: Case) -> list[str]:
    """Those of the tests that a run has not seen pass; without results, by its exit code."""
    if ran.results is None:
        return [] if ran.passed else list(names)
    before, now = case.before, ran.results
    return [
        name
        for name in names
        if not (now.passed(name) if before and before.named(name) else passes(name, now))
    ]
