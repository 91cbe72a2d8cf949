"""Edits of a plan: what a reply of the planner asks for, as operations on the tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from agentrunner.plans.plan import Hint, PotentialConflict

if TYPE_CHECKING:
    from agentrunner.protocol import Decompose, PlanPatch
    from agentrunner.protocol.planning import Conflict, PlanOperation, SuggestedImpl

LISTS = ("acceptance_criteria", "dependencies")
FACETS = ("phase_name", "milestone", "wbs_level", "estimated_effort")


class SiblingPlace(Struct, frozen=True):
    """A position among siblings: exactly one of the three is given."""

    index: int | None = None
    before: str | None = None
    after: str | None = None

    @property
    def anchor(self) -> str | None:
        """Return the sibling that the position refers to."""
        return self.before or self.after


class PlanEdit(Struct, frozen=True):
    """One operation. Ids may be temporary, of a task, or of a node."""

    op: Literal["create", "update", "delete", "move"]
    target: str
    """The temporary id of what is created, else the id of the task or node."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the design that are set, none of them None: a field that is missing stays as it is,
    and an empty list clears."""
    parent_id: str | None = None
    place: SiblingPlace | None = None
    cascade: bool = False
    phase: bool = False
    """For create: a node that only groups, without a task."""


def edits_of_patch(patch: PlanPatch) -> list[PlanEdit]:
    """Return the operations of a plan_patch, in order."""
    return [_edit(operation) for operation in patch.operations]


def edits_of_decompose(message: Decompose) -> list[PlanEdit]:
    """Return a decomposition as creates: a node for each phase, its tasks below it."""
    edits = []
    for number, phase in enumerate(message.phases):
        group = f"phase {number + 1}"
        facets = {"phase_name": phase.name, "milestone": phase.milestone}
        edits.append(PlanEdit("create", group, {"title": phase.name, **facets}, phase=True))
        for task in phase.tasks:
            given: dict[str, object] = {
                "title": task.title,
                "description": task.description,
                "acceptance_criteria": tuple(task.acceptance_criteria),
                "dependencies": tuple(task.dependencies),
                "wbs_level": task.wbs_level,
                "estimated_effort": task.estimated_effort,
                **facets,
            }
            if task.suggested_impl is not None:
                given["suggested_impl"] = _hint(task.suggested_impl)
            edits.append(PlanEdit("create", task.id, given, parent_id=group))
    return edits


def conflicts_of(conflicts: list[Conflict]) -> tuple[PotentialConflict, ...]:
    """Return files that several tasks may change, as the planner listed them."""
    return tuple(PotentialConflict(c.file, tuple(c.tasks), c.warning) for c in conflicts)


def _edit(operation: PlanOperation) -> PlanEdit:
    # A strict schema requires every key, so null means the same as a missing key.
    values: dict[str, object] = {
        **{name: getattr(operation, name) for name in ("title", "description", *FACETS)},
        **{name: tuple(found) for name in LISTS if (found := getattr(operation, name)) is not None},
        "suggested_impl": _hint(operation.suggested_impl),
    }
    given = {name: value for name, value in values.items() if value is not None}
    target = operation.temp_id if operation.op == "create" else operation.task_id
    assert target is not None
    return PlanEdit(
        operation.op,
        target,
        given,
        parent_id=operation.parent_id,
        place=SiblingPlace(at.index, at.before, at.after) if (at := operation.position) else None,
        cascade=operation.cascade,
    )


def _hint(hint: SuggestedImpl | None) -> Hint | None:
    if hint is None:
        return None
    return Hint(hint.language or "", tuple(hint.file_paths), tuple(hint.constraints))
