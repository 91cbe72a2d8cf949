"""The schemas given to models: strict, bounded, and in step with what is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from agentrunner.protocol import MESSAGE_TYPES, MessageType, message_schema, parse_reply

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


@pytest.mark.parametrize("type_", MESSAGE_TYPES)
def test_the_schema_is_strict_and_bounded(type_: MessageType) -> None:
    schema = message_schema(type_)
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
    assert message.payload.model_dump() == given


def test_what_the_task_decides_is_not_asked_for() -> None:
    call = message_schema("next_action")["properties"]["payload"]["properties"]["worker_call"]
    assert set(call["anyOf"][0]["properties"]) == {"worker_type", "mode", "model", "prompt"}


def test_a_schema_may_be_changed_by_its_owner() -> None:
    message_schema("plan_task")["properties"].clear()
    assert message_schema("plan_task")["properties"]
