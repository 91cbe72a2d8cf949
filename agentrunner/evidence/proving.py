"""What a request for completion is answered with: who wrote the proof, and whether it holds.

For each command that decides:

1. With all inputs of the proof as they were before the run, what passed before and what has to
   turn must pass by name. Else the smallest set of changes that matters is asked about.
2. What turned is confirmed: red once more on the old tree, green once more on the new one.
3. Tests that the worker wrote must be red on the old code and where the functions of the change
   are empty.
4. A canary made of each claimed test must be reported as failed.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from time import monotonic

from agentrunner.evidence.canaries import NO_CANARY, Canaries
from agentrunner.evidence.claims import fresh, gone, red_names, turned
from agentrunner.evidence.differential import Differential, in_repo, in_tree
from agentrunner.evidence.exit_proof import ExitProof
from agentrunner.evidence.findings import (
    EXAMINED,
    flaky,
    inputs_written,
    tests_changed,
    tests_gone,
)
from agentrunner.evidence.inputs.smallest import smallest
from agentrunner.evidence.moves import moved_to, not_moved, renamed_modules
from agentrunner.evidence.results.model import Results
from agentrunner.evidence.struck import Struck
from agentrunner.evidence.target import TEST, Measured, Target, target_of, test_target
from agentrunner.evidence.trees import Changes
from agentrunner.evidence.verdict import approval_of
from agentrunner.evidence.verifier import Verifier
from agentrunner.evidence.world import InputChange, World
from agentrunner.task.context import Baseline, Criterion, Evidence, Finding, Proof

MOST_NAMES = 50
LONG_SEC = 60
"""A suite that takes longer is confirmed by the names that matter."""
FLAKY_TRIES = 6
"""How often the old tree is asked whether a test was flaky before."""
SEARCH_SEC = 120
"""At most, of looking for the smallest set of changes that matters."""
NOTHING_TURNED = "no test that was red before is green now"
NO_CHANGE = "Nothing was changed: a tree that is as it was before the run completes nothing."


@dataclass(frozen=True)
class Case:
    """A command that is green now, and what it said before the run."""

    target: Target
    before: Results | None
    was_red: bool
    now: Results | None
    seconds: float = 0


@dataclass
class Report:
    """What became of the cases."""

    tree: str = ""
    approved: frozenset[str] = frozenset()
    proofs: list[Proof] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)

    def stopped_by(self, finding: Finding | None, target: str) -> bool:
        """Keep a finding; whether it stops the examination, as no person has settled it."""
        if finding is None:
            return False
        self.findings.append(finding)
        if approval_of(finding, self.tree) in self.approved:
            return False
        self.doubts[target] = finding.message
        return True


@dataclass
class Prover:
    """Examines one tree for a verdict."""

    verifier: Verifier
    differential: Differential
    canaries: Canaries
    struck: Struck
    _old: str = ""
    _total: Changes = field(default_factory=Changes)
    """What differs between the old tree and the one that is examined."""
    _writes: frozenset[str] = frozenset()
    """What the commands wrote before the run as well."""

    async def prove(
        self,
        criteria: Sequence[Criterion],
        baseline: Baseline,
        evidence: Evidence,
        allowed: Sequence[str] = (),
        approved: Collection[str] = (),
    ) -> Evidence:
        """The evidence with graded proofs, and findings that a person has to settle.

        `allowed` are paths whose change a person allowed: they count as the worker left them.
        `approved` are names of findings (`approval_of`) that a person settled: they stop nothing.
        Raises SandboxError and OSError.
        """
        old = baseline.tree
        total = await asyncio.to_thread(self.verifier.trees.between, old, evidence.tree)
        new, _ = await asyncio.to_thread(self.verifier.handed_over.of, evidence.tree, old, total)
        self._old, self._total = old, total
        self._writes = frozenset(baseline.test_writes)
        report = Report(tree=evidence.tree, approved=frozenset(approved))
        if new == old:
            report.doubts[TEST] = NO_CHANGE
        else:
            cases = await self._cases(criteria, baseline, evidence, new)
            world = await self._world(old, new, cases, allowed)
            for case in cases:
                await self._examine(case, world, criteria, report)
            self._read_checks(criteria, evidence, report)
        others = [
            one for one in evidence.findings if one.code not in EXAMINED or one.code == "flaky"
        ]
        findings = _each_once([*others, *report.findings])
        return evidence.model_copy(
            update={
                "examined": True,
                "allowed": sorted(allowed),
                "findings": findings,
                "proofs": report.proofs,
                "proof": [proof.text for proof in report.proofs],
                "doubts": report.doubts,
                "tests_added": len(_worker_tests(report.proofs)),
            }
        )

    async def _cases(
        self,
        criteria: Sequence[Criterion],
        baseline: Baseline,
        evidence: Evidence,
        tree: str,
    ) -> list[Case]:
        """The commands that are green now, with what they said before."""
        kept = self.verifier.measurer.kept
        read = await asyncio.to_thread(self.verifier.trees.reader, tree)
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
            target = target_of(by_id[outcome.criterion_id], self.verifier.spec, read)
            if outcome.outcome != "passed" or target is None:
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
    ) -> World:
        """The trees of this examination."""
        files = {
            posixpath.normpath(posixpath.join(case.target.cwd, test.file))
            for case in cases
            for test in (case.before.tests if case.before else ())
            if test.file
        }
        targets = [case.target for case in cases]

        def work_out() -> World:
            found = self.differential.changes(old, new, targets, files, allowed)
            return World(
                old=old,
                new=new,
                changes=found,
                kept=self.differential.with_old_inputs(old, new, found),
                mixed=self.differential.with_new_tests(old, new),
                old_paths=frozenset(self.verifier.snapshots.list(old)),
                product=self.differential.product(old, new),
                unsure=self.differential.unsure(),
                allowed=tuple(allowed),
            )

        return await asyncio.to_thread(work_out)

    async def _run(self, target: Target, tree: str, only: Sequence[str] = ()) -> Measured:
        """Run a target on a tree, in a room of its own that is set up as that tree asks for."""
        read = await asyncio.to_thread(self.verifier.trees.reader, tree)
        async with self.verifier.rooms.open(tree) as room:
            if tree != self._old:
                room, _ = await self.verifier.set_up_room(room, self._total)
            return await self.verifier.measurer.run(target, room, read, only=only)

    # -- one command ----------------------------------------------------------------------------

    async def _examine(
        self, case: Case, world: World, criteria: Sequence[Criterion], report: Report
    ) -> None:
        held: Results | None = case.now
        red_with_old = False
        if world.kept != world.new:
            kept = await self._run(case.target, world.kept)
            held, red_with_old = kept.results, not kept.passed
            if problem := self._differs(case, kept, world, criteria):
                finding = await self._asked(case, world, criteria, problem)
                if report.stopped_by(finding, case.target.id):
                    return
        if case.now is None:
            await self._by_exit(case, world, criteria, report, red_with_old=red_with_old)
        else:
            await self._by_name(case, case.now, held, world, criteria, report)

    def _differs(
        self, case: Case, kept: Measured, world: World, criteria: Sequence[Criterion]
    ) -> str:
        """What does not hold with the inputs of the proof as they were; "" for nothing."""
        if kept.ran.timed_out:
            return f"timed out after {case.target.timeout_sec:g} s"
        if case.now is None or kept.results is None:
            if kept.passed or (case.was_red and not self._stood(case, world)):
                return ""
            return f"exit {kept.ran.exit_code}" + _last_line(kept)
        held = kept.results
        claims = self.verifier.claims(case.before, criteria)
        must = (
            [test.name for test in case.before.tests if test.outcome == "passed"]
            if (case.before)
            else []
        )
        must += [name for name in claims.claimed if case.now.passed(name)]
        lost = [name for name in dict.fromkeys(must) if not held.passed(name)]
        # What is gone with and without the worker's tests is not their doing; see `tests_gone`.
        there = held.names.keys() | case.now.names.keys()
        lost = [name for name in lost if name in there]
        files = (
            {test.name: in_repo(test.file, case.target.cwd) for test in case.before.tests}
            if (case.before)
            else {}
        )
        settled = self.differential.may_go
        lost = [n for n in lost if n in case.now.names or not settled(n, files.get(n, ""))]
        if not lost:
            return ""
        red = {test.name: test for test in held.red}
        first = lost[0]
        why = f"{first} fails" if first in red else f"{first} is not there"
        if first in red and red[first].message:
            why += f": {red[first].message.strip().splitlines()[0][:200]}"
        return why + f" (and {len(lost) - 1} more)" * (len(lost) > 1)

    def _stood(self, case: Case, world: World) -> bool:
        """Whether a command without names could decide something before the run."""
        return self.differential.runs_old_files(case.target, world.old)

    async def _asked(
        self, case: Case, world: World, criteria: Sequence[Criterion], problem: str
    ) -> Finding | None:
        """The finding about the smallest set of changed inputs that matters."""
        deadline = monotonic() + min(SEARCH_SEC, 10 + 5 * case.seconds)
        items = [one for one in world.changes if not one.understood or one.test]

        async def is_red(some: Sequence[InputChange]) -> bool:
            tree = await asyncio.to_thread(
                self.differential.with_old_inputs, world.old, world.new, list(some)
            )
            return bool(self._differs(case, await self._run(case.target, tree), world, criteria))

        found, cut = await smallest(items, is_red, deadline)
        return tests_changed(case.target, found, problem, cut=cut)

    async def _by_name(
        self,
        case: Case,
        now: Results,
        held: Results | None,
        world: World,
        criteria: Sequence[Criterion],
        report: Report,
    ) -> None:
        target = case.target
        lost = await asyncio.to_thread(self._lost, case, now, world)
        if lost and report.stopped_by(tests_gone(target, lost), target.id):
            return
        stood = await self._confirmed_red(case, self._turned(case, held, world, criteria), world)
        stood += await self._moved(case, now, stood, world, criteria)
        stood = await self._red_without_the_work(case, now, stood, world)
        others = _not_seen_before(case.before, now, stood)
        shown = await self.struck.shown(self._run, target, others, world, now, criteria)
        names = [*stood, *shown.names]
        if not names:
            claimed = sorted(self.verifier.claims(case.before, criteria).claimed)
            report.doubts[target.id] = _not_turned(claimed, now) or shown.why or NOTHING_TURNED
            return
        # One that stood and has moved since passes with the old inputs only.
        here = [name for name in names if now.passed(name)]
        only = here if self._by_names(case) else ()
        if not await self._confirmed_green(case, here, world, only, report):
            return
        inputs = await asyncio.to_thread(self.differential.inputs, world.new, [target])
        dead = await self.canaries.dead(self._run, target, here, world, now, inputs)
        if report.stopped_by(dead.finding, target.id):
            return
        if stood:
            report.proofs.append(
                Proof(
                    target=target.id,
                    author="person",
                    grade="shown" if NO_CANARY in dead.notes else "proven",
                    text=_text(target, stood, "failed before and passes now"),
                    tests=stood[:MOST_NAMES],
                    notes=dead.notes,
                )
            )
        if shown.names:
            report.proofs.append(
                Proof(
                    target=target.id,
                    author="worker",
                    grade="shown",
                    text=_text(
                        target,
                        shown.names,
                        "of the worker's own fails on the old code and passes now",
                    ),
                    tests=shown.names[:MOST_NAMES],
                    names=sorted(shown.uses)[:200],
                    notes=[*shown.notes, *dead.notes],
                )
            )

    def _lost(self, case: Case, now: Results, world: World) -> list[str]:
        """Tests that are gone, and neither moved nor settled. Blocks."""
        lost = gone(case.before, now)
        if not lost or case.before is None:
            return []
        snapshots = self.verifier.snapshots
        left = not_moved(
            lost,
            case.before,
            now,
            case.target.cwd,
            snapshots.reader(world.old),
            snapshots.reader(world.new),
            self._renames(),
        )
        files = {test.name: in_repo(test.file, case.target.cwd) for test in case.before.tests}
        return [name for name in left if not self.differential.may_go(name, files.get(name, ""))]

    async def _red_without_the_work(
        self, case: Case, now: Results, stood: list[str], world: World
    ) -> list[str]:
        """Those of `stood` that are no permitted change of the test alone.

        A permit settles that a test may change, not what it says: it has to be red on the old
        product as it stands now.
        """
        permitted = self.differential.permitted(world.allowed)
        cwd = case.target.cwd
        changed = {test.name for test in now.tests if in_repo(test.file, cwd) in permitted}
        asked = [name for name in stood if name in changed]
        if not asked:
            return stood
        old = await self._run(case.target, world.mixed, asked)
        if old.results is None:
            return [name for name in stood if name not in asked] if old.passed else stood
        return [name for name in stood if name not in asked or not old.results.passed(name)]

    async def _moved(
        self,
        case: Case,
        now: Results,
        stood: Sequence[str],
        world: World,
        criteria: Sequence[Criterion],
    ) -> list[str]:
        """New names of claimed tests that stand elsewhere now, word for word."""
        if case.before is None:
            return []
        claims = self.verifier.claims(case.before, criteria)
        left = [name for name in sorted(claims.claimed) if name not in stood]
        left = [name for name in left if name not in now.names]
        snapshots = self.verifier.snapshots
        pairs = await asyncio.to_thread(
            lambda: moved_to(
                left,
                case.before or now,
                now,
                case.target.cwd,
                snapshots.reader(world.old),
                snapshots.reader(world.new),
                self._renames(),
            )
        )
        red = await self._confirmed_red(case, list(pairs), world)
        return [pairs[name] for name in red]

    def _renames(self) -> list[tuple[str, str]]:
        return renamed_modules(sorted(self._total.deleted), sorted(self._total.added))

    def _turned(
        self, case: Case, held: Results | None, world: World, criteria: Sequence[Criterion]
    ) -> list[str]:
        """Tests that stood before the run, did not pass then, and pass with the old inputs."""
        if held is None:
            return []
        claims = self.verifier.claims(case.before, criteria)
        found = turned(case.before, held, claims.claimed)
        # A file that could not be loaded told no names; it stood there all the same.
        if case.was_red and (case.before is None or not case.before.complete):
            files = {test.name: test.file for test in held.tests}
            found += [
                name
                for name in fresh(case.before, held)
                if in_tree(files.get(name, ""), case.target.cwd, world.old_paths)
            ]
        return list(dict.fromkeys(found))

    async def _confirmed_red(self, case: Case, names: list[str], world: World) -> list[str]:
        """Those of `names` that are not green on the old tree this time either.

        A test that is red only after others is red in the whole run, not by itself.
        """
        if not names:
            return []
        left: list[str] = []
        for only in (names, ()):
            again = await self._run(case.target, world.old, only)
            if again.results is None:
                return left if again.passed else names
            left = [name for name in names if name in left or not again.results.passed(name)]
            if len(left) == len(names):
                break
        return left

    async def _confirmed_green(
        self,
        case: Case,
        names: Sequence[str],
        world: World,
        only: Sequence[str],
        report: Report,
    ) -> bool:
        """Whether what passed once passes in another fresh room; else a finding about flakiness."""
        if self.verifier.test is not None and self.verifier.test.confirm == "once":
            return True
        again = await self._run(case.target, world.new, only)
        assert case.now is not None
        was_red = set(red_names(case.now))
        red = (
            []
            if again.results is None
            else [name for name in red_names(again.results) if name not in was_red]
        )
        lost = [n for n in names if again.results is not None and not again.results.passed(n)]
        if again.results is None and not again.passed:
            lost = list(names)
        written = [path for path in again.moved if self._decides(path, case.target, world)]
        if written and report.stopped_by(inputs_written(written), case.target.id):
            return False
        both = list(dict.fromkeys([*lost, *red]))
        if not both:
            return True
        if not set(both) & set(names) and await self._was_flaky(case, both, world):
            report.findings.append(flaky(both).model_copy(update={"blocks": False}))
            return True
        return not report.stopped_by(flaky(both), case.target.id)

    async def _was_flaky(self, case: Case, names: Sequence[str], world: World) -> bool:
        """Whether each of these tests has both colours on the old tree, too."""
        seen: dict[str, set[bool]] = {
            name: {case.before.passed(name)} for name in names if case.before
        }
        for _ in range(FLAKY_TRIES):
            if seen and all(len(colours) > 1 for colours in seen.values()):
                return True
            again = await self._run(case.target, world.old, names)
            for name in seen:
                if again.results is not None and again.results.named(name):
                    seen[name].add(again.results.passed(name))
        return bool(seen) and all(len(colours) > 1 for colours in seen.values())

    def _decides(self, path: str, target: Target, world: World) -> bool:
        """Whether a file that changed during the run is an input, and was not written before."""
        return path not in self._writes and self.differential.counts(path, world.old, [target])

    def _by_names(self, case: Case) -> bool:
        mode = self.verifier.test.confirm if self.verifier.test else "auto"
        return mode == "names" or (mode == "auto" and case.seconds > LONG_SEC)

    async def _by_exit(
        self,
        case: Case,
        world: World,
        criteria: Sequence[Criterion],
        report: Report,
        *,
        red_with_old: bool,
    ) -> None:
        """A command whose tests have no names: red before, green now, and by whose program."""
        target = case.target
        if not case.was_red:
            return
        exits = ExitProof(self.differential, self.struck, self._run)
        found = await exits.examine(target, world, criteria, red_with_old=red_with_old)
        if found.doubt:
            report.doubts[target.id] = found.doubt
            return
        again = await self._run(target, world.new)
        if not again.passed and report.stopped_by(flaky([f"`{target.shell}`"]), target.id):
            return
        written = [path for path in again.moved if self._decides(path, target, world)]
        if written and report.stopped_by(inputs_written(written), target.id):
            return
        dead = await self.canaries.program_is_dead(
            self._run, target, world, self.differential.inputs(world.new, [target])
        )
        if report.stopped_by(dead.finding, target.id):
            return
        whose = {
            "person": "",
            "planner": ", a check of the planner,",
            "worker": ", the worker's own,",
        }
        report.proofs.append(
            Proof(
                target=target.id,
                author=found.author,
                grade=found.grade,
                text=f"{_label(target)}`{target.shell}`{whose[found.author]} failed before"
                " and passes now",
                notes=[*found.notes, *dead.notes],
            )
        )

    def _read_checks(
        self, criteria: Sequence[Criterion], evidence: Evidence, report: Report
    ) -> None:
        """Checks of kind file and diff, which are read and not run."""
        by_id = {criterion.id: criterion for criterion in criteria}
        for outcome in evidence.checks:
            criterion = by_id[outcome.criterion_id]
            read = outcome.exit_code is None and outcome.outcome == "passed"
            if not read or outcome.before != "red" or criterion.check is None:
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


def _not_seen_before(before: Results | None, now: Results, stood: Sequence[str]) -> list[str]:
    """Names that pass now and did not before, beside those that are known to have stood."""
    return [
        name
        for name in now.names
        if name not in stood and now.passed(name) and not (before and before.passed(name))
    ]


def _not_turned(claimed: Sequence[str], now: Results) -> str:
    """What became of the first test that was red before and does not pass now; "" for none."""
    words = {
        "skipped": "is skipped",
        "xfailed": "is expected to fail",
        "xpassed": "is expected to fail",
    }
    for name in claimed:
        found = now.named(name)
        if not found and any(one.startswith((f"{name}.", f"{name}:")) for one in now.names):
            continue  # a file that could not be loaded; its tests have names of their own now
        if not found:
            return f"{name} was red before and is not run now"
        bad = [words[test.outcome] for test in found if test.outcome in words]
        if bad:
            return f"{name} was red before and {bad[0]} now"
    return ""


def _worker_tests(proofs: Sequence[Proof]) -> set[str]:
    return {name for proof in proofs if proof.author == "worker" for name in proof.tests}


def make_prover(verifier: Verifier) -> Prover:
    """What examines trees that `verifier` measures."""
    snapshots = verifier.snapshots
    return Prover(
        verifier,
        Differential(snapshots, verifier.spec),
        Canaries(snapshots),
        Struck(snapshots),
    )


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    found: list[Finding] = []
    for finding in findings:
        if finding not in found:
            found.append(finding)
    return found


def _label(target: Target) -> str:
    return "" if target.id == TEST else f"{target.id}: "


def _text(target: Target, names: Sequence[str], what: str) -> str:
    more = f" and {len(names) - 2} more tests" * (len(names) > 2)
    return f"{_label(target)}{', '.join(names[:2])}{more} {what}"


def _last_line(measured: Measured) -> str:
    lines = measured.ran.tail.strip().splitlines()
    return f": {lines[-1][:200]}" if lines else ""
