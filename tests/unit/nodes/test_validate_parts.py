"""When a run ends because its planner would only ask for completion again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentrunner.execution.deps import Deps
from agentrunner.nodes.validate import _answer_request, _question_text
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.run_state import (
    Assessment,
    Counters,
    Criterion,
    Evidence,
    Finding,
    RunInfo,
    TaskContext,
)
from tests.kit.task_specs import task_spec_of

ONE = SimpleNamespace(client=SimpleNamespace(from_facts=True))


def deps() -> Deps:
    """Of a run whose planner decides by facts alone."""
    panel = SimpleNamespace(role_candidates=lambda _: SimpleNamespace(candidates=[ONE]))
    return cast(
        "Deps",
        SimpleNamespace(spec=task_spec_of(), panel=panel, emit=lambda *_, **__: None),
    )


def asking(**channels: Any) -> TaskContext:
    state: Any = {
        "run": RunInfo(run_id="probe-0000", task_id="probe", title="t", repo="/r"),
        "state": TaskState.VALIDATING,
        "counters": Counters(loops=1),
        "criteria": [Criterion(id="AC-1", description="It adds.")],
        "evidence": Evidence(tree="t", examined=True),
        "assessment": Assessment(tree="t", satisfied=False, summary="no"),
        "remarks": [f"a later remark {number}" for number in range(5)],
    }
    return cast("TaskContext", {**state, **channels})


async def test_one_tree_is_refused_twice_whatever_was_remarked_in_between() -> None:
    first = await _answer_request(asking(), deps(), {})
    assert first.goto == "decide"
    kept = cast("dict[str, Any]", first.update)
    assert kept["refused_tree"] == "t"
    again = await _answer_request(asking(refused_tree=kept["refused_tree"]), deps(), {})
    assert again.goto == "note"


@pytest.mark.parametrize("tree", ["", "another"])
async def test_after_more_work_it_is_refused_anew(tree: str) -> None:
    assert (await _answer_request(asking(refused_tree=tree), deps(), {})).goto == "decide"


@pytest.mark.parametrize(
    ("message", "remedy", "text"),
    [
        ("It is gone, and it says: it stays.", "have it done", "it stays. Is this wanted? Have it"),
        ("It differs", "task.test.may_change: [a]", "differs. Is this wanted? task.test.may"),
        ("It differs", "agentrunner diff shows it", "differs. Is this wanted? agentrunner diff"),
        ("It differs", "", "differs. Is this wanted?"),
    ],
)
def test_a_question_is_made_of_sentences(message: str, remedy: str, text: str) -> None:
    assert text in _question_text(Finding(code="x", message=message, remedy=remedy))
