"""What people decided, as prompts show it."""

from __future__ import annotations

import pytest

from agentrunner.state.decisions import shown, with_decision
from agentrunner.state.people import PersonDecision


@pytest.mark.parametrize(
    ("text", "told"), [("again", 0), ("model: gpt-5.1", 0), ("end", 0), ("worker: use a queue", 1)]
)
def test_how_to_go_on_is_no_decision_about_what_is_wanted(text: str, told: int) -> None:
    one = PersonDecision(id="q-1", kind="planner", decision="answer", text=text, at="", round=0)
    assert len(shown(with_decision(None, one)).get("decisions", [])) == told
    asked = one.model_copy(update={"kind": "ask_human"})
    assert shown(with_decision(None, asked))["decisions"], "the planner's own question is another"
