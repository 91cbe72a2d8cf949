"""Every line of the corpora under tests/data/replies, with its expected result."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import ProtocolError
from agentrunner.protocol import MESSAGE_TYPES, MessageType, NextAction, parse_reply

REPLIES = Path(__file__).parents[2] / "data" / "replies"

# The code of each refusal; the corpus itself only says "refuse".
CODES = {
    "think_unclosed": "incomplete",
    "unclosed_fence": "incomplete",
    "cut_json": "incomplete",
    "unescaped_quotes": "syntax",
    "unquoted_colon": "syntax",
    "markdown_bold": "syntax",
    "glob_value": "syntax",
    "backtick_value": "syntax",
    "anchor_alias": "forbidden_yaml",
    "bomb": "forbidden_yaml",
    "python_tag": "forbidden_yaml",
    "binary_tag": "forbidden_yaml",
    "two_documents": "forbidden_yaml",
    "dup_key": "duplicate_key",
    "nan": "syntax",
    "comments_json": "syntax",
    "smart_quotes_json": "missing",
    "tab_indent": "syntax",
    "wrong_type": "wrong_type",
    "no_type": "missing",
    "echo_context": "missing",
    "refusal": "refusal",
    "refusal_ja": "refusal",
    "empty": "empty",
    "whitespace": "empty",
    "null": "not_found",
    "list": "not_found",
    "string": "not_found",
    "json_in_prose": "not_found",
}
REASONS = {"date_text": "2026-01-01", "octal_text": "010"}


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (REPLIES / name).read_text("utf-8").splitlines()]


CASES = lines("cases.jsonl")
RAW = lines("raw_outputs.jsonl")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_hand_made_case(case: dict[str, Any]) -> None:
    if case["expect"] == "refuse":
        with pytest.raises(ProtocolError) as caught:
            parse_reply(case["raw"], "next_action")
        assert caught.value.fault == CODES[case["name"]]
        return
    payload = parse_reply(case["raw"], "next_action").payload
    assert isinstance(payload, NextAction)
    expected = "run_worker" if case["name"] == "fence_inside_prompt" else "ask_human"
    assert payload.decision.action == expected
    assert payload.decision.reason == REASONS.get(case["name"], "r")


def outcome(row: dict[str, Any], expected: MessageType) -> str:
    """ "ok" or the code of the refusal."""
    try:
        message = parse_reply(row["raw"], expected, finish_reason=row["finish_reason"])
    except ProtocolError as error:
        return error.fault
    json.dumps(message.as_dict(), allow_nan=False).encode()
    return "ok"


@pytest.mark.parametrize("row", RAW, ids=lambda row: f"{row['model']}-{row['condition']}")
def test_real_answer_is_read_or_refused_by_name(row: dict[str, Any]) -> None:
    started = time.process_time()
    outcomes = {expected: outcome(row, expected) for expected in MESSAGE_TYPES}
    assert time.process_time() - started < 0.5
    if row["finish_reason"] == "length":
        assert set(outcomes.values()) == {"incomplete"}
    asked = row["protocol"]
    assert "ok" not in {code for type_, code in outcomes.items() if type_ != asked}


def test_most_schema_constrained_answers_of_the_larger_model_are_accepted() -> None:
    rows = [r for r in RAW if r["model"].startswith("qwen") and r["condition"] == "schema"]
    counted = Counter(outcome(row, row["protocol"]) for row in rows)
    assert counted == {"ok": 29, "incomplete": 4, "placeholder": 2}
