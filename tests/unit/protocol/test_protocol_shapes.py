"""One message, however it is written down: flat or wrapped, YAML or JSON, bare or dressed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentrunner.errors import ProtocolError
from agentrunner.protocol import (
    MESSAGE_TYPES,
    Decision,
    MessageType,
    NextAction,
    PlanTask,
    parse_reply,
)

ASK = {"action": "ask_human", "reason": "which port?"}


def refusal(text: str | bytes, expected: MessageType = "next_action") -> tuple[str, str]:
    with pytest.raises(ProtocolError) as caught:
        parse_reply(text, expected)
    return caught.value.fault, caught.value.path


def read(document: dict[str, Any]) -> NextAction:
    payload = parse_reply(json.dumps(document), "next_action").payload
    assert isinstance(payload, NextAction)
    return payload


@pytest.mark.parametrize("type_", MESSAGE_TYPES)
def test_sixty_ways_to_write_the_same_message(
    type_: MessageType,
    shape: Callable[..., dict[str, Any]],
    notation: Callable[..., str],
    dress: Callable[..., str],
    payloads: dict[MessageType, dict[str, Any]],
) -> None:
    plain = parse_reply(
        json.dumps({"type": type_, "version": 1, "payload": payloads[type_]}), type_
    )
    message = parse_reply(dress(notation(shape(type_, payloads[type_]))), type_)
    assert message == plain
    assert message.warnings == ()


@pytest.mark.parametrize("type_", MESSAGE_TYPES)
def test_what_parse_prints_reads_as_the_same_message(
    type_: MessageType, payloads: dict[MessageType, dict[str, Any]]
) -> None:
    first = parse_reply(json.dumps({"type": type_, "payload": payloads[type_]}), type_)
    printed = first.as_dict()
    assert list(printed) == ["type", "version", "payload", "warnings"]
    again = parse_reply(json.dumps(printed | {"warnings": None}), type_)
    assert again.payload == first.payload


def test_defaults_are_filled_in() -> None:
    message = parse_reply("type: plan_task\nacceptance_criteria: [it works]\n", "plan_task")
    assert message.as_dict() == {
        "type": "plan_task",
        "version": 1,
        "payload": {
            "task_id": None,
            "acceptance_criteria": [
                {
                    "id": "AC-1",
                    "description": "it works",
                    "type": "",
                    "critical": True,
                    "check": None,
                    "tests": [],
                    "new_test": None,
                    "rationale": "",
                    "passed": False,
                }
            ],
        },
        "warnings": [
            {
                "code": "id_assigned",
                "path": "acceptance_criteria.0.id",
                "message": "AC-1 assigned: it had none",
            }
        ],
    }


def test_fields_beside_the_payload_count_where_it_lacks_them() -> None:
    text = json.dumps(
        {
            "type": "next_action",
            "payload": {"decision": ASK},
            "question": "Which port?",
            "decision": {"action": "abort", "reason": "no"},
            "mood": "good",
        }
    )
    message = parse_reply(text, "next_action")
    payload = message.payload
    assert isinstance(payload, NextAction)
    assert payload.decision.action == "ask_human"
    assert payload.question == "Which port?"
    assert [(w.code, w.path) for w in message.warnings] == [
        ("outside_payload", "question"),
        ("outside_payload", "decision"),
        ("unknown_field", "mood"),
    ]


def test_a_payload_that_is_no_mapping_is_no_payload() -> None:
    assert read({"type": "next_action", "payload": None, "decision": ASK}).decision.reason
    text = json.dumps({"type": "next_action", "payload": json.dumps({"decision": ASK})})
    assert refusal(text) == ("missing", "decision")


@pytest.mark.parametrize("version", [None, 1, "1"])
def test_version_1_may_be_left_out_or_be_text(version: object) -> None:
    read({"type": "next_action", "version": version, "decision": ASK})


@pytest.mark.parametrize("version", [0, 2, "2", "v1", "1.0", 1.0, True, [], {}, "9" * 5000])
def test_other_versions_are_refused(version: object) -> None:
    text = json.dumps({"type": "next_action", "version": version, "decision": ASK})
    assert refusal(text) == ("unsupported_version", "version")


@pytest.mark.parametrize(
    ("type_", "code"),
    [
        (None, "missing"),
        ("plan_task", "wrong_type"),
        ("Next_Action", "wrong_type"),
        ("", "wrong_type"),
        (1, "wrong_type"),
        (["next_action"], "wrong_type"),
    ],
)
def test_type_is_required_and_exact(type_: object, code: str) -> None:
    assert refusal(json.dumps({"type": type_, "decision": ASK})) == (code, "type")


def test_unknown_fields_are_ignored_with_a_warning_at_every_depth() -> None:
    text = json.dumps(
        {"type": "next_action", "payload": {"decision": {**ASK, "mood": 1}, "extra": [1]}}
    )
    message = parse_reply(text, "next_action")
    assert message.payload == NextAction(
        decision=Decision(action="ask_human", reason="which port?")
    )
    assert [(w.code, w.path) for w in message.warnings] == [
        ("unknown_field", "payload.decision.mood"),
        ("unknown_field", "payload.extra"),
    ]


def test_warnings_are_bounded() -> None:
    extras = {f"k{number}" + "x" * 500: number for number in range(500)}
    message = parse_reply(
        json.dumps({"type": "next_action", "decision": ASK, **extras}), "next_action"
    )
    assert len(message.warnings) == 50
    assert all(len(warning.path) <= 200 for warning in message.warnings)


@pytest.mark.parametrize(
    ("reason", "read_as"), [(7, "7"), (0, "0"), (-3, "-3"), ("true", "true"), (10**17, str(10**17))]
)
def test_whole_numbers_become_text_where_text_is_expected(reason: object, read_as: str) -> None:
    document = {"type": "next_action", "decision": {"action": "abort", "reason": reason}}
    assert read(document).decision.reason == read_as


@pytest.mark.parametrize("reason", [True, 1.5, ["x"], {"x": "y"}])
def test_nothing_else_becomes_text(reason: object) -> None:
    document = {"type": "next_action", "decision": {"action": "abort", "reason": reason}}
    assert refusal(json.dumps(document)) == ("invalid", "decision.reason")


@pytest.mark.parametrize("written", [True, "true"])
def test_true_may_be_written_as_text(written: object) -> None:
    text = json.dumps(
        {"type": "completion_assessment", "summary": "s", "all_criteria_satisfied": written}
    )
    assert parse_reply(text, "completion_assessment").as_dict()["payload"]["all_criteria_satisfied"]


@pytest.mark.parametrize("written", [1, "yes", "True", "on", 0.0, []])
def test_nothing_else_becomes_a_bool(written: object) -> None:
    text = json.dumps(
        {"type": "completion_assessment", "summary": "s", "all_criteria_satisfied": written}
    )
    assert refusal(text, "completion_assessment") == ("invalid", "all_criteria_satisfied")


@pytest.mark.parametrize(
    "text",
    ["...", "…", "……", ". . .", " ", "\n\t", "TASK-...", "AC-…", "ここに理由を書く…", "ここに..."],
)
def test_content_that_says_nothing_is_refused(text: str) -> None:
    document = {"type": "next_action", "payload": {"decision": {"action": "abort", "reason": text}}}
    assert refusal(json.dumps(document)) == ("placeholder", "payload.decision.reason")


@pytest.mark.parametrize(
    "text", ["No.", "x", "wait...", "v1.2", "ここにある設定を直す", "-", "Fix a..b"]
)
def test_short_content_is_content(text: str) -> None:
    assert read({"type": "next_action", "decision": {"action": "abort", "reason": text}})


def test_every_fault_is_told_at_once() -> None:
    text = json.dumps({"type": "next_action", "decision": {"action": "finish", "reason": "..."}})
    with pytest.raises(ProtocolError) as caught:
        parse_reply(text, "next_action")
    assert (caught.value.fault, caught.value.path) == ("invalid", "decision.action")
    assert "'run_worker'" in caught.value.message and "not 'finish'" in caught.value.message
    assert "decision.reason" in caught.value.message


@pytest.mark.parametrize(
    ("finish_reason", "code"),
    [
        ("length", "incomplete"),
        ("max_tokens", "incomplete"),
        ("", "incomplete"),
        ("content_filter", "refusal"),
        ("refusal", "refusal"),
    ],
)
def test_a_reply_that_did_not_stop_by_itself_is_never_read(finish_reason: str, code: str) -> None:
    text = json.dumps({"type": "next_action", "decision": ASK})
    with pytest.raises(ProtocolError) as caught:
        parse_reply(text, "next_action", finish_reason=finish_reason)
    assert caught.value.fault == code


@pytest.mark.parametrize("type_", MESSAGE_TYPES)
def test_no_prefix_of_a_json_answer_is_an_answer(
    type_: MessageType, payloads: dict[MessageType, dict[str, Any]]
) -> None:
    text = json.dumps({"type": type_, "version": 1, "payload": payloads[type_]}, indent=1)
    for end in range(1, len(text)):
        assert refusal(text[:end], type_)[0] == "incomplete", text[:end]


@pytest.mark.parametrize("type_", MESSAGE_TYPES)
def test_a_cut_yaml_answer_is_refused_where_it_is_known_to_be_cut(
    type_: MessageType,
    notation: Callable[..., str],
    payloads: dict[MessageType, dict[str, Any]],
) -> None:
    text = notation({"type": type_, **payloads[type_]})
    for end in range(len(text)):
        with pytest.raises(ProtocolError) as caught:
            parse_reply(text[:end], type_, finish_reason="length")
        assert caught.value.fault == "incomplete"
        # without the planner's word it may be read, but only ever as a message or a refusal
        try:
            parse_reply(text[:end], type_)
        except ProtocolError as error:
            assert error.fault  # noqa: PT017 - both ends are right here


@pytest.mark.parametrize(
    ("new_test", "decided"),
    [
        ({"file": "tests/test_a.py", "name": "test_b"}, "test_b"),
        ({"file": "", "name": ""}, None),
        ("", None),
        (None, None),
    ],
)
def test_a_test_to_be_written_decides_where_there_is_no_check(
    new_test: Any, decided: str | None
) -> None:
    item = {"id": "AC-1", "description": "It works.", "new_test": new_test}
    (draft,) = plan_of(item).acceptance_criteria
    assert (draft.decided_by or {}).get("name") == decided
    (draft,) = plan_of({**item, "check": "make test"}).acceptance_criteria
    assert draft.decided_by == {"kind": "command", "run": "make test"}


@pytest.mark.parametrize(
    "new_test",
    [{"file": "../a.py", "name": "t"}, {"file": "/a.py", "name": "t"}, {"name": "t"}, "t"],
)
def test_a_test_to_be_written_has_a_place_in_the_repository(new_test: Any) -> None:
    with pytest.raises(ProtocolError, match="new_test"):
        plan_of({"description": "It works.", "new_test": new_test})


def plan_of(item: dict[str, Any]) -> PlanTask:
    text = json.dumps({"type": "plan_task", "payload": {"acceptance_criteria": [item]}})
    payload = parse_reply(text, "plan_task").payload
    assert isinstance(payload, PlanTask)
    return payload
