from __future__ import annotations

import pytest

from agentrunner.plans.control_words import control_word


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("stop", "stop"), (" Stop! ", "stop"), ("please stop", "stop"), ("STOP NOW", "stop"),
        ("止めて", "stop"), ("停止", "stop"), ("停止して。", "stop"), ("ストップ！", "stop"),
        ("中止してください", "stop"), ("ｓｔｏｐ", "stop"),
        ("pause", "pause"), ("Pause, please.", "pause"), ("一時停止", "pause"),
        ("一時停止してください", "pause"), ("待って", "pause"),
        ("continue", "continue"), ("go on", "continue"), ("resume", "continue"),
        ("再開", "continue"), ("続けて", "continue"), ("続けてください。", "continue"),
        ("status", "status"), ("Status?", "status"), ("状況", "status"), ("状況は？", "status"),
        ("進捗を教えて", "status"), ("ステータス", "status"),
    ],
)  # fmt: skip
def test_it_acts_without_a_model(text: str, meaning: str) -> None:
    assert control_word(text) == meaning


@pytest.mark.parametrize(
    "text",
    [
        "", "please", "して", "stop the login task", "Add a stop button", "continue with the list",
        "停止ボタンを追加して", "状況に応じて変える", "検索を続けて出す", "nonstop", "x" * 10_000,
        "stop" + " " * 100 + "it",
    ],
)  # fmt: skip
def test_it_is_for_the_planner(text: str) -> None:
    assert control_word(text) is None
