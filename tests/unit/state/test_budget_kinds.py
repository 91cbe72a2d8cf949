"""What has to know of every kind of budget does: whoever adds one learns what is left to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.config.budget import BudgetSpec, Limits
from agentrunner.config.budget_kinds import BUDGET_KINDS
from agentrunner.config.markdown import Language
from agentrunner.notes.render import _phrases
from agentrunner.policy.policy_file import BudgetCaps
from agentrunner.state.budget import FOR_CALL, FOR_TALK, FOR_WORKER, NAMES, spent_of
from agentrunner.state.run_state import Counters

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "budgets.md"


def test_tasks_policies_and_counters_have_every_kind() -> None:
    assert tuple(Limits.model_fields) == NAMES == tuple(BUDGET_KINDS)
    assert set(NAMES) <= set(BudgetSpec.model_fields)
    assert tuple(BudgetCaps.model_fields) == NAMES
    counters = Counters(wall_sec=1, meta_calls=2, repeated_calls=1, worker_runs=4, usd=5)
    assert spent_of(counters) == dict(zip(NAMES, (1, 3, 4, 0, 5), strict=True))


def test_each_is_looked_at_before_something() -> None:
    assert {*FOR_CALL, *FOR_WORKER} == set(NAMES) and set(FOR_TALK) <= set(FOR_CALL)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_notes_can_say_that_it_is_spent(language: Language) -> None:
    assert {f"reason_{name}" for name in NAMES} <= set(_phrases(language))


def test_the_page_explains_it() -> None:
    page = PAGE.read_text("utf-8")
    assert [name for name in NAMES if f"| `{name}` |" not in page] == []
