"""The states of a task: every move of the table, every other one refused."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from agentrunner.graph.builder import ASKS, NODES, ROUTES, build_graph, entry, mermaid
from agentrunner.nodes.approve import AFTER
from agentrunner.state.lifecycle import LOOPS, MOVES, TERMINAL, ForbiddenMove, TaskState, move
from agentrunner.state.run_state import IN_WORDS, QuestionKind, TaskContext, Verdict

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


# -- the diagram --------------------------------------------------------------------------------


def blocks() -> list[str]:
    return re.findall(r"```mermaid\n(.*?)```", DIAGRAM.read_text(encoding="utf-8"), re.DOTALL)


def test_the_diagram_of_the_nodes_is_that_of_the_graph() -> None:
    assert blocks()[1].strip() == mermaid().strip()


def test_the_table_of_steps_names_every_node() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", DIAGRAM.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(NODES)


def test_the_diagram_of_the_states_is_the_table() -> None:
    drawn = re.findall(r"^ +(\w+) --> (\w+)", blocks()[0], re.MULTILINE)
    moves = {(str(state), str(target)) for state in TaskState for target in MOVES[state]}
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == moves


def test_every_answer_leads_where_the_graph_may_go() -> None:
    kinds = set(get_args(QuestionKind)) - set(IN_WORDS)
    assert {kind for kind, _ in AFTER} == kinds
    assert all((kind, said) in AFTER for kind in kinds for said in ("approve", "reject"))
    assert set(AFTER.values()) <= set(ROUTES["approve"])


def test_every_node_leads_somewhere_and_only_to_nodes() -> None:
    assert set(ROUTES) == set(NODES)
    targets = {target for targets in ROUTES.values() for target in targets}
    assert targets - {"__end__"} == set(NODES)
    assert set(NODES) > ASKS


def test_every_node_that_works_can_end_the_run() -> None:
    """The wrapper sends a failed node to the note."""
    assert all("note" in ROUTES[name] for name in set(NODES) - ASKS - {"note"})


def test_no_static_edge_stands_beside_a_command() -> None:
    """LangGraph would follow both."""
    assert build_graph().edges == set()


def test_an_attempt_starts_with_what_there_is() -> None:
    assert entry(TaskContext(state=TaskState.PENDING)) == "plan"
    assert entry(TaskContext(state=TaskState.VALIDATING)) == "validate"
    cancelled = Verdict(state="FAILED", reason="cancelled")
    assert entry(TaskContext(state=TaskState.VALIDATING, verdict=cancelled)) == "note"
