"""What a plan under way says on the terminal."""

from __future__ import annotations

import json

import pytest

from agentrunner.commands.console import Output
from agentrunner.commands.plan_drive import PlanConsole

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
