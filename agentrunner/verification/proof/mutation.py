"""Measures how strong a proof is: each small change of the worker's lines must turn a test red."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from agentrunner.state.run_state import Baseline, Criterion, Evidence
from agentrunner.verification.rooms.room import Room
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.mutants import mutants
from agentrunner.verification.target import TEST, Measured, Target, target_of, test_target
from agentrunner.verification.verifier import Verifier

MOST_MUTANTS = 200
"""Mutants made of one file's change."""


@dataclass(frozen=True)
class Survivor:
    """A mutant that no test noticed."""

    path: str
    line: int
    what: str


@dataclass(frozen=True)
class Mutation:
    """How many mutants were made, tried and noticed, and which were not noticed."""

    made: int
    tried: int
    killed: int
    survivors: list[Survivor] = field(default_factory=list)

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
            "survivors": [vars(one) for one in self.survivors[:50]],
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
    names. Raises SandboxError and OSError.
    """
    snapshots = verifier.snapshots
    tree = evidence.tree
    total = await asyncio.to_thread(verifier.trees.between, baseline.tree, tree)
    read = await asyncio.to_thread(snapshots.reader, tree)
    read_old = await asyncio.to_thread(snapshots.reader, baseline.tree)
    entries = await asyncio.to_thread(snapshots.list, tree)
    claimed = {name for proof in evidence.proofs for name in proof.tests}
    tests = {test.file for test in _test_results(verifier, evidence) if test.file}
    candidates = []
    for path in total.all:
        language, after = language_of(path), read(path)
        if language is None or after is None or path not in entries or path in tests:
            continue
        candidates += [
            (path, one) for one in mutants(read_old(path), after, language, MOST_MUTANTS)
        ]
    targets = _targets(verifier, criteria, evidence)
    deadline = monotonic() + seconds
    tried, killed, survivors = 0, 0, []
    for path, mutant in _spread(candidates):
        if monotonic() > deadline:
            break
        changed = await asyncio.to_thread(snapshots.with_texts, tree, {path: mutant.source})
        tried += 1
        if await _is_red(verifier, targets, changed, sorted(claimed)):
            killed += 1
        else:
            survivors.append(Survivor(path, mutant.line, mutant.description))
    return Mutation(len(candidates), tried, killed, survivors)


def _spread(made: list[Any]) -> list[Any]:
    """Every third mutant first, then the others, so that a short time covers all of the change."""
    return [one for start in range(3) for one in made[start::3]]


def _test_results(verifier: Verifier, evidence: Evidence) -> Any:
    kept = verifier.measurer.kept(evidence.test.results) if evidence.test else None
    return kept.tests if kept else ()


async def _is_red(
    verifier: Verifier, targets: Sequence[Target], tree: str, names: list[str]
) -> bool:
    """Whether any command that proved something is red on a tree."""
    read = await asyncio.to_thread(verifier.trees.reader, tree)
    for target in targets:
        async with verifier.rooms.open(tree) as room:
            measured = await _run(verifier, target, room, names, read)
        if not measured.passed or (measured.results and measured.results.red):
            return True
    return False


async def _run(
    verifier: Verifier, target: Target, room: Room, names: list[str], read: Any
) -> Measured:
    verifier.awaits(target, "on a mutant of the work")
    return await verifier.measurer.run(target, room, read, only=names if target.id == TEST else ())


def _targets(verifier: Verifier, criteria: Sequence[Criterion], evidence: Evidence) -> list[Target]:
    found = []
    proven = {proof.target for proof in evidence.proofs}
    if verifier.test is not None and TEST in proven:
        found.append(test_target(verifier.test))
    checks = (target_of(one, verifier.spec, None) for one in criteria if one.id in proven)
    return [*found, *(target for target in checks if target is not None)]
