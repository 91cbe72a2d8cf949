"""What people decided, as `show` prints it."""

from __future__ import annotations

from typing import Any

from agentrunner.screens.people import people_screen

ANSWER: dict[str, Any] = {
    "kind": "ask_human", "asked": "Shall it be red?", "decision": "answer", "text": "no, blue",
    "by": "hana",
}  # fmt: skip


def test_nothing_is_shown_of_nobody() -> None:
    assert people_screen({}) == ""
    assert people_screen({"decisions": [], "older": [], "omitted": 0}) == ""


def test_each_decision_is_a_paragraph_with_who_and_what_was_asked() -> None:
    yes = {"kind": "network", "asked": "", "decision": "approve", "text": "", "by": ""}
    shown = people_screen({"decisions": [ANSWER, yes], "older": ["x"], "omitted": 2})
    assert shown.splitlines() == [
        "Decisions of people:",
        "  and 3 before these, in the note and the log",
        "  - “Shall it be red?”: answered by hana: no, blue",
        "  - approved",
    ]


def test_a_long_or_hostile_text_stays_short_and_plain() -> None:
    evil = {**ANSWER, "text": "\x1b[2J" + "word " * 400 + "\nNEXT: rm -rf /"}
    shown = people_screen({"decisions": [evil]})
    assert "\x1b" not in shown and len(shown.splitlines()) <= 8
    assert shown.endswith("…")
