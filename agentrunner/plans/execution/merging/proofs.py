"""What tasks of a plan had proven when their work was merged, and where that is saved."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from msgspec import Struct
from pydantic import BaseModel, ValidationError

from agentrunner.config.spec import CriterionSpec
from agentrunner.state.run_state import CheckOutcome, Criterion
from agentrunner.storage.run_folder import make_private, write_private
from agentrunner.verification.results.model import Results


class ProvenCriterion(Struct, frozen=True):
    """A criterion whose check was green when its task's run was found COMPLETE."""

    task_id: str
    criterion: Criterion

    @property
    def key(self) -> str:
        """Return what is run or read; the same for two tasks with the same check."""
        check = self.criterion.check
        return check.model_dump_json() if check is not None else ""

    def as_criterion(self) -> CriterionSpec:
        """Return it for a run that has to fix it: red before, so that the fix is proven."""
        words = " ".join(self.criterion.description.split())
        return CriterionSpec(
            description=f"What {self.task_id} did still holds ({self.criterion.id}): {words}",
            check=self.criterion.check,
        )


@dataclass(frozen=True, kw_only=True)
class RunFindings:
    """What a COMPLETE run of a task has shown of its work."""

    proofs: tuple[ProvenCriterion, ...] = ()
    """Checks that were green."""
    sandbox: tuple[str, str] = ("", "")
    """Kind and image of the sandbox that it had (`kept_sandbox`), where that is known."""
    taken: frozenset[str] = frozenset()
    """Names of tests that the task's runs took away or skip."""
    passed: Results | None = field(default=None, compare=False)
    """The results by name of what it made, where its tests report names."""

    @property
    def found(self) -> dict[str, Any]:
        """Return these fields by name, for whoever passes them on."""
        return {one.name: getattr(self, one.name) for one in fields(RunFindings)}


def proofs_of(
    task_id: str, criteria: Iterable[Criterion], checks: Iterable[CheckOutcome]
) -> tuple[ProvenCriterion, ...]:
    """Return what a run has proven by checks that make sense on any commit. Pure.

    A `diff` check looks at what the run changed, and `test` without a name is the test command.
    """
    green = {check.criterion_id for check in checks if check.outcome == "passed"}
    return tuple(
        ProvenCriterion(task_id, criterion)
        for criterion in criteria
        if criterion.id in green and criterion.check is not None and criterion.check.kind != "diff"
    )


def of_its_own(
    proofs: Iterable[ProvenCriterion], for_others: Iterable[CriterionSpec]
) -> tuple[ProvenCriterion, ...]:
    """Return the proofs without what the run had to make true again for other tasks
    (`as_criterion`). Pure.

    Those hold as long as their own tasks are in the plan.
    """
    others = {criterion.description for criterion in for_others}
    return tuple(proof for proof in proofs if proof.criterion.description not in others)


class _SavedProofs(BaseModel):
    """The proofs of a task that was merged."""

    held: list[Criterion] = []
    """Green on the commit that was merged."""
    doubted: list[Criterion] = []
    """Green in the run, and red on a fresh checkout of its commit."""


class ProofBook:
    """The proofs of merged tasks: one small file each. Methods may raise OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(
        self,
        task_id: str,
        proofs: Iterable[ProvenCriterion],
        doubts: Collection[ProvenCriterion] = (),
    ) -> None:
        """Save them in place of those of an earlier merge; `doubts` are some of them."""
        make_private(self._folder)
        kept = _SavedProofs(
            held=[proof.criterion for proof in proofs if proof not in doubts],
            doubted=[proof.criterion for proof in doubts],
        )
        write_private(self._folder / f"{task_id}.json", kept.model_dump_json().encode())

    def of(self, task_ids: Iterable[str]) -> list[ProvenCriterion]:
        """Return all that these tasks have proven and that held when they were merged."""
        return [
            ProvenCriterion(name, criterion)
            for name in task_ids
            for criterion in self._read(name).held
        ]

    def doubts(self, task_id: str) -> tuple[ProvenCriterion, ...]:
        """Return what a task's run has proven and a fresh checkout of its commit did not hold."""
        return tuple(
            ProvenCriterion(task_id, criterion) for criterion in self._read(task_id).doubted
        )

    def _read(self, task_id: str) -> _SavedProofs:
        with contextlib.suppress(FileNotFoundError, ValidationError):
            return _SavedProofs.model_validate_json((self._folder / f"{task_id}.json").read_bytes())
        return _SavedProofs()
