"""Comments by which work is not done."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.comments_on_work import (
    only_comments,
    unfinished,
    unwritten,
)
from tests.kit.text_trees import both_trees

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
    found = unfinished(both_trees({"a.py": old}, {"a.py": new}), ASKED)
    assert bool(found) == is_unfinished
    assert not found or found.startswith("a.py:2 says")


def test_a_comment_that_stood_before_is_nobodys() -> None:
    old, new = "# TODO: send\n", "# TODO: send\nx = 1\n"
    assert unfinished(both_trees({"a.py": old}, {"a.py": new}), ASKED) == ""


def test_what_was_asked_for_is_the_work() -> None:
    trees = both_trees({}, {"a.py": "# Simulated clock\n"})
    assert unfinished(trees, "Add a simulated clock.") == ""


def test_comments_alone_are_the_work_where_they_are_asked_for() -> None:
    trees = both_trees({}, {"a.py": "# x\n"})
    assert only_comments(trees, "Resolve all TODOs in src.")
    assert only_comments(trees, "Fix the typo in the comment of total.") == ""
    assert only_comments(trees, "Remove the old TODO lines.") == ""
    assert only_comments(both_trees({}, {}), "Resolve all TODOs.") == ""


@pytest.mark.parametrize(
    ("path", "new", "is_unwritten"),
    [
        ("a.py", "    if form in ('csv', 'xml'):\n        raise NotImplementedError(form)\n", True),
        ("a.py", "    if form == 'pdf':\n        raise NotImplementedError(form)\n", False),
        ("a.py", "    if form == 'csv':\n        raise ValueError(form)\n", False),
        ("a.rs", '    match form {\n        "xml" => todo!(),\n        _ => 1,\n    }\n', True),
    ],
)
def test_code_that_its_language_calls_unwritten(path: str, new: str, is_unwritten: bool) -> None:
    head, end = ("fn write(form: &str) {\n", "}\n") if path == "a.rs" else ("def w(form):\n", "")
    last = "    1;\n" if end else "    return 1\n"
    trees = both_trees({path: f"{head}{last}{end}"}, {path: f"{head}{new}{last}{end}"})
    assert bool(unwritten(trees, ASKED)) == is_unwritten
    assert unwritten(trees, f"{ASKED}; xml is not supported yet") == ""
