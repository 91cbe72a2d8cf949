"""decompose and plan_patch, field by field."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from agentrunner.errors import ProtocolError
from agentrunner.protocol import (
    Decompose,
    Message,
    MessageType,
    PlanOperation,
    PlanPatch,
    parse_reply,
)

TASK = {
    "id": "t-1",
    "title": "T",
    "description": "D",
    "acceptance_criteria": ["works"],
    "wbs_level": 3,
    "estimated_effort": "large",
}


def message(type_: MessageType, **payload: Any) -> Message:
    return parse_reply(json.dumps({"type": type_, "understanding": "u", **payload}), type_)


def refusal(type_: MessageType, **payload: Any) -> tuple[str, str]:
    with pytest.raises(ProtocolError) as caught:
        message(type_, **payload)
    return caught.value.fault, caught.value.path


def phases(*tasks: object) -> list[dict[str, Any]]:
    return [{"name": "N", "milestone": "M", "tasks": list(tasks)}]


def operation(**fields: Any) -> PlanOperation:
    payload = message("plan_patch", operations=[fields]).payload
    assert isinstance(payload, PlanPatch)
    return payload.operations[0]


def without(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}


def test_what_the_samples_leave_out_is_filled_in_with_a_warning() -> None:
    task = {key: TASK[key] for key in ("id", "title", "description")}
    reply = message("decompose", phases=phases(task))
    assert isinstance(reply.payload, Decompose)
    read = reply.payload.phases[0].tasks[0]
    assert (read.acceptance_criteria, read.wbs_level, read.estimated_effort) == ([], 3, "medium")
    assert [(w.code, w.path) for w in reply.warnings] == [
        ("default_used", f"phases.0.tasks.0.{key}")
        for key in ("acceptance_criteria", "wbs_level", "estimated_effort")
    ]


@pytest.mark.parametrize("key", ["id", "title", "description"])
def test_a_task_needs_its_names(key: str) -> None:
    assert refusal("decompose", phases=phases(without(TASK, key))) == (
        "missing",
        f"phases.0.tasks.0.{key}",
    )


@pytest.mark.parametrize("key", ["name", "milestone", "tasks"])
def test_a_phase_needs_its_fields(key: str) -> None:
    phase = without(phases(TASK)[0], key)
    assert refusal("decompose", phases=[phase]) == ("missing", f"phases.0.{key}")


@pytest.mark.parametrize("key", ["understanding", "phases"])
def test_decompose_needs_its_fields(key: str) -> None:
    payload = without({"understanding": "u", "phases": []}, key)
    with pytest.raises(ProtocolError) as caught:
        parse_reply(json.dumps({"type": "decompose", **payload}), "decompose")
    assert (caught.value.fault, caught.value.path) == ("missing", key)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("wbs_level", 0),
        ("wbs_level", 4),
        ("wbs_level", "2"),
        ("estimated_effort", "huge"),
        ("acceptance_criteria", "works"),
        ("dependencies", "t-0"),
        ("suggested_impl", "go"),
    ],
)
def test_a_bad_task_is_refused(key: str, value: object) -> None:
    path = f"phases.0.tasks.0.{key}"
    assert refusal("decompose", phases=phases(TASK | {key: value})) == ("invalid", path)


def test_one_id_names_one_task() -> None:
    twice = phases(TASK) + phases(copy.deepcopy(TASK))
    assert refusal("decompose", phases=twice) == ("invalid", "phases.1.tasks.0.id")
    create = {"op": "create", "temp_id": "t", "title": "T"}
    assert refusal("plan_patch", operations=[create, create]) == ("invalid", "operations.1.temp_id")


def test_a_patch_without_operations_is_no_change() -> None:
    payload = message("plan_patch", operations=[]).payload
    assert payload == PlanPatch(understanding="u", operations=[])


def test_absent_empty_and_null_stay_apart_in_an_update() -> None:
    absent = operation(op="update", task_id="x")
    empty = operation(op="update", task_id="x", dependencies=[])
    null = operation(op="update", task_id="x", dependencies=None)
    assert (absent.dependencies, empty.dependencies, null.dependencies) == (None, [], None)
    assert "dependencies" not in absent.model_fields_set
    assert "dependencies" in null.model_fields_set


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"op": "create", "title": "T"}, ("missing", "temp_id")),
        ({"op": "update", "title": "T"}, ("missing", "task_id")),
        ({"op": "move", "parent_id": "p"}, ("missing", "task_id")),
        ({"op": "delete"}, ("missing", "task_id")),
        ({"op": "delete", "task_id": None}, ("missing", "task_id")),
        ({"op": "upsert", "task_id": "x"}, ("invalid", "op")),
        ({"task_id": "x"}, ("missing", "op")),
        (
            {"op": "move", "task_id": "x", "position": {"index": 0, "after": "y"}},
            ("invalid", "position"),
        ),
        ({"op": "move", "task_id": "x", "position": {"index": "0"}}, ("invalid", "position.index")),
        ({"op": "delete", "task_id": "x", "cascade": "yes"}, ("invalid", "cascade")),
        ({"op": "update", "task_id": "x", "wbs_level": 9}, ("invalid", "wbs_level")),
    ],
)
def test_a_bad_operation_is_refused(fields: dict[str, Any], expected: tuple[str, str]) -> None:
    code, path = refusal("plan_patch", operations=[fields])
    assert (code, path) == (expected[0], f"operations.0.{expected[1]}")


def test_every_bad_operation_is_named_at_once() -> None:
    with pytest.raises(ProtocolError) as caught:
        message("plan_patch", operations=[{"op": "update"}] * 30)
    told = caught.value.message
    for place in range(1, 20):
        assert f"operations.{place}.task_id: update needs a task_id" in told
    assert caught.value.path == "operations.0.task_id" and told.endswith("; and 10 more")


def test_an_id_that_an_operation_does_not_use_is_dropped() -> None:
    reply = message(
        "plan_patch",
        operations=[
            {"op": "create", "temp_id": "t", "task_id": "x"},
            {"op": "delete", "temp_id": "t", "task_id": "x"},
        ],
    )
    assert isinstance(reply.payload, PlanPatch)
    assert [(o.temp_id, o.task_id) for o in reply.payload.operations] == [("t", None), (None, "x")]
    assert [(w.code, w.path) for w in reply.warnings] == [
        ("ignored_field", "operations.0.task_id"),
        ("ignored_field", "operations.1.temp_id"),
    ]


@pytest.mark.parametrize("position", [None, {}, {"index": None, "before": None, "after": None}])
def test_an_empty_position_is_none(position: object) -> None:
    assert operation(op="move", task_id="x", position=position).position is None


def test_cascade_is_off_unless_asked_for() -> None:
    assert operation(op="delete", task_id="x", cascade=None).cascade is False
    assert operation(op="delete", task_id="x", cascade="true").cascade is True


def test_at_most_200_operations() -> None:
    delete = [{"op": "delete", "task_id": f"x{number}"} for number in range(201)]
    assert message("plan_patch", operations=delete[:200])
    assert refusal("plan_patch", operations=delete) == ("invalid", "operations")
