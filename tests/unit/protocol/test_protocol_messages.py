"""plan_task, next_action and completion_assessment, field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from agentrunner.errors import ProtocolError
from agentrunner.protocol import (
    CompletionAssessment,
    CriterionDraft,
    Decision,
    Message,
    MessageType,
    NextAction,
    PlanTask,
    WorkerCall,
    parse_reply,
)
from agentrunner.registry import canonical_worker_type

CALL = {"worker_type": "codex-cli", "mode": "exec", "prompt": "Do it."}


def message(type_: MessageType, **payload: Any) -> Message:
    return parse_reply(json.dumps({"type": type_, "payload": payload}), type_)


def refusal(type_: MessageType, **payload: Any) -> tuple[str, str]:
    with pytest.raises(ProtocolError) as caught:
        message(type_, **payload)
    assert caught.value.path.startswith("payload.")
    return caught.value.fault, caught.value.path.removeprefix("payload.")


def criteria(*items: object) -> list[CriterionDraft]:
    payload = message("plan_task", acceptance_criteria=list(items)).payload
    assert isinstance(payload, PlanTask)
    return payload.acceptance_criteria


def decide(action: str, **fields: Any) -> NextAction:
    payload = message("next_action", decision={"action": action, "reason": "r"}, **fields).payload
    assert isinstance(payload, NextAction)
    return payload


def assess(**fields: Any) -> CompletionAssessment:
    payload = message("completion_assessment", summary="s", **fields).payload
    assert isinstance(payload, CompletionAssessment)
    return payload


# plan_task


def test_ids_are_assigned_where_missing_blank_or_repeated() -> None:
    reply = message(
        "plan_task",
        acceptance_criteria=[
            {"id": "AC-2", "description": "a"},
            {"description": "b"},
            {"id": "AC-2", "description": "c"},
            "d",
            {"id": " ", "description": "e"},
            {"id": 7, "description": "f"},
        ],
    )
    assert isinstance(reply.payload, PlanTask)
    ids = [criterion.id for criterion in reply.payload.acceptance_criteria]
    assert ids == ["AC-2", "AC-3", "AC-4", "AC-5", "AC-6", "7"]
    assert [warning.path for warning in reply.warnings] == [
        f"payload.acceptance_criteria.{number}.id" for number in (1, 2, 3, 4)
    ]
    assert {warning.code for warning in reply.warnings} == {"id_assigned"}


@pytest.mark.parametrize("count", [1, 50])
def test_a_plan_has_one_to_fifty_criteria(count: int) -> None:
    assert len(criteria(*["it works"] * count)) == count


def test_no_criteria_are_an_answer_where_people_gave_them_all() -> None:
    assert criteria() == []


@pytest.mark.parametrize("count", [51, 500])
def test_more_criteria_are_refused(count: int) -> None:
    assert refusal("plan_task", acceptance_criteria=["it works"] * count) == (
        "invalid",
        "acceptance_criteria",
    )


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"id": "AC-1"}, ("missing", "acceptance_criteria.0.description")),
        ({"description": None}, ("missing", "acceptance_criteria.0.description")),
        ({"description": "..."}, ("placeholder", "acceptance_criteria.0.description")),
        ("", ("placeholder", "acceptance_criteria.0.description")),
        ({"description": "x", "critical": "maybe"}, ("invalid", "acceptance_criteria.0.critical")),
        ({"description": "x", "id": ["a"]}, ("invalid", "acceptance_criteria.0.id")),
        ({"description": "x" * 20_001}, ("invalid", "acceptance_criteria.0.description")),
        (None, ("invalid", "acceptance_criteria.0")),
        ([], ("invalid", "acceptance_criteria.0")),
        (True, ("invalid", "acceptance_criteria.0")),
    ],
)
def test_a_bad_criterion_is_refused(item: object, expected: tuple[str, str]) -> None:
    assert refusal("plan_task", acceptance_criteria=[item]) == expected


def test_the_plan_needs_its_criteria() -> None:
    assert refusal("plan_task", task_id="T-1") == ("missing", "acceptance_criteria")
    assert refusal("plan_task", task_id="TASK-...", acceptance_criteria=["x"]) == (
        "placeholder",
        "task_id",
    )


@pytest.mark.parametrize(
    ("check", "read_as"),
    [
        (None, None),
        ({}, None),
        ("", None),
        ({"kind": None, "run": None}, None),
        ("pytest -q", {"kind": "command", "run": "pytest -q"}),
        (
            {"kind": "command", "run": "make", "timeout_sec": "1.5", "expect_exit": 2, "cwd": None},
            {"kind": "command", "run": "make", "timeout_sec": 1.5, "expect_exit": 2},
        ),
        ({"kind": "test", "name": 7}, {"kind": "test", "name": "7"}),
        (
            {"kind": "file", "path": "a", "exists": "true"},
            {"kind": "file", "path": "a", "exists": True},
        ),
        ({"kind": "diff", "must_change": ["src/**"]}, {"kind": "diff", "must_change": ["src/**"]}),
        ({"kind": "telepathy"}, {"kind": "telepathy"}),
    ],
)
def test_checks(check: object, read_as: object) -> None:
    assert criteria({"description": "x", "check": check})[0].check == read_as


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ({"run": "make"}, ("missing", "check.kind")),
        ({"kind": "command"}, ("missing", "check.run")),
        ({"kind": "command", "run": "..."}, ("placeholder", "check.run")),
        ({"kind": "file", "contains": "x"}, ("missing", "check.path")),
        ({"kind": "command", "run": "a", "timeout_sec": 0}, ("invalid", "check.timeout_sec")),
        ({"kind": "command", "run": "a", "expect_exit": "0"}, ("invalid", "check.expect_exit")),
        (["make"], ("invalid", "check")),
        (True, ("invalid", "check")),
    ],
)
def test_bad_checks_are_refused(check: object, expected: tuple[str, str]) -> None:
    code, path = refusal("plan_task", acceptance_criteria=[{"description": "x", "check": check}])
    assert (code, path) == (expected[0], f"acceptance_criteria.0.{expected[1]}")


def test_unknown_fields_of_a_check_are_dropped_with_a_warning() -> None:
    check = {"kind": "command", "run": "make", "shell": "zsh"}
    reply = message(
        "plan_task", acceptance_criteria=[{"id": "A", "description": "x", "check": check}]
    )
    assert isinstance(reply.payload, PlanTask)
    assert reply.payload.acceptance_criteria[0].check == {"kind": "command", "run": "make"}
    assert reply.warnings[0].path == "payload.acceptance_criteria.0.check.shell"


# next_action


@pytest.mark.parametrize("action", ["mark_complete", "ask_human", "abort"])
@pytest.mark.parametrize("call", [None, {}, {"worker_type": None, "prompt": "", "flags": []}])
def test_an_empty_worker_call_is_none(action: str, call: object) -> None:
    assert decide(action, worker_call=call).worker_call is None


@pytest.mark.parametrize("action", ["mark_complete", "ask_human", "abort"])
def test_a_worker_call_contradicts_every_other_action(action: str) -> None:
    fields = {"decision": {"action": action, "reason": "r"}, "worker_call": CALL}
    assert refusal("next_action", **fields) == ("invalid", "worker_call")


@pytest.mark.parametrize("call", [None, {}, {"prompt": " "}])
def test_run_worker_needs_a_worker_call(call: object) -> None:
    fields = {"decision": {"action": "run_worker", "reason": "r"}, "worker_call": call}
    assert refusal("next_action", **fields) == ("missing", "worker_call")


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (None, ("missing", "decision")),
        ({"reason": "r"}, ("missing", "decision.action")),
        ({"action": None, "reason": "r"}, ("missing", "decision.action")),
        ({"action": "abort"}, ("missing", "decision.reason")),
        ({"action": "", "reason": "r"}, ("invalid", "decision.action")),
        ({"action": "run", "reason": "r"}, ("invalid", "decision.action")),
        ({"action": ["abort"], "reason": "r"}, ("invalid", "decision.action")),
        ("abort", ("invalid", "decision")),
    ],
)
def test_no_missing_or_unknown_action_becomes_one(
    decision: object, expected: tuple[str, str]
) -> None:
    assert refusal("next_action", decision=decision) == expected


def test_retry_with_context_is_reserved() -> None:
    text = "type: next_action\ndecision: {action: retry_with_context, reason: r}\n"
    with pytest.raises(ProtocolError, match="reserved") as caught:
        parse_reply(text, "next_action")
    assert (caught.value.fault, caught.value.path) == ("invalid", "decision.action")


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        *[(n, "codex-cli") for n in ("codex", "codex-cli", "Codex_CLI", " CODEX ")],
        *[(n, "claude-code") for n in ("claude", "claude_code", "claude-code-cli", "Claude-Code")],
        *[(n, "cursor-cli") for n in ("cursor", "cursor-agent", "cursor_cli", "Cursor_Agent")],
        ("mock", "mock"),
        ("Gemini_CLI", "gemini-cli"),
    ],
)
def test_worker_types_have_one_name(name: str, canonical: str) -> None:
    assert canonical_worker_type(name) == canonical
    call = decide("run_worker", worker_call=CALL | {"worker_type": name}).worker_call
    assert call is not None and call.worker_type == canonical


def test_a_worker_call_may_bring_all_of_its_fields() -> None:
    extras = {
        "mode": "resume",
        "model": "m-1",
        "flags": ["--verbose"],
        "env": {"PORT": 80},
        "tool_specific": {"sandbox": {"a": [1, None]}},
        "use_stdin": "true",
    }
    call = decide("run_worker", worker_call=CALL | extras).worker_call
    assert call == WorkerCall(
        worker_type="codex-cli",
        mode="resume",
        prompt="Do it.",
        model="m-1",
        flags=["--verbose"],
        env={"PORT": "80"},
        tool_specific={"sandbox": {"a": [1, None]}},
        use_stdin=True,
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"worker_type": None}, ("missing", "worker_call.worker_type")),
        ({"mode": None}, ("missing", "worker_call.mode")),
        ({"mode": "background"}, ("invalid", "worker_call.mode")),
        ({"prompt": "..."}, ("placeholder", "worker_call.prompt")),
        ({"prompt": "x" * 100_001}, ("invalid", "worker_call.prompt")),
        ({"flags": "--yolo"}, ("invalid", "worker_call.flags")),
        ({"env": ["A=1"]}, ("invalid", "worker_call.env")),
        ({"env": {"A": None}}, ("invalid", "worker_call.env.A")),
        ({"use_stdin": "yes"}, ("invalid", "worker_call.use_stdin")),
    ],
)
def test_a_bad_worker_call_is_refused(change: dict[str, Any], expected: tuple[str, str]) -> None:
    decision = {"action": "run_worker", "reason": "r"}
    assert refusal("next_action", decision=decision, worker_call=CALL | change) == expected


def test_a_long_prompt_fits() -> None:
    call = decide("run_worker", worker_call=CALL | {"prompt": "x" * 100_000}).worker_call
    assert call is not None and len(call.prompt) == 100_000


def test_questions_options_patterns_and_updates() -> None:
    action = decide(
        "ask_human",
        question="Which port?",
        options=["80", 8080],
        used_patterns=["run_all_checks"],
        updated_acceptance_criteria=[{"id": "AC-1", "passed": True, "description": "dropped"}],
    )
    assert action.question == "Which port?"
    assert action.options == ["80", "8080"]
    assert action.used_patterns == ["run_all_checks"]
    assert action.updated_acceptance_criteria[0].passed is True
    assert decide("ask_human", question=" ", options=None).question is None


def test_the_rules_hold_for_code_too() -> None:
    with pytest.raises(ValidationError):
        NextAction(decision=Decision(action="run_worker", reason="r"))


# completion_assessment


def verdicts(**status: str) -> list[dict[str, str]]:
    return [{"id": id_.replace("_", "-"), "status": word} for id_, word in status.items()]


@pytest.mark.parametrize(
    ("fields", "satisfied"),
    [
        ({"by_criterion": verdicts(AC_1="passed", AC_2="passed")}, True),
        ({"by_criterion": verdicts(AC_1="passed", AC_2="failed")}, False),
        ({"by_criterion": verdicts(AC_1="passed", AC_2="passed", AC_3="failed")}, True),
        (
            {"by_criterion": [*verdicts(AC_1="passed", AC_2="passed"), *verdicts(AC_2="failed")]},
            False,
        ),
        ({"by_criterion": verdicts(AC_1="passed")}, False),
        ({"by_criterion": verdicts(AC_1="passed"), "all_criteria_satisfied": True}, True),
        ({"by_criterion": verdicts(AC_1="passed"), "all_criteria_satisfied": False}, False),
        (
            {
                "by_criterion": verdicts(AC_1="passed", AC_2="failed"),
                "all_criteria_satisfied": True,
            },
            False,
        ),
        ({"details": {"passed_criteria": ["AC-1", "AC-2"]}}, True),
        ({"details": {"passed_criteria": ["AC-1"]}}, False),
        (
            {
                "details": {"passed_criteria": ["AC-1", "AC-2"]},
                "by_criterion": verdicts(AC_1="passed", AC_2="failed"),
            },
            False,
        ),
        (
            {
                "details": {"passed_criteria": ["AC-1"]},
                "by_criterion": verdicts(AC_1="passed", AC_2="passed"),
            },
            False,
        ),
        (
            {
                "details": {"passed_criteria": ["AC-2"]},
                "by_criterion": verdicts(AC_2="passed"),
                "all_criteria_satisfied": True,
            },
            True,
        ),
        ({"all_criteria_satisfied": True}, True),
        ({"all_criteria_satisfied": False}, False),
        ({}, False),
    ],
)
def test_the_more_negative_word_counts(fields: dict[str, Any], satisfied: bool) -> None:
    assert assess(**fields).satisfied(["AC-1", "AC-2"]) is satisfied


def test_no_critical_criterion_needs_nothing() -> None:
    assert assess(by_criterion=verdicts(AC_1="failed")).satisfied([])


def test_ids_by_verdict() -> None:
    assessment = assess(
        by_criterion=[
            *verdicts(AC_1="passed", AC_2="passed", AC_3="failed"),
            *verdicts(AC_1="failed"),
        ],
        details={"passed_criteria": ["AC-2", "AC-4", "AC-4"], "remaining_risks": ["load"]},
    )
    assert assessment.failed_ids() == ["AC-3", "AC-1"]
    assert assessment.passed_ids() == ["AC-2", "AC-4"]
    assert assessment.passed_criteria == ["AC-2", "AC-4", "AC-4"]
    assert assessment.remaining_risks == ["load"]


@pytest.mark.parametrize("status", ["unknown", "PASSED", "", None, True])
def test_other_verdicts_are_refused(status: object) -> None:
    code, path = refusal(
        "completion_assessment", summary="s", by_criterion=[{"id": "AC-1", "status": status}]
    )
    assert (code, path) == ("missing" if status is None else "invalid", "by_criterion.0.status")


def test_an_assessment_needs_its_summary() -> None:
    assert refusal("completion_assessment", all_criteria_satisfied=True) == ("missing", "summary")
