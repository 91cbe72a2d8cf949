"""The states of a task: every move of the table, every other one refused."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from agentrunner.state.lifecycle import LOOPS, MOVES, TERMINAL, ForbiddenMove, TaskState, move

DIAGRAM = Path(__file__).parents[3] / "docs" / "reference" / "state-diagram.md"
ALLOWED = {
    "PENDING": "PLANNING FAILED",
    "PLANNING": "RUNNING FAILED NEEDS_REVIEW",
    "RUNNING": "VALIDATING FAILED NEEDS_REVIEW",
    "VALIDATING": "RUNNING FIXING COMPLETE FAILED NEEDS_REVIEW",
    "FIXING": "VALIDATING FAILED NEEDS_REVIEW",
    "COMPLETE": "",
    "FAILED": "",
    "NEEDS_REVIEW": "",
}


@pytest.mark.parametrize(("current", "target"), list(product(TaskState, TaskState)))
def test_every_pair(current: TaskState, target: TaskState) -> None:
    if target == current or target in ALLOWED[current].split():
        assert move(current, target) is target
    else:
        with pytest.raises(ForbiddenMove):
            move(current, target)


def test_ends_are_ends_and_only_going_back_to_work_is_a_loop() -> None:
    assert {state for state in TaskState if not MOVES[state]} == TERMINAL
    assert {(a.value, b.value) for a, b in LOOPS} == {
        ("VALIDATING", "RUNNING"),
        ("VALIDATING", "FIXING"),
    }


def test_the_diagram_of_the_states_is_the_table() -> None:
    drawn = re.findall(r"^ +(\w+) --> (\w+)", _drawn(), re.MULTILINE)
    moves = {(str(state), str(target)) for state in TaskState for target in MOVES[state]}
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == moves


def _drawn() -> str:
    """The first diagram of the page."""
    return DIAGRAM.read_text(encoding="utf-8").partition("```mermaid\n")[2].partition("```")[0]
