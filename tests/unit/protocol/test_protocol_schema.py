"""The schemas given to models: strict, bounded, and in step with what is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from agentrunner.errors import ProtocolError
from agentrunner.protocol import (
    MESSAGE_TYPES,
    Choices,
    MessageType,
    message_schema,
    parse_reply,
    take_reply,
)
from agentrunner.protocol.plan_schema import MOST_IN_ALL, PlanIds
from agentrunner.protocol.schema import MESSAGES, run_schema

STRICT_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum",
    "maxLength", "maxItems", "minItems",
}  # fmt: skip


def parts(schema: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    yield depth, schema
    for inner in schema.get("properties", {}).values():
        yield from parts(inner, depth + 1)
    if "items" in schema:
        yield from parts(schema["items"], depth + 1)
    for inner in schema.get("anyOf", []):
        yield from parts(inner, depth)


def conforming(schema: dict[str, Any], value: Any) -> Any:
    """The value as a model bound to the schema writes it: every key there, null for nothing."""
    options = schema.get("anyOf", [schema])
    if value is None and len(options) > 1:
        return None
    chosen = options[0]
    if chosen["type"] == "object":
        given = value if isinstance(value, dict) else {}
        return {k: conforming(part, given.get(k)) for k, part in chosen["properties"].items()}
    if chosen["type"] == "array":
        return [conforming(chosen["items"], item) for item in value or []]
    blank = {"string": "", "boolean": True, "integer": 1}[chosen["type"]]
    return blank if value is None else value


CHOICES = Choices(
    workers=("codex-cli", "日本"), models=("gpt-5.5",), patterns=("fix",),
    criteria=("AC-1", "AC-2"), kinds=("command", "file", "test"), tests=("T1", "T2"),
)  # fmt: skip


@pytest.mark.parametrize("choices", [None, Choices(), CHOICES])
@pytest.mark.parametrize("type_", MESSAGE_TYPES)
def test_the_schema_is_strict_and_bounded(type_: MessageType, choices: Choices | None) -> None:
    schema = message_schema(type_, choices, looks=choices is not None)
    jsonschema.Draft202012Validator.check_schema(schema)
    found = list(parts(schema))
    assert max(depth for depth, _ in found) <= 10
    for _, part in found:
        assert set(part) <= STRICT_KEYWORDS
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
        if part.get("type") == "string":
            assert "maxLength" in part or "enum" in part
        if part.get("type") == "array":
            assert "maxItems" in part


@pytest.mark.parametrize("type_", MESSAGE_TYPES)
def test_an_answer_under_the_schema_is_read(
    type_: MessageType, payloads: dict[MessageType, dict[str, Any]]
) -> None:
    payload = json.loads(json.dumps(payloads[type_]))
    payload.pop("all_criteria_satisfied", None)  # it is read, and not asked for
    for criterion in payload.get("acceptance_criteria", []):
        if isinstance(criterion.get("check"), str):
            criterion["check"] = {"kind": "command", "run": criterion["check"]}
    schema = message_schema(type_)
    answer = conforming(schema, {"type": type_, "version": 1, "payload": payload})
    jsonschema.validate(answer, schema)
    message = parse_reply(json.dumps(answer), type_)
    assert message.warnings == ()
    loose = parse_reply(json.dumps({"type": type_, "payload": payload}), type_)
    given = loose.payload.model_dump()
    if type_ == "plan_task":
        given["task_id"] = None  # ours counts, so it is not asked for
    if type_ == "next_action":
        given["worker_call"] |= {"flags": [], "env": {}, "use_stdin": None}
    if type_ == "completion_assessment":
        given["details"]["passed_criteria"] = []  # asked for once, by criterion
    assert message.payload.model_dump() == given


def test_what_the_task_decides_is_not_asked_for() -> None:
    call = message_schema("next_action")["properties"]["payload"]["properties"]["worker_call"]
    assert set(call["anyOf"][0]["properties"]) == {"worker_type", "mode", "model", "prompt"}


def payload_of(type_: MessageType, choices: Choices) -> Any:
    return message_schema(type_, choices)["properties"]["payload"]["properties"]


def action_of(name: str, choices: Choices) -> Any:
    forms = message_schema("next_action", choices)["properties"]["payload"]["anyOf"]
    found = [one["properties"] for one in forms]
    return next(one for one in found if name in one["decision"]["properties"]["action"]["enum"])


@pytest.mark.parametrize("choices", [None, CHOICES, replace(CHOICES, whole_run=True)])
def test_what_a_decision_rests_on_is_written_before_it(choices: Choices | None) -> None:
    """A model writes keys in the order of the schema: a verdict that comes first is a guess."""

    def before(keys: dict[str, Any], *names: str) -> bool:
        places = [list(keys).index(name) for name in names]
        return places == sorted(places)

    def of(type_: MessageType) -> list[dict[str, Any]]:
        payload = message_schema(type_, choices, looks=True)["properties"]["payload"]
        return [one["properties"] for one in payload.get("anyOf", [payload])]

    for form in of("next_action"):
        assert next(iter(form)) == "decision"
        assert before(form["decision"]["properties"], "reason", "action")
    [judged] = of("completion_assessment")
    assert before(judged, "by_criterion", "summary")
    assert "all_criteria_satisfied" not in judged  # code concludes that
    assert before(judged["by_criterion"]["items"]["properties"], "id", "comment", "status")
    [plan] = of("plan_task")
    criterion = plan["acceptance_criteria"]["items"]["properties"]
    assert before(criterion, "rationale", "description", "check")


def test_no_text_but_an_order_has_room_to_repeat_itself() -> None:
    """A small model filled one risk of a judgement with thousands of tokens of the same words."""
    for type_ in ("plan_task", "completion_assessment"):
        texts = [part for _, part in parts(message_schema(type_)) if "maxLength" in part]
        assert max(part["maxLength"] for part in texts) <= 1000


def test_a_plan_that_is_asked_for_once_more_has_only_the_criteria_at_fault() -> None:
    """A small model was told of AC-2, and answered with another AC-1."""
    again = payload_of("plan_task", replace(CHOICES, at_fault=("AC-2",)))["acceptance_criteria"]
    assert again["items"]["properties"]["id"]["enum"] == ["AC-2"] and again["maxItems"] == 1
    whole = payload_of("plan_task", CHOICES)["acceptance_criteria"]
    assert "enum" not in whole["items"]["properties"]["id"] and whole["maxItems"] > 1
    known = replace(CHOICES, at_fault=("AC-2",))
    assert run_schema(known) == run_schema(CHOICES)  # a provider's cache holds it


@pytest.mark.parametrize("choices", [None, CHOICES])
def test_folder_time_and_exit_code_of_a_command_are_read_and_not_asked_for(
    choices: Choices | None,
) -> None:
    """Small models fill them in: "." and 0, and the exit code that a test has before the work."""
    keys = {name for _, part in parts(message_schema("plan_task", choices))
            for name in part.get("properties", {})}  # fmt: skip
    assert "run" in keys and keys.isdisjoint({"cwd", "timeout_sec", "expect_exit"})
    check = {"kind": "command", "run": "make", "cwd": "web", "timeout_sec": 9, "expect_exit": 2}
    criterion = {"id": "AC-1", "description": "It builds.", "check": check}
    reply = {"type": "plan_task", "payload": {"acceptance_criteria": [criterion]}}
    payload = parse_reply(json.dumps(reply), "plan_task").payload.model_dump()
    assert payload["acceptance_criteria"][0]["check"] == check


def test_an_action_has_the_keys_that_go_with_it() -> None:
    keys = {name: set(action_of(name, CHOICES)) for name in ("run_worker", "abort", "ask_human")}
    assert keys == {
        "run_worker": {"decision", "worker_call", "used_patterns"},
        "abort": {"decision"},
        "ask_human": {"decision", "question", "options"},
    }
    assert action_of("mark_complete", CHOICES) == action_of("abort", CHOICES)


def test_a_schema_for_the_task_names_what_it_has() -> None:
    action = action_of("run_worker", CHOICES)
    call = action["worker_call"]["properties"]
    assert call["worker_type"]["enum"] == ["codex-cli", "日本"]
    assert call["model"]["anyOf"][0]["enum"] == ["gpt-5.5"]
    assert action["used_patterns"]["items"]["enum"] == ["fix"]
    verdicts = payload_of("completion_assessment", CHOICES)
    assert verdicts["by_criterion"]["items"]["properties"]["id"]["enum"] == ["AC-1", "AC-2"]
    planned = payload_of("plan_task", CHOICES)["acceptance_criteria"]["items"]["properties"]
    check = planned["check"]
    kinds = [one["properties"]["kind"]["enum"] for one in check["anyOf"][:-1]]
    assert kinds == [["command"], ["file"], ["test"]] and check["anyOf"][-1] == {"type": "null"}
    assert "run" not in check["anyOf"][1]["properties"]
    assert planned["tests"]["items"]["enum"] == ["T1", "T2"]
    assert check["anyOf"][2]["properties"]["name"]["anyOf"][0]["enum"] == ["T1", "T2"]
    assert set(planned["new_test"]["anyOf"][0]["properties"]) == {"file", "name"}


def test_the_schema_of_a_run_stays_the_same_and_takes_each_of_its_messages(
    payloads: dict[MessageType, dict[str, Any]],
) -> None:
    known = replace(CHOICES, workers=(), models=(), patterns=())
    planned = replace(known, criteria=("AC-7",), own_checks=("AC-7",))
    schema = run_schema(known, looks=True)
    assert json.dumps(schema) == json.dumps(run_schema(planned, looks=True))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert max(depth for depth, _ in parts(schema)) <= 10
    for type_ in MESSAGES:
        said = {"type": type_, "payload": json.loads(json.dumps(payloads[type_]))}
        for criterion in said["payload"].get("acceptance_criteria", []):
            criterion["check"] = None
        own = message_schema(type_, replace(planned, whole_run=True), looks=True)
        answer = conforming(own, said)
        jsonschema.validate(answer, schema)


def test_a_key_that_could_not_be_used_is_not_there_and_what_is_long_is_text() -> None:
    none = Choices(workers=("a",), criteria=tuple(f"AC-{n}" for n in range(300)))
    action = action_of("run_worker", none)
    assert "used_patterns" not in action
    assert "model" not in action["worker_call"]["properties"]
    item = payload_of("completion_assessment", none)["by_criterion"]["items"]
    assert "enum" not in item["properties"]["id"]
    planned = payload_of("plan_task", none)["acceptance_criteria"]["items"]["properties"]
    assert len(planned["check"]["anyOf"]) == 8  # all kinds but `diff`, and none
    assert "tests" not in planned and "name" not in planned["check"]["anyOf"][1]["properties"]
    without_suite = payload_of("plan_task", Choices(kinds=("command",), new_tests=False))
    assert "new_test" not in without_suite["acceptance_criteria"]["items"]["properties"]


PLAN = PlanIds(
    tasks=("TASK-0001", "TASK-0002"), phases=("node-0001",),
    parents=("node-root", "node-0001", "node-0002", "node-0003"), at_work=("TASK-0002",),
)  # fmt: skip


def operations_of(plan: PlanIds) -> dict[str, Any]:
    """The form of each operation, by its name."""
    items = payload_of("plan_patch", Choices(plan=plan))["operations"]["items"]
    forms = [one["properties"] for one in items["anyOf"]]
    return {one["op"]["enum"][0]: one for one in forms}


def test_an_operation_has_its_keys_and_names_what_the_plan_has() -> None:
    forms = operations_of(PLAN)
    assert set(forms["delete"]) == {"op", "task_id", "cascade"}
    assert set(forms["move"]) == {"op", "task_id", "parent_id", "position"}
    assert "position" not in forms["update"] and "task_id" not in forms["create"]
    targets = ["TASK-0001", "TASK-0002", "node-0001"]
    assert forms["update"]["task_id"]["enum"] == forms["move"]["task_id"]["enum"] == targets
    assert forms["delete"]["task_id"]["enum"] == ["TASK-0001", "node-0001"]  # the other is at work
    made = forms["create"]["temp_id"]["enum"]
    assert made[:2] == ["temp-1", "temp-2"]
    assert forms["create"]["dependencies"]["items"]["enum"] == [*PLAN.tasks, *made]
    assert forms["move"]["parent_id"]["anyOf"][0]["enum"] == [*PLAN.parents, *made]
    beside = forms["move"]["position"]["anyOf"][1]["properties"]
    assert beside["before"]["enum"] == [*targets, *made]
    busy = replace(PLAN, at_work=PLAN.tasks, phases=())
    assert set(operations_of(busy)) == {"create", "update", "move"}


def test_a_decomposition_names_its_tasks_by_temporary_ids() -> None:
    split = payload_of("decompose", Choices())
    task = split["phases"]["items"]["properties"]["tasks"]["items"]["properties"]
    assert task["id"] == task["dependencies"]["items"]
    assert task["id"]["enum"][:2] == ["temp-1", "temp-2"]


@pytest.mark.parametrize(
    ("tasks", "named", "beside"), [(40, True, True), (80, True, False), (300, False, False)]
)
def test_a_plan_that_is_too_large_for_enumerations_has_texts(
    tasks: int, named: bool, beside: bool
) -> None:
    ids = tuple(f"TASK-{n:04}" for n in range(1, tasks + 1))
    nodes = tuple(f"node-{n:04}" for n in range(1, tasks + 1))
    plan = PlanIds(tasks=ids, parents=("node-root", *nodes))
    schema = message_schema("plan_patch", Choices(plan=plan), looks=True)
    values = [len(part["enum"]) for _, part in parts(schema) if "enum" in part]
    assert sum(values) <= MOST_IN_ALL + 10
    forms = operations_of(plan)
    assert ("enum" in forms["update"]["task_id"]) == named
    neighbour = forms["move"]["position"]["anyOf"][1]["properties"]["before"]
    assert ("enum" in neighbour) == beside


def test_an_answer_under_the_schema_of_a_plan_is_read() -> None:
    given: list[dict[str, Any]] = [
        {"op": "create", "temp_id": "temp-1", "title": "Search", "description": "A search.",
         "acceptance_criteria": ["It finds."], "dependencies": ["TASK-0001"], "phase_name": None,
         "milestone": None, "wbs_level": 3, "estimated_effort": "small", "suggested_impl": None,
         "parent_id": "node-0001", "position": {"after": "TASK-0002"}},
        {"op": "delete", "task_id": "TASK-0001", "cascade": False},
    ]  # fmt: skip
    payload = {
        "understanding": "Search.", "operations": given, "potential_conflicts": [],
        "questions": [], "looks": [],
    }  # fmt: skip
    answer = {"type": "plan_patch", "version": 1, "payload": payload}
    jsonschema.validate(answer, message_schema("plan_patch", Choices(plan=PLAN), looks=True))
    assert take_reply(json.dumps(answer), "plan_patch").warnings == ()


def test_looks_are_read_in_any_message_and_alone() -> None:
    look = {"read": "a.py", "from": 2, "to": 9, "search": "", "list": None}
    alone = {"type": "look", "version": 1, "payload": {"looks": [look]}}
    for value in (alone, {"type": "look", "looks": [look]}, {"type": "look", "looks": look},
                  {"type": "next_action", "payload": {"decision": 7, "looks": [look]}},
                  {"type": "completion_assessment", "looks": [look]}):  # fmt: skip
        message = take_reply(json.dumps(value), "next_action", looks=True)
        assert message.type == "look"
        (found,) = message.payload.looks  # type: ignore[union-attr]
        assert (found.form, found.what, found.first, found.last) == ("read", "a.py", 2, 9)


@pytest.mark.parametrize(
    "look",
    [{}, {"read": "a", "diff": ["b"]}, {"read": ""}, {"read": 7, "from": -1}, {"from": 1}, "a.py",
     {"read": ["a"]}, {"read": "a", "from": 10**12}],
)  # fmt: skip
def test_a_look_that_is_none_is_refused_and_runs_nothing(look: Any) -> None:
    decision = {"action": "run_worker", "reason": "r"}
    value = {"type": "next_action", "payload": {"decision": decision, "looks": [look]}}
    with pytest.raises(ProtocolError) as caught:
        take_reply(json.dumps(value), "next_action", looks=True)
    assert "looks" in caught.value.path


def test_empty_looks_are_nothing_and_not_warned_of() -> None:
    decision = {"action": "mark_complete", "reason": "All is green."}
    nothing: tuple[Any, ...] = ([], None, "")
    for looks in nothing:
        value = {"type": "next_action", "payload": {"decision": decision, "looks": looks}}
        for may in (True, False):
            message = take_reply(json.dumps(value), "next_action", looks=may)
            assert message.type == "next_action" and not message.warnings


def test_who_may_not_look_is_not_read_as_one_who_does() -> None:
    value = {"type": "look", "version": 1, "payload": {"looks": [{"read": "a.py"}]}}
    with pytest.raises(ProtocolError) as caught:
        take_reply(json.dumps(value), "next_action")
    assert caught.value.fault == "wrong_type"


def test_completion_cannot_be_asked_for_before_anything_may_have_changed() -> None:
    def actions(choices: Choices) -> set[str]:
        schema = message_schema("next_action", choices)
        forms = schema["properties"]["payload"]["anyOf"]
        enums = [one["properties"]["decision"]["properties"]["action"]["enum"] for one in forms]
        return {action for enum in enums for action in enum}

    assert "mark_complete" in actions(Choices())
    assert actions(Choices(may_complete=False)) == {"run_worker", "abort", "ask_human"}


def test_a_plan_may_be_empty_only_where_the_task_has_criteria() -> None:
    def least(choices: Choices) -> int:
        return int(payload_of("plan_task", choices)["acceptance_criteria"].get("minItems", 0))

    assert (least(Choices()), least(Choices(criteria=("AC-1",)))) == (1, 0)
    assert least(Choices(criteria=("AC-1",), at_fault=("AC-1",))) == 1
