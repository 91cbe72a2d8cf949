"""The schemas of messages about a plan: general ones, and ones made for a particular plan.

In a schema made for a plan, ids are enumerations, each operation has only its own keys, and only
tasks without a run can be deleted.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agentrunner.protocol.planning import MAX_PHASES, MAX_QUESTIONS
from agentrunner.protocol.schema_parts import (
    BOOL,
    ID,
    LINE,
    MAYBE_ID,
    MAYBE_LINE,
    WHOLE,
    Schema,
    closed,
    list_of,
    nullable,
    one_of,
    text,
    words_of,
)
from agentrunner.protocol.wire import MAX_ITEMS

MADE = 60
"""Temporary ids of one decomposition, from temp-1; a later message can add more."""
MADE_BY_PATCH = 20
MOST_IN_ALL = 1000
"""Limit of all enumeration values of a schema together; providers refuse more."""

_LEVEL: Schema = {"type": "integer", "enum": [1, 2, 3]}
_EFFORT = one_of("small", "medium", "large")
_SUGGESTED_IMPL = closed(language=MAYBE_ID, file_paths=list_of(LINE), constraints=list_of(LINE))
_CRITERIA = list_of(text())


def _conflicts(ids: Schema) -> Schema:
    return list_of(closed(file=LINE, tasks=list_of(ids), warning=text()))


def _task(ids: Schema) -> Schema:
    return closed(
        id=ids,
        title=LINE,
        description=text(),
        acceptance_criteria=_CRITERIA,
        dependencies=list_of(ids),
        wbs_level=_LEVEL,
        estimated_effort=_EFFORT,
        suggested_impl=nullable(_SUGGESTED_IMPL),
    )


def _phases(ids: Schema) -> Schema:
    return list_of(closed(name=LINE, milestone=LINE, tasks=list_of(_task(ids))), limit=MAX_PHASES)


_OPERATION = closed(
    op=one_of("create", "update", "delete", "move"),
    temp_id=MAYBE_ID,
    task_id=MAYBE_ID,
    title=MAYBE_LINE,
    description=nullable(text()),
    acceptance_criteria=nullable(_CRITERIA),
    dependencies=nullable(list_of(ID)),
    phase_name=MAYBE_LINE,
    milestone=MAYBE_LINE,
    wbs_level=nullable(_LEVEL),
    estimated_effort=nullable(_EFFORT),
    suggested_impl=nullable(_SUGGESTED_IMPL),
    parent_id=MAYBE_ID,
    position=nullable(closed(index=nullable(WHOLE), before=MAYBE_ID, after=MAYBE_ID)),
    cascade=nullable(BOOL),
)
"""For servers without unions; keys that do not belong to the operation are null."""

DECOMPOSE = closed(
    understanding=text(),
    phases=_phases(ID),
    potential_conflicts=_conflicts(ID),
    questions=list_of(text(), MAX_QUESTIONS),
)
PLAN_PATCH = closed(
    understanding=text(),
    operations=list_of(_OPERATION),
    potential_conflicts=_conflicts(ID),
    questions=list_of(text(), MAX_QUESTIONS),
)


@dataclass(frozen=True)
class PlanIds:
    """Ids that exist in a plan, so that a schema can enumerate them."""

    tasks: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    """Nodes that only group others, without the root."""
    parents: tuple[str, ...] = ()
    """Nodes that can have children."""
    at_work: tuple[str, ...] = ()
    """Tasks that a run works on; they cannot be deleted."""


def narrow_decompose(payload: Schema) -> None:
    """Enumerate the temporary ids, in place."""
    ids = one_of(*_temp_ids(MADE))
    payload["properties"]["phases"] = copy.deepcopy(_phases(ids))
    payload["properties"]["potential_conflicts"] = _conflicts(ids)


def narrow_patch(payload: Schema, plan: PlanIds) -> None:
    """Give each operation its own keys and enumerate the ids that they may have, in place.

    If the plan is too large for that, ids of neighbours become text; if still too large, all ids.
    """
    anchors: Schema | None = None
    for ids in (plan, plan, PlanIds()):
        keys = copy.deepcopy(_schemas_for(ids, anchors))
        if sum(_enumeration_sizes(keys)) <= MOST_IN_ALL:
            break
        anchors = ID
    payload["properties"].update(keys)


def _schemas_for(plan: PlanIds, anchors: Schema | None) -> Schema:
    """The schemas of operations and conflicts for this plan; without a plan, ids are text."""
    known = bool(plan.parents)
    made = _temp_ids(MADE_BY_PATCH)

    def ids(*values: str) -> Schema:
        return (words_of(values) if known else None) or ID

    targets = (*plan.tasks, *plan.phases)
    task, task_ids = ids(*targets), ids(*plan.tasks, *made)
    beside = anchors or ids(*targets, *made)
    place = {
        "parent_id": nullable(ids(*plan.parents, *made)),
        "position": {
            "anyOf": [
                *(closed(index=WHOLE), closed(before=beside), closed(after=beside)),
                {"type": "null"},
            ]
        },
    }
    facets = {
        "title": LINE,
        "description": text(),
        "acceptance_criteria": _CRITERIA,
        "dependencies": list_of(task_ids),
    }
    grouped = {"phase_name": MAYBE_LINE, "milestone": MAYBE_LINE}
    size = {"wbs_level": _LEVEL, "estimated_effort": _EFFORT}
    hint = {"suggested_impl": nullable(_SUGGESTED_IMPL)}
    maybe = {name: nullable(schema) for name, schema in {**facets, **size}.items()}
    idle = [value_ for value_ in targets if value_ not in plan.at_work]
    forms = [
        closed(op=one_of("create"), temp_id=one_of(*made), **facets, **grouped, **size, **hint,
               **place),
        closed(op=one_of("update"), task_id=task, **maybe, **grouped, **hint),
        closed(op=one_of("move"), task_id=task, **place),
    ]  # fmt: skip
    if idle or not known:
        forms.append(closed(op=one_of("delete"), task_id=ids(*idle), cascade=BOOL))
    return {
        "operations": list_of({"anyOf": forms}, MAX_ITEMS),
        "potential_conflicts": _conflicts(task_ids),
    }


def _temp_ids(count: int) -> list[str]:
    return [f"temp-{number}" for number in range(1, count + 1)]


def _enumeration_sizes(schema: Any) -> Iterator[int]:
    """Yield the number of values of each enumeration."""
    if isinstance(schema, list):
        for value_ in schema:
            yield from _enumeration_sizes(value_)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "enum":
                yield len(value)
            else:
                yield from _enumeration_sizes(value)
