"""One case for each row of what is taken, and what is never taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import ProtocolError
from agentrunner.protocol import Looks, MessageType, NextAction, parse_reply, take_reply
from agentrunner.protocol.taking import MEANINGS, TAKEN, Leniency

PAGE = Path(__file__).parents[3] / "docs/reference/planners.md"
PLAN: dict[str, Any] = {
    "acceptance_criteria": [
        {"id": "AC-1", "description": "It adds.", "check": {"kind": "command", "run": "make test"}}
    ]
}
ORDER: dict[str, Any] = {
    "decision": {"action": "run_worker", "reason": "It is red."},
    "worker_call": {"worker_type": "codex-cli", "mode": "exec", "prompt": "Mend it."},
}
CHANGED: dict[str, Any] = {
    **ORDER,
    "changed_checks": [{"id": "AC-1", "reason": "It asks for more than the PRD.",
                        "check": {"kind": "command", "run": "make test"}}],
}  # fmt: skip
SPLIT: dict[str, Any] = {
    "understanding": "A list.",
    "phases": [{"name": "Build", "milestone": "m1", "tasks": [
        {"id": "temp-1", "title": "List", "description": "A list.", "acceptance_criteria": [],
         "wbs_level": 3, "estimated_effort": "small"}]}],
}  # fmt: skip
PATCH: dict[str, Any] = {
    "understanding": "Earlier.",
    "operations": [{"op": "move", "task_id": "TASK-0001"}],
}
BESIDE: dict[str, Any] = {
    "understanding": "Earlier.",
    "operations": [{"op": "move", "task_id": "TASK-0001", "position": {"index": 0}}],
}
CHECK_GIVEN: dict[tuple[str, str], Any] = {
    ("", "single"): [{"kind": "command", "run": "make test"}],
    (".cwd", "empty"): ".",
    (".timeout_sec", "zero"): 0,
    **{(f".{key}", "blank"): "" for key in ("path", "file", "test_name", "name")},
}
GIVEN: dict[tuple[str, str], Any] = {
    **{
        (f"{where}.*.check{key}", how): value
        for where in ("acceptance_criteria", "changed_checks")
        for (key, how), value in CHECK_GIVEN.items()
    },
    ("decision", "single"): [{"action": "run_worker", "reason": "It is red."}],
    ("decision.action", "single"): ["run_worker"],
    ("decision.action", "word"): "Run-Worker",
    ("worker_call", "single"): [ORDER["worker_call"]],
    ("worker_call.worker_type", "single"): ["codex-cli"],
    ("worker_call.mode", "word"): "Exec",
    ("worker_call.model", "empty"): "",
    ("phases.*.tasks.*.estimated_effort", "word"): "Small",
    ("phases.*.tasks.*.suggested_impl", "empty"): "none",
    ("operations.*.op", "word"): "Move",
    **{
        (f"operations.*.{key}", "blank"): ""
        for key in ("title", "description", "phase_name", "milestone", "parent_id")
    },
    ("operations.*.suggested_impl", "empty"): "null",
    ("operations.*.position", "empty"): "",
    ("operations.*.position.before", "blank"): "",
    ("operations.*.position.after", "blank"): "",
    ("operations.*.estimated_effort", "word"): "LARGE",
}
"""By row: what is given in place of what is asked for."""


def plain(type_: MessageType, path: str) -> dict[str, Any]:
    """The payload that is meant, whichever place of it is written otherwise."""
    if path == "operations.*.estimated_effort":
        operation = {**PATCH["operations"][0], "estimated_effort": "large"}
        return {**PATCH, "operations": [operation]}
    if path.startswith("operations.*.position."):
        return BESIDE
    if path.startswith("changed_checks"):
        return CHANGED
    return {"plan_task": PLAN, "decompose": SPLIT, "plan_patch": PATCH}.get(type_, ORDER)


def reply(type_: MessageType, path: str, value: Any) -> str:
    payload = json.loads(json.dumps(plain(type_, path)))
    *outer, last = path.replace("*", "0").split(".")
    place = payload
    for key in outer:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[last] = value
    return json.dumps({"version": 1, "type": type_, "payload": payload})


OF_MESSAGES = [row for row in TAKEN if row.type != "look"]


@pytest.mark.parametrize("row", OF_MESSAGES, ids=lambda row: f"{row.path}-{row.how}")
def test_each_row_is_taken_with_a_warning(row: Leniency) -> None:
    assert row.type != "look"
    text = reply(row.type, row.path, GIVEN[row.path, row.how])
    message = take_reply(text, row.type)
    meant = {"version": 1, "type": row.type, "payload": plain(row.type, row.path)}
    assert message.payload == take_reply(json.dumps(meant), row.type).payload
    with pytest.raises(ProtocolError):
        parse_reply(text, row.type)
    assert [one.code for one in message.warnings] == ["taken"]
    assert row.path.rpartition(".")[2] in message.warnings[0].path


@pytest.mark.parametrize(
    ("given", "meant"), [("Codex_CLI", "codex-cli"), ("codex", "codex-cli"), ("FAST", "fast")]
)
def test_another_spelling_of_a_worker_is_taken_with_a_warning(given: str, meant: str) -> None:
    message = take_reply(reply("next_action", "worker_call.worker_type", given), "next_action")
    assert isinstance(message.payload, NextAction) and message.payload.worker_call is not None
    assert message.payload.worker_call.worker_type == meant
    [warning] = message.warnings
    assert (warning.code, warning.path) == ("taken", "payload.worker_call.worker_type")
    assert given in warning.message and meant in warning.message
    plainly = reply("next_action", "worker_call.worker_type", "codex-cli")
    assert not take_reply(plainly, "next_action").warnings


def test_a_look_that_fills_each_key_is_a_look_for_each_form() -> None:
    """What a real, small model wrote, in a decision that had every key filled."""
    look = {"read": "a.py", "search": "total", "list": "", "diff": None, "in": "src", "from": 2}
    text = json.dumps({"type": "next_action", "version": 1, "payload": {**ORDER, "looks": [look]}})
    message = take_reply(text, "next_action", looks=True)
    assert isinstance(message.payload, Looks)
    assert [one.form for one in message.payload.looks] == ["read", "search"]
    assert [one.code for one in message.warnings] == ["taken"]
    alone = json.dumps({"type": "look", "version": 1, "payload": {"looks": [{"from": 2}]}})
    with pytest.raises(ProtocolError, match="exactly one of"):
        take_reply(alone, "next_action", looks=True)


@pytest.mark.parametrize(
    ("type_", "path", "value"),
    [
        ("plan_task", "acceptance_criteria.*.check.run", ["make test"]),
        ("plan_task", "acceptance_criteria.*.check.expect_exit", "null"),
        ("plan_task", "acceptance_criteria.*.check.must_change", ""),
        ("plan_task", "acceptance_criteria.*.critical", "maybe"),
        ("plan_task", "acceptance_criteria.*.description", ""),
        ("plan_task", "acceptance_criteria.*.check.timeout_sec", -5),
        ("next_action", "worker_call.flags", ""),
        ("next_action", "worker_call.env", "none"),
        ("next_action", "worker_call.prompt", ["Mend it."]),
        ("next_action", "decision.action", "finish"),
        ("next_action", "decision.action", ["run_worker", "abort"]),
        ("next_action", "decision", []),
        ("next_action", "worker_call.mode", "--resume"),
        ("next_action", "decision.reason", ""),
        ("next_action", "changed_checks.*.check.run", ["make test"]),
        ("next_action", "changed_checks.*.check.expect_exit", "null"),
        ("next_action", "changed_checks.*.reason", ""),
        ("decompose", "phases.*.tasks.*.estimated_effort", "tiny"),
        ("plan_patch", "operations.*.op", "remove"),
        ("plan_patch", "operations.*.task_id", ""),
        ("plan_patch", "operations.*.position.before", "TASK-0002"),
    ],
)
def test_what_decides_is_never_guessed(type_: MessageType, path: str, value: Any) -> None:
    text = reply(type_, path, value)
    with pytest.raises(ProtocolError) as taken:
        take_reply(text, type_)
    with pytest.raises(ProtocolError) as parsed:
        parse_reply(text, type_)
    assert str(taken.value) == str(parsed.value)


def test_the_reference_has_every_row() -> None:
    page = PAGE.read_text("utf-8")
    for row in TAKEN:
        assert f"| `{row.type}` | `{row.path}` | {MEANINGS[row.how]} |" in page
    for meaning in ("the worker that it is but for case", "the first worker of that kind"):
        assert f"| `next_action` | `worker_call.worker_type` | {meaning}" in page
