"""Criterion ids in another case or with other hyphens are taken where one known id is meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentrunner.protocol import (
    CompletionAssessment,
    Message,
    MessageType,
    PlanPatch,
    PlanTask,
    parse_reply,
)
from agentrunner.protocol.known_ids import known_id, with_known_ids, with_plan_ids


def message(type_: MessageType, payload: dict[str, Any]) -> Message:
    return parse_reply(json.dumps({"version": 1, "type": type_, "payload": payload}), type_)


@pytest.mark.parametrize("given", ["ac-1", "AC_1", "Ac 1", "AC\u20111", "ac1"])
def test_what_is_clear_is_taken(given: str) -> None:
    assert known_id(given, ["AC-1", "AC-2"]) == "AC-1"


@pytest.mark.parametrize("given", ["AC-3", "AC-12", "A C-1-", "", "-", "criterion 1"])
def test_what_fits_none_stays(given: str) -> None:
    known = ["AC-1", "AC-2"]
    assert known_id(given, known) in (None, "AC-1" if given == "A C-1-" else None)


def test_what_fits_two_stays() -> None:
    assert known_id("ac11", ["AC-11", "AC-1-1"]) is None


def test_a_no_under_another_spelling_still_wins() -> None:
    payload = {
        "summary": "Hm.",
        "by_criterion": [{"id": "AC-1", "status": "passed"}, {"id": "ac_1", "status": "failed"}],
    }
    found, told = with_known_ids(message("completion_assessment", payload), ["AC-1"])
    assert isinstance(found.payload, CompletionAssessment)
    assert found.payload.failed_ids() == ["AC-1"] and found.payload.passed_ids() == []
    assert len(told) == 1 and "ac_1" in told[0]


def test_two_criteria_of_one_plan_do_not_become_one() -> None:
    drafts = [{"id": "AC-1", "description": "One."}, {"id": "ac-1", "description": "Two."}]
    found, told = with_known_ids(message("plan_task", {"acceptance_criteria": drafts}), ["AC-1"])
    assert isinstance(found.payload, PlanTask)
    assert [one.id for one in found.payload.acceptance_criteria] == ["AC-1", "ac-1"]
    assert told == []


def test_a_change_of_a_plan_names_tasks_by_their_ids_and_new_ones_by_their_own() -> None:
    operations = [
        {"op": "create", "temp_id": "task 0001", "title": "New", "parent_id": "NODE_0001"},
        {"op": "update", "task_id": "task_0002", "dependencies": ["task 0001", "Task-0001", "x"]},
        {"op": "move", "task_id": "TASK-0001", "position": {"after": "task0002"}},
    ]
    payload = {"understanding": "Hm.", "operations": operations}
    known = ["TASK-0001", "TASK-0002", "node-0001"]
    found, told = with_plan_ids(message("plan_patch", payload), known)
    assert isinstance(found.payload, PlanPatch)
    create, update, move = found.payload.operations
    assert (create.temp_id, create.parent_id) == ("task 0001", "node-0001")
    assert (update.task_id, update.dependencies) == ("TASK-0002", ["task 0001", "TASK-0001", "x"])
    assert update.title is None and "title" not in update.model_fields_set
    assert move.position is not None and move.position.after == "TASK-0002"
    assert len(told) == 4
    same = message("plan_patch", {"understanding": "Hm.", "operations": []})
    assert with_plan_ids(same, known) == (same, [])
