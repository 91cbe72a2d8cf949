"""One typed helper makes a state of a state and an update; nobody spells that out with a cast."""

from __future__ import annotations

import re
from pathlib import Path

from agentrunner.state.run_state import TaskContext, updated

ROOT = Path(__file__).parents[3]
SPELLED_OUT = re.compile(r'cast\(\s*"TaskContext",\s*\{\s*\*\*')


def test_updates_are_applied_in_order_and_the_state_stays_as_it_was() -> None:
    state: TaskContext = {"tree": "a", "tail": "t"}
    assert updated(state, {"tree": "b"}, {"tree": "c", "error_tail": "e"}) == {
        "tree": "c",
        "tail": "t",
        "error_tail": "e",
    }
    assert state == {"tree": "a", "tail": "t"}
    assert updated(state) == state and updated(state) is not state


def test_nobody_spells_it_out() -> None:
    found = [
        str(path.relative_to(ROOT))
        for room in ("agentrunner", "graph", "nodes")
        for path in (ROOT / room).rglob("*.py")
        if SPELLED_OUT.search(path.read_text("utf-8"))
    ]
    assert found == []
