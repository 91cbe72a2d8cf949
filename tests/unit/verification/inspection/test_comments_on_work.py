"""Comments by which work is not done."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.comments_on_work import only_comments, unfinished

ASKED = "notify(user) sends a mail; the formats are json, csv and xml"


@pytest.mark.parametrize(
    ("comment", "is_unfinished"),
    [
        ("# TODO: send", True),
        ("# TODO: implement XML export of formats", True),
        ("# In a real implementation this would call the gateway", True),
        ("# sections are not supported yet", True),
        ("# Simulated backend", True),
        ("# Return a fixed list for now", True),
        ("# placeholder", True),
        ("# 未実装", True),
        ("# TODO: think of Windows", False),
        ("# of the algorithm running in real-time", False),
        ("# Lambda symbol as placeholder name", False),
        ("# Sends it", False),
    ],
)
def test_a_comment_of_the_work(comment: str, is_unfinished: bool) -> None:
    old, new = "x = 1\n", f"x = 1\n{comment}\ny = 2\n"
    found = unfinished(["a.py"], lambda _: old.encode(), lambda _: new.encode(), ASKED)
    assert bool(found) == is_unfinished
    assert not found or found.startswith("a.py:2 says")


def test_a_comment_that_stood_before_is_nobodys() -> None:
    text = b"# TODO: send\n"
    assert unfinished(["a.py"], lambda _: text, lambda _: text + b"x = 1\n", ASKED) == ""


def test_what_was_asked_for_is_the_work() -> None:
    new = b"# Simulated clock\n"
    assert unfinished(["a.py"], lambda _: b"", lambda _: new, "Add a simulated clock.") == ""


def test_comments_alone_are_the_work_where_they_are_asked_for() -> None:
    assert only_comments(["a.py"], "Resolve all TODOs in src.")
    assert only_comments(["a.py"], "Fix the typo in the comment of total.") == ""
    assert only_comments(["a.py"], "Remove the old TODO lines.") == ""
    assert only_comments([], "Resolve all TODOs.") == ""
