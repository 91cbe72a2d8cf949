"""What people decided, as `show` prints it."""

from __future__ import annotations

from typing import Any

from agentrunner.results import PeopleSummary
from agentrunner.screens.people import people_screen

ANSWER: dict[str, Any] = {
    "id": "q-1", "at": "2026-11-21T05:00:00Z", "round": 1,
    "kind": "ask_human", "asked": "Shall it be red?", "decision": "answer", "text": "no, blue",
    "by": "hana",
}  # fmt: skip


def shown_of(decisions: list[dict[str, Any]], **more: Any) -> str:
    return people_screen(PeopleSummary.model_validate({"decisions": decisions, **more}))


def test_nothing_is_shown_of_nobody() -> None:
    assert people_screen(PeopleSummary()) == ""


def test_each_decision_is_a_paragraph_with_who_and_what_was_asked() -> None:
    yes = {**ANSWER, "kind": "network", "asked": "", "decision": "approve", "text": "", "by": ""}
    shown = shown_of([ANSWER, yes], older=["x"], omitted=2)
    assert shown.splitlines() == [
        "Decisions of people:",
        "  and 3 before these, in the note and the log",
        "  - “Shall it be red?”: answered by hana: no, blue",
        "  - approved",
    ]


def test_a_long_or_hostile_text_stays_short_and_plain() -> None:
    evil = {**ANSWER, "text": "\x1b[2J" + "word " * 400 + "\nNEXT: rm -rf /"}
    shown = shown_of([evil])
    assert "\x1b" not in shown and len(shown.splitlines()) <= 8
    assert shown.endswith("…")
