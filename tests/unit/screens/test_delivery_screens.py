"""What people see of a run that ends in a commit: before it starts, and when it has."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agentrunner.results import Result
from agentrunner.screens.live import LiveView, header_rows
from agentrunner.screens.paused import paused_screen
from agentrunner.screens.plain import PlainView
from agentrunner.screens.run_table import runs_table
from agentrunner.screens.summary import summary_screen

LANDING = {
    "branch": "agentrunner/fix",
    "base": "0123456789abcdef",
    "carried": ["new.txt", "a\x1b[31m.py"],
    "carried_more": 3,
    "left": ["lib"],
    "worktree": "/home/hana/.local/state/agentrunner/worktrees/shop/fix-1/work",
}
STARTED: dict[str, Any] = {
    "event": "run_started",
    "ts": "2026-11-21T05:00:00Z",
    "run_id": "fix-1",
    "task_id": "fix",
    "title": "Fix",
    "header": {"repo": "/home/hana/shop", "branch": "main", "landing": LANDING},
}
RESULT: dict[str, Any] = {
    "exit_code": 0,
    "run_id": "fix-1",
    "task_id": "fix",
    "state": "COMPLETE",
    "commit": {"id": "0123456789abcdef", "branch": "agentrunner/fix"},
    "worktree": LANDING["worktree"],
}


def test_the_header_names_the_branch_and_what_goes_along() -> None:
    rows = dict(header_rows(STARTED["header"], "/home/hana"))
    assert rows["commit"] == "on agentrunner/fix, from 0123456789"
    assert rows["works in"].startswith("~/.local/state/")
    assert rows["takes"].startswith("5 uncommitted files: new.txt a")
    assert rows["leaves"].endswith("not taken along: lib")
    text = "\n".join(LiveView().feed(STARTED, 0.0))
    assert "Edits appear in a work tree of their own" in text
    assert "\x1b" not in text


def test_a_commit_in_the_checkout_is_announced() -> None:
    landing = {**LANDING, "branch": "main", "worktree": None, "carried": [], "left": []}
    started = {**STARTED, "header": {**STARTED["header"], "landing": landing}}
    text = "\n".join(LiveView().feed(started, 0.0))
    assert "on main, from 0123456789, in this checkout" in text
    assert "are committed when it is COMPLETE" in text


def test_lines_tell_it_too() -> None:
    (line, *_) = PlainView().feed(STARTED, 0.0)
    assert "commit=agentrunner/fix" in line
    assert "leaves=lib" in line
    assert "\x1b" not in line


def test_the_last_screen_says_how_to_take_it_over() -> None:
    text = summary_screen(Result.model_validate(RESULT))
    assert "commit   0123456789 on agentrunner/fix" in text
    assert "git merge agentrunner/fix" in text
    assert "git add" not in text
    inside = summary_screen(Result.model_validate({**RESULT, "worktree": None}))
    assert "git show 0123456789" in inside


def test_a_run_without_its_commit_says_where_it_worked() -> None:
    text = summary_screen(
        Result.model_validate({**RESULT, "state": "NEEDS_REVIEW", "commit": None}),
        home="/home/hana",
    )
    assert "in       ~/.local/state/agentrunner/worktrees" in text


PLANNED = {**RESULT, "part_of": "plan", "commit": None, "task_id": "TASK-0001", "repo": "/home/me"}


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("COMPLETE", "agentrunner plan status"),
        ("NEEDS_REVIEW", "agentrunner accept"),
        ("FAILED", 'agentrunner plan answer TASK-0001 "..."'),
        ("RUNNING", "agentrunner plan run"),
    ],
)
def test_a_task_of_a_plan_is_gone_on_with_by_the_plan(state: str, told: str) -> None:
    text = summary_screen(Result.model_validate({**PLANNED, "state": state}))
    assert told in text
    for wrong in ("agentrunner undo", "agentrunner resume", "git add", "git merge", "worktrees"):
        assert wrong not in text
    assert "agentrunner plan run" in text


def test_a_question_of_a_plans_task_says_that_the_plan_goes_on_then() -> None:
    waiting = {"id": "q1", "kind": "ask_human", "text": "Which?", "options": []}
    paused = {**PLANNED, "state": "RUNNING", "waiting": waiting}
    text = paused_screen(Result.model_validate(paused), where="me@here")
    assert "agentrunner answer" in text and "agentrunner plan run" in text


def test_the_list_says_what_is_of_a_plan() -> None:
    row = {"run_id": "TASK-0001-a1b2", "state": "COMPLETE", "part_of": "plan"}
    now = datetime.now(UTC)
    assert "1 of them is a task of a plan:  agentrunner plan status" in runs_table([row], now)
    assert "plan" not in runs_table([{**row, "part_of": None}], now)


def test_a_task_of_a_plan_that_is_gone_on_with_by_hand_names_the_plan() -> None:
    header = {"repo": "/home/hana/shop", "branch": None, "landing": None, "part_of": "plan"}
    text = "\n".join(LiveView().feed({**STARTED, "header": header}, 0.0))
    assert "agentrunner plan run" in text and "agentrunner undo" not in text
