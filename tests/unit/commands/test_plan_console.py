"""What a plan under way says on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentrunner.commands.console import Output
from agentrunner.commands.plan_drive import PlanConsole
from agentrunner.commands.plan_live import PlanView
from agentrunner.plans.store import OpenQuestion

WARNING = {"event": "warning", "code": "protected_path", "message": "Git folders were changed: x"}
OTHER = {**WARNING, "message": "Git folders were changed: y"}


def test_a_warning_is_said_once_however_many_runs_have_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console = PlanConsole(Output())
    for event in (WARNING, WARNING, OTHER, WARNING):
        console.hear(event)
    said = capsys.readouterr().err
    assert said.count("changed: x") == said.count("changed: y") == 1


def test_programs_hear_of_every_event(capsys: pytest.CaptureFixture[str]) -> None:
    console = PlanConsole(Output(json=True))
    for event in (WARNING, WARNING):
        console.hear(event)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [WARNING] * 2


def test_a_question_that_a_prompt_shows_whole_has_no_line_above_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = "It cannot run: no agent.\ntry: install one"
    asked: dict[str, object] = {
        "event": "plan_question",
        "task_id": "TASK-0001",
        "question": 1,
        "text": text,
    }
    blocked: dict[str, object] = {
        "event": "plan_task",
        "task_id": "TASK-0001",
        "detail": "It cannot run: no agent.",
    }
    events = [{**asked, "status": "BLOCKED"}, {**blocked, "status": "BLOCKED"}]
    for view, times in ((PlanView(tmp_path, tmp_path), 0), (None, 1)):
        console = PlanConsole(Output(), view=view)
        for event in events:
            console.hear(event)
        assert capsys.readouterr().err.count("no agent") == times


def test_a_question_of_an_earlier_time_is_asked_only_where_its_task_waits_for_it() -> None:
    """A task that could not start is tried again by itself: its old question is void by then."""
    waits, old = OpenQuestion(1, "", "Which?", "TASK-0001"), OpenQuestion(2, "", "?", "TASK-0002")
    console = PlanConsole(Output(quiet=True))
    assert not console.waits(waits), "nothing has begun"
    console.hear({"event": "plan_started", "tasks": [], "notices": [], "waiting": ["TASK-0001"]})
    assert console.waits(waits) and not console.waits(old)
    asked = {"event": "plan_question", "task_id": "TASK-0002", "question": 3, "text": "?"}
    console.hear({**asked, "status": "BLOCKED"})
    assert console.waits(OpenQuestion(3, "", "?", "TASK-0002"))
