"""A command that is green now, and the report of its examination. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from agentrunner.state.run_state import Finding, Proof
from agentrunner.verification.evidence.findings import approval_of
from agentrunner.verification.evidence.target import TEST, Target, in_repo
from agentrunner.verification.grades import of_number
from agentrunner.verification.results.model import Results


class Case(Struct, frozen=True, dict=True):
    """A command that is green now, with its results before the run."""

    target: Target
    before: Results | None
    was_red: bool
    now: Results | None
    seconds: float = 0
    """How long it takes now, in seconds."""

    @cached_property
    def old_files(self) -> Mapping[str, str]:
        """Each test's file before the run, relative to the repository, by the test's name."""
        return self._files_of(self.before) if self.before else {}

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The same now."""
        return self._files_of(self.results)

    @property
    def results(self) -> Results:
        """The results now, of a command that reports its tests by name."""
        assert self.now is not None
        return self.now

    def _files_of(self, results: Results) -> Mapping[str, str]:
        known_last = sorted(results.tests, key=lambda test: bool(test.file))
        return {test.name: in_repo(test.file, self.target.cwd) for test in known_last}


class ProofReport(Struct):
    """The proofs, findings and doubts that examining the cases gave."""

    tree: str = ""
    approved: frozenset[str] = frozenset()
    proofs: list[Proof] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)

    def stopped_by(self, finding: Finding | None, target: str) -> bool:
        """Keep a finding; return whether it stops the examination, as no person has settled it."""
        if finding is None:
            return False
        self.findings.append(finding)
        if approval_of(finding, self.tree) in self.approved:
            return False
        self.doubts[target] = finding.message
        return True


def label(target: Target) -> str:
    """The beginning of a sentence about a target."""
    return "" if target.id == TEST else f"{target.id}: "


def text_of(target: Target, names: Sequence[str], what: str) -> str:
    """A sentence about tests of a target: "AC-1: a, b and 3 more tests pass now"."""
    more = f" and {len(names) - 2} more tests" * (len(names) > 2)
    return f"{label(target)}{', '.join(names[:2])}{more} {of_number(what, len(names))}"
