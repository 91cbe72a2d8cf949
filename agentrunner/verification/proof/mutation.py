"""Measures how strong a proof is: each small change of the worker's lines must turn a test red."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from agentrunner.state.run_state import Baseline, Criterion, Evidence
from agentrunner.verification.evidence.target import TEST, Measured, Target, target_of, test_target
from agentrunner.verification.evidence.verifier import Verifier
from agentrunner.verification.proof.examination import MUCH_LONGER, SHORTEST_SEC
from agentrunner.verification.results.names import passes
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.mutants import Mutant, mutants
from agentrunner.verification.trees import Changes

MOST_MUTANTS = 200
"""Mutants made of one file's change."""
NO_MUTANTS = "none could be made of this change"
NOT_GREEN = "none was tried: without any, no test is green that could turn red"
NO_TIME = "none was tried to its end in the time"


class Survivor(Struct, frozen=True):
    """A mutant that no test noticed."""

    path: str
    line: int
    column: int
    what: str


class Mutation(Struct, frozen=True):
    """How many mutants were made, tried and noticed, and which were not noticed."""

    made: int
    tried: int
    killed: int
    survivors: list[Survivor] = field(default_factory=list)
    why_none: str = ""
    """Why none was tried; "" where some were."""

    @property
    def share(self) -> float | None:
        """The share of tried mutants that turned a test red; None where none was tried."""
        return self.killed / self.tried if self.tried else None

    def as_json(self) -> dict[str, object]:
        """The values for `--json`."""
        return {
            "made": self.made,
            "struck": self.tried,
            "killed": self.killed,
            "share": self.share,
            "survivors": [asdict(one) for one in self.survivors[:50]],
            "why_none": self.why_none,
        }


async def try_mutants(
    verifier: Verifier,
    criteria: Sequence[Criterion],
    baseline: Baseline,
    evidence: Evidence,
    seconds: float,
) -> Mutation:
    """Try mutants of the changed product lines, for `seconds` at most.

    On each mutant the tests that prove something are run, or the whole command where tests have no
    names. What counts is what is green without a mutant, in the same kind of room, and is so no
    more. Raises SandboxError and OSError.
    """
    deadline = monotonic() + seconds
    old = baseline.tree
    tree, total = await asyncio.to_thread(verifier.delivered, old, evidence.tree)
    made = await asyncio.to_thread(_made, verifier, old, tree, total, evidence)
    if not made:
        return Mutation(0, 0, 0, why_none=NO_MUTANTS)
    claimed = sorted({name for proof in evidence.proofs for name in proof.tests})
    runs = MutantRuns(verifier, total, claimed, deadline)
    asked = [
        one for one in _targets(verifier, criteria, evidence) if await runs.is_green(one, tree)
    ]
    tried, killed, survivors = 0, 0, []
    for path, mutant in _spread(made) if asked else ():
        changed = await asyncio.to_thread(
            verifier.snapshots.with_texts, tree, {path: mutant.source}
        )
        noticed = await runs.is_noticed(asked, changed)
        if noticed is None:
            break
        tried += 1
        killed += noticed
        if not noticed:
            survivors.append(Survivor(path, mutant.line, mutant.column, mutant.description))
    why = NO_TIME if runs.cut or asked else NOT_GREEN
    return Mutation(len(made), tried, killed, survivors, "" if tried else why)


def _made(
    verifier: Verifier, old: str, tree: str, total: Changes, evidence: Evidence
) -> list[tuple[str, Mutant]]:
    """Mutants of the changed files that are no tests, with their paths. Blocks."""
    read, read_old = verifier.snapshots.reader(tree), verifier.snapshots.reader(old)
    entries = verifier.snapshots.list(tree)
    kept = verifier.measurer.kept(evidence.test.results) if evidence.test else None
    tests = {test.file for test in (kept.tests if kept else ()) if test.file}
    found = []
    for path in total.all:
        language, after = language_of(path), read(path)
        if language is None or after is None or path not in entries or path in tests:
            continue
        found += [(path, one) for one in mutants(read_old(path), after, language, MOST_MUTANTS)]
    return found


def _spread(made: list[Any]) -> list[Any]:
    """Every third mutant first, then the others, so that a short time covers all of the change."""
    return [one for start in range(3) for one in made[start::3]]


class MutantRuns(Struct):
    """Runs commands on mutants, in rooms that are set up as the delivered tree requires."""

    verifier: Verifier
    total: Changes
    """What differs between the tree before the run and the delivered one."""
    names: Sequence[str]
    """The tests that prove something."""
    deadline: float
    cut: bool = False
    """Whether a command did not end in the time that was left."""
    _green: dict[str, list[str]] = field(default_factory=dict)
    """The tests that are green without a mutant, by target; none where they have no names."""
    _took: dict[str, float] = field(default_factory=dict)

    async def is_green(self, target: Target, tree: str) -> bool:
        """Whether a command has something green on a tree, the delivered one; it is remembered."""
        measured = await self._run(target, tree, target.timeout_sec)
        if measured is None:
            return False
        results = measured.results
        self._green[target.id] = [
            name for name in (results.names if results else ()) if results and results.passed(name)
        ]
        self._took[target.id] = measured.ran.duration_sec
        return bool(self._green[target.id]) if results else measured.passed

    async def is_noticed(self, targets: Sequence[Target], tree: str) -> bool | None:
        """Whether something that was green is so no more; None where the time did not suffice."""
        for target in targets:
            limit = max(SHORTEST_SEC, MUCH_LONGER * self._took[target.id])
            measured = await self._run(target, tree, min(target.timeout_sec, limit))
            if measured is None:
                return None
            if not self._is_as_without(measured):
                return True
        return False

    def _is_as_without(self, measured: Measured) -> bool:
        green, results = self._green[measured.target.id], measured.results
        if not green:
            return measured.passed
        return results is not None and all(passes(name, results) for name in green)

    async def _run(self, target: Target, tree: str, limit: float) -> Measured | None:
        """Run a command on a tree, at most as long as there is time; None where that cut it."""
        if self.deadline <= monotonic():
            self.cut = True
            return None
        verifier = self.verifier
        verifier.announce(target, "on a mutant of the work")
        async with verifier.room_for(tree, self.total) as (_, run):
            left = max(self.deadline - monotonic(), 0.1)
            bounded = replace(target, timeout_sec=min(limit, left))
            only = self.names if target.id == TEST else ()
            measured = await run(bounded, only=only)
        if measured.ran.timed_out and left < limit:
            self.cut = True
            return None
        return measured


def _targets(verifier: Verifier, criteria: Sequence[Criterion], evidence: Evidence) -> list[Target]:
    found = []
    proven = {proof.target for proof in evidence.proofs}
    if verifier.test is not None and TEST in proven:
        found.append(test_target(verifier.test))
    checks = (target_of(one, verifier.spec, None) for one in criteria if one.id in proven)
    return [*found, *(target for target in checks if target is not None)]
