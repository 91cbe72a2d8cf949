"""What tasks of a plan have proven when their work landed, and where that is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from agentrunner.config.spec import CriterionSpec
from agentrunner.state.run_state import CheckOutcome, Criterion
from agentrunner.storage.run_folder import make_private, write_private


@dataclass(frozen=True)
class ProvenCriterion:
    """A criterion whose check was green when its task's run was found COMPLETE."""

    task_id: str
    criterion: Criterion

    @property
    def key(self) -> str:
        """What is run or read; the same for two tasks that ask the same."""
        check = self.criterion.check
        return check.model_dump_json() if check is not None else ""

    def as_criterion(self) -> CriterionSpec:
        """What a run is asked that has to fix it: red before, so that the fix is proven."""
        words = " ".join(self.criterion.description.split())
        return CriterionSpec(
            description=f"What {self.task_id} did still holds ({self.criterion.id}): {words}",
            check=self.criterion.check,
        )


def proofs_of(
    task_id: str, criteria: Iterable[Criterion], checks: Iterable[CheckOutcome]
) -> tuple[ProvenCriterion, ...]:
    """What a run has proven by checks that make sense on any commit. Pure.

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
    """Without what the run had to make true again for other tasks (`as_criterion`). Pure.

    Those hold as long as their own tasks are in the plan.
    """
    others = {criterion.description for criterion in for_others}
    return tuple(proof for proof in proofs if proof.criterion.description not in others)


class _Kept(BaseModel):
    """What is known of a task that has landed."""

    held: list[Criterion] = []
    """Green on the commit that landed."""
    doubted: list[Criterion] = []
    """Green in the run, and red on a fresh checkout of its commit."""


class ProofBook:
    """The proofs of tasks that have landed: one small file each. Methods may raise OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(
        self,
        task_id: str,
        proofs: Iterable[ProvenCriterion],
        doubts: Collection[ProvenCriterion] = (),
    ) -> None:
        """Keep them in the place of those of an earlier landing; `doubts` are some of them."""
        make_private(self._folder)
        kept = _Kept(
            held=[proof.criterion for proof in proofs if proof not in doubts],
            doubted=[proof.criterion for proof in doubts],
        )
        write_private(self._folder / f"{task_id}.json", kept.model_dump_json().encode())

    def of(self, task_ids: Iterable[str]) -> list[ProvenCriterion]:
        """All that these tasks have proven and that held when they landed."""
        return [ProvenCriterion(name, one) for name in task_ids for one in self._read(name).held]

    def doubts(self, task_id: str) -> tuple[ProvenCriterion, ...]:
        """What a task's run has proven and its commit, checked out afresh, did not hold."""
        return tuple(ProvenCriterion(task_id, one) for one in self._read(task_id).doubted)

    def _read(self, task_id: str) -> _Kept:
        with contextlib.suppress(FileNotFoundError, ValidationError):
            return _Kept.model_validate_json((self._folder / f"{task_id}.json").read_bytes())
        return _Kept()
