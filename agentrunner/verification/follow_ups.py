"""Finds changes of tests and their data that only follow from what a PRD asks for. Pure.

No PRD names each test that imports what moves, nor the path of a snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agentrunner.verification.adapted_tests import adapted_in
from agentrunner.verification.checks import ReadFile
from agentrunner.verification.inputs.asked import moves_in, outside_of_checks, renames_in
from agentrunner.verification.inputs.asked_kinds import (
    asked_by_kind,
    differs_by_snapshots,
    wants_snapshots,
)
from agentrunner.verification.inputs.asked_tests import asks_to_adapt
from agentrunner.verification.inputs.changes import ProofChange
from agentrunner.verification.inputs.leads import family_of
from agentrunner.verification.moves import asked_moves, imports_follow, names_follow
from agentrunner.verification.results.names import own_name
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.trees import Changes


@dataclass(frozen=True)
class FollowUps:
    """Finds such changes among the changed inputs of the proof."""

    wanted: str
    """The text of what was asked for."""
    judged: Sequence[ProofChange]
    was: ReadFile
    """Reads a file as it was before the run; `now` reads it as it is."""
    now: ReadFile
    total: Changes

    def of_moves(self) -> set[str]:
        """Tests whose only changes follow what the PRD moves or renames.

        These are imports of modules that moved, and names in code.
        """
        words, names = moves_in(self.wanted), renames_in(self.wanted)
        if not words and not names:
            return set()
        moves = asked_moves(
            words, self.wanted, sorted(self.total.deleted), sorted(self.total.added)
        )
        found = set()
        for path in sorted({one.path for one in self.judged} & self.total.modified):
            before, after = self.was(path), self.now(path)
            if language_of(path) is None or before is None or after is None:
                continue
            if names_follow(path, before, after, names) or imports_follow(
                path, before, after, moves
            ):
                found.add(path)
        return found

    def adapted_tests(self, run: Collection[str]) -> dict[str, set[str]]:
        """Tests that were adapted as the PRD asks in ordinary words, by their file.

        `run` are the files whose tests were reported by name before the run.
        """
        found: dict[str, set[str]] = {}
        kinds = {one.path: one.input for one in self.judged if one.path in self.total.modified}
        for path in sorted(kinds.keys() & set(run)):
            language, before, after = language_of(path), self.was(path), self.now(path)
            if language is None or before is None or after is None:
                continue
            if kinds[path].kind != "test" or kinds[path].region:
                continue
            if names := adapted_in(before, after, language, outside_of_checks(self.wanted)):
                found[path] = names
        every = {own_name(name) for names in found.values() for name in names}
        return found if asks_to_adapt(self.wanted, every) else {}

    def expected_data(self) -> set[str]:
        """Changed data that tests compare with, of a kind that the PRD wants changed."""
        kinds = {one.path: one.input.kind for one in self.judged if one.path in self.total.modified}
        data = [path for path, kind in kinds.items() if kind == "fixture" and not family_of(path)]
        found = asked_by_kind(self.wanted, data)
        if wants_snapshots(self.wanted):
            found |= {
                path
                for path, kind in kinds.items()
                if kind == "test"
                and differs_by_snapshots(self.was(path) or b"", self.now(path) or b"")
            }
        return found
