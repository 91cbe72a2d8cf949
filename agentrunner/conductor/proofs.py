"""What proved tasks of a plan when their work landed, and what of it a merge breaks."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agentrunner.runs.folder import make_private, write_private
from agentrunner.task.context import CheckOutcome, Criterion
from agentrunner.task.prd import describe_check
from agentrunner.task.spec import CriterionSpec

MAX_TOLD = 5
"""Broken checks that are told of with their output."""

_CRITERIA = TypeAdapter(list[Criterion])


@dataclass(frozen=True)
class Proof:
    """A criterion whose check was green when its task's run was found COMPLETE."""

    task_id: str
    criterion: Criterion

    @property
    def key(self) -> str:
        """What is run or read; the same for two tasks that ask the same."""
        check = self.criterion.check
        return check.model_dump_json() if check is not None else ""

    def as_criterion(self) -> CriterionSpec:
        """What a round is asked that has to mend it: red before, so that mending is proven."""
        words = " ".join(self.criterion.description.split())
        return CriterionSpec(
            description=f"What {self.task_id} did still holds ({self.criterion.id}): {words}",
            check=self.criterion.check,
        )


@dataclass(frozen=True)
class Seen:
    """What a check said on a whole commit."""

    red: bool
    """False also where nothing could be found out."""
    output: str = ""
    """The end of it."""


def proofs_of(
    task_id: str, criteria: Iterable[Criterion], checks: Iterable[CheckOutcome]
) -> tuple[Proof, ...]:
    """What a run has proven by checks that make sense on any commit. Pure.

    A `diff` check looks at what the run changed, and `test` without a name is the test command.
    """
    green = {check.criterion_id for check in checks if check.outcome == "passed"}
    return tuple(
        Proof(task_id, criterion)
        for criterion in criteria
        if criterion.id in green and criterion.check is not None and criterion.check.kind != "diff"
    )


def newly_broken(
    proofs: Iterable[Proof], now: Mapping[str, Seen], before: Mapping[str, Seen]
) -> tuple[Proof, ...]:
    """Those that are red now and were not before, each check once. Pure.

    What was seen is given by `Proof.key`; what was not looked at before was green in its run.
    """
    found: dict[str, Proof] = {}
    for proof in proofs:
        seen, was = now.get(proof.key), before.get(proof.key)
        if seen is not None and seen.red and not (was is not None and was.red):
            found.setdefault(proof.key, proof)
    return tuple(found.values())


def told(broken: Sequence[Proof], now: Mapping[str, Seen]) -> str:
    """What is broken, in words for whoever is to mend it; "" for nothing. Pure."""
    if not broken:
        return ""
    names = ", ".join(f"{proof.task_id} ({proof.criterion.id})" for proof in broken[:MAX_TOLD])
    text = (
        "This task's work and that of others are clean together, but checks that were green are"
        f" red on both: {names}. Keep what those tasks did.\n"
    )
    for proof in broken[:MAX_TOLD]:
        words = " ".join(proof.criterion.description.split())
        text += f"\n{proof.task_id}, {proof.criterion.id}: {words}\n"
        text += f"`{describe_check(proof.criterion.check)}`\n"
        if output := now[proof.key].output.strip():
            text += f"\n```\n{output}\n```\n"
    return text


class ProofBook:
    """The proofs of tasks that have landed: one small file each. Methods may raise OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, task_id: str, proofs: Iterable[Proof]) -> None:
        """Keep them in the place of those of an earlier landing."""
        make_private(self._folder)
        criteria = [proof.criterion for proof in proofs]
        write_private(self._folder / f"{task_id}.json", _CRITERIA.dump_json(criteria))

    def of(self, task_ids: Collection[str]) -> list[Proof]:
        """All proofs of these tasks."""
        found = []
        for task_id in task_ids:
            with contextlib.suppress(FileNotFoundError, ValidationError):
                kept = (self._folder / f"{task_id}.json").read_bytes()
                found += [Proof(task_id, one) for one in _CRITERIA.validate_json(kept)]
        return found
