"""The steps of a run: where each may lead, and the page that draws them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from agentrunner.graph.builder import ASKS, NODES, ROUTES, build_graph, entry, mermaid
from agentrunner.nodes.approve import AFTER
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import IN_WORDS, QuestionKind
from agentrunner.state.run_state import TaskContext, Verdict

DIAGRAM = Path(__file__).parents[3] / "docs" / "reference" / "state-diagram.md"


def blocks() -> list[str]:
    return re.findall(r"```mermaid\n(.*?)```", DIAGRAM.read_text(encoding="utf-8"), re.DOTALL)


def test_the_diagram_of_the_nodes_is_that_of_the_graph() -> None:
    assert blocks()[1].strip() == mermaid().strip()


def test_the_table_of_steps_names_every_node() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", DIAGRAM.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(NODES)


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
