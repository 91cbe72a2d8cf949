"""The messages of a plan: decompose, plan_patch."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from agentrunner.protocol.wire import (
    MAX_ITEMS,
    Flag,
    Id,
    Line,
    Remark,
    Text,
    Warnings,
    Wire,
    fault,
    shown,
)

MAX_PHASES = 50
MAX_QUESTIONS = 10
Effort = Literal["small", "medium", "large"]
WbsLevel = Annotated[int, Field(ge=1, le=3)]
"""1 concept, 2 design, 3 implementation."""
Op = Literal["create", "update", "delete", "move"]


class SuggestedImpl(Wire):
    """A hint at how a task might be done."""

    language: Remark | None = None
    file_paths: list[Line] = Field([], max_length=MAX_ITEMS)
    constraints: list[Line] = Field([], max_length=MAX_ITEMS)


class Conflict(Wire):
    """A file that another task may be changing as well."""

    file: Remark = ""
    tasks: list[Id] = Field([], max_length=MAX_ITEMS)
    warning: Remark = ""


class DecomposedTask(Wire):
    """A task of the decomposition, under a temporary id."""

    id: Id
    title: Line
    description: Text
    acceptance_criteria: Annotated[list[Text], Field(max_length=MAX_ITEMS)]
    dependencies: list[Id] = Field([], max_length=MAX_ITEMS)
    wbs_level: WbsLevel
    estimated_effort: Effort
    suggested_impl: SuggestedImpl | None = None

    @classmethod
    def reshape(cls, data: dict[str, Any], path: str, warnings: Warnings) -> dict[str, Any]:
        """Fill in what the samples in the specification itself leave out."""
        defaults = {"acceptance_criteria": [], "wbs_level": 3, "estimated_effort": "medium"}
        for key, default in defaults.items():
            if data.get(key) is None:
                data[key] = default
                warnings.add("default_used", path + key, f"{key} is missing; {default!r} taken")
        return data


class Phase(Wire):
    """A step of the work with its tasks."""

    name: Line
    milestone: Line
    tasks: Annotated[list[DecomposedTask], Field(max_length=MAX_ITEMS)]


class Decompose(Wire):
    """A wish split into phases and tasks."""

    understanding: Text
    phases: Annotated[list[Phase], Field(max_length=MAX_PHASES)]
    potential_conflicts: list[Conflict] = Field([], max_length=MAX_ITEMS)
    questions: list[Text] = Field([], max_length=MAX_QUESTIONS)
    """What only a person can say, each to be answered on its own."""

    @model_validator(mode="after")
    def _ids_name_one_task(self) -> Decompose:
        seen: set[str] = set()
        for number, phase in enumerate(self.phases):
            for place, task in enumerate(phase.tasks):
                if task.id in seen:
                    at = f"phases.{number}.tasks.{place}.id"
                    raise fault("invalid", at, f"{shown(task.id)} is the id of an earlier task")
                seen.add(task.id)
        return self


class Position(Wire):
    """A place among the siblings."""

    index: int | None = None
    before: Id | None = None
    after: Id | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Position:
        given = [name for name in ("index", "before", "after") if getattr(self, name) is not None]
        if len(given) != 1:
            raise fault("invalid", "", "a position has exactly one of index, before, after")
        return self


class PlanOperation(Wire):
    """One edit of the plan. None is "not given" (`[]` clears a list)."""

    keeps_null: ClassVar[bool] = True

    op: Op
    temp_id: Id | None = None
    task_id: Id | None = None
    title: Line | None = None
    description: Text | None = None
    acceptance_criteria: Annotated[list[Text], Field(max_length=MAX_ITEMS)] | None = None
    dependencies: Annotated[list[Id], Field(max_length=MAX_ITEMS)] | None = None
    phase_name: Line | None = None
    milestone: Line | None = None
    wbs_level: WbsLevel | None = None
    estimated_effort: Effort | None = None
    suggested_impl: SuggestedImpl | None = None
    parent_id: Id | None = None
    position: Position | None = None
    cascade: Flag = False

    @classmethod
    def reshape(cls, data: dict[str, Any], path: str, warnings: Warnings) -> dict[str, Any]:
        """Drop the id that this operation does not use, an empty position and a null cascade."""
        foreign = "task_id" if data.get("op") == "create" else "temp_id"
        if data.pop(foreign, None) is not None:
            message = f"{foreign} does not belong to this operation; ignored"
            warnings.add("ignored_field", path + foreign, message)
        position = data.get("position")
        if isinstance(position, dict) and all(value is None for value in position.values()):
            data["position"] = None
        if data.get("cascade", False) is None:
            del data["cascade"]
        return data

    @model_validator(mode="after")
    def _has_its_id(self) -> PlanOperation:
        needed = "temp_id" if self.op == "create" else "task_id"
        if getattr(self, needed) is None:
            raise fault("missing", needed, f"{self.op} needs a {needed}")
        return self


class PlanPatch(Wire):
    """Edits of an existing plan, applied in order; none is no change."""

    understanding: Text
    operations: Annotated[list[PlanOperation], Field(max_length=MAX_ITEMS)]
    potential_conflicts: list[Conflict] = Field([], max_length=MAX_ITEMS)
    questions: list[Text] = Field([], max_length=MAX_QUESTIONS)
    """What only a person can say, each to be answered on its own."""

    @model_validator(mode="after")
    def _temp_ids_name_one_task(self) -> PlanPatch:
        seen: set[str] = set()
        for number, operation in enumerate(self.operations):
            if operation.temp_id in seen:
                at = f"operations.{number}.temp_id"
                raise fault("invalid", at, f"{shown(operation.temp_id)} is created twice")
            if operation.temp_id is not None:
                seen.add(operation.temp_id)
        return self
