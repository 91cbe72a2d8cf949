"""What a prompt may tell where the planner's context is known."""

from __future__ import annotations

import pytest

from agentrunner.prompts.as_yaml import to_yaml
from agentrunner.prompts.context_budget import (
    CHANGE,
    LEAST,
    LOOKS,
    REPOSITORY,
    ROUNDS,
    ContextBudget,
    budget_for,
    fitted,
)
from agentrunner.prompts.rounds import Round, folded_until, messages_of
from agentrunner.text.cut import beginning, tokens

FIXED = 4_000


def shares(budget: ContextBudget) -> tuple[int, int, int, int]:
    return budget.rounds, budget.looks, budget.repository, budget.change


@pytest.mark.parametrize("context", [None, 200_000, 1_000_000])
def test_a_long_context_or_an_unknown_one_changes_nothing(context: int | None) -> None:
    assert shares(budget_for(context, FIXED)) == (ROUNDS, LOOKS, REPOSITORY, CHANGE)


@pytest.mark.parametrize("context", [4_096, 8_192, 16_384, 32_768, 65_536, 131_072])
def test_all_shares_together_take_half_at_most(context: int) -> None:
    budget = budget_for(context, FIXED)
    whole = sum(shares(budget))
    assert whole <= max(LEAST, context // 2) and budget.known
    if context > 8_000:
        assert whole + FIXED < context
    assert min(shares(budget)) >= 128


def test_rounds_are_shortened_first_then_looks_the_repository_and_diffs() -> None:
    by_length = [budget_for(context, FIXED) for context in range(180_000, 8_000, -500)]
    full = ContextBudget()
    begun = []
    for name in ("rounds", "looks", "repository", "change"):
        values = [getattr(one, name) for one in by_length]
        assert values == sorted(values, reverse=True), name
        begun.append(next(n for n, value in enumerate(values) if value < getattr(full, name)))
    assert begun == sorted(begun) and len(set(begun)) == 4


def test_a_view_is_shortened_but_for_criteria_and_names() -> None:
    criteria = [{"id": f"AC-{n}", "description": "It works as the page says. " * 9}
                for n in range(5)]  # fmt: skip
    names = {"T1": "tests/test_a.py::" + "x" * 300}
    view = {
        "decided": {"prompt": "Do it. " * 900},
        "acceptance_criteria": criteria,
        "test_ids": names,
        "test_result": {"tail": "noise\n" * 900 + "E  the end", "failing": ["T1"] * 200},
    }
    found = fitted(view, 700)
    assert tokens(to_yaml(found)) <= 700
    assert found["acceptance_criteria"] == criteria and found["test_ids"] == names
    assert found["test_result"]["tail"].endswith("E  the end")
    assert found["decided"]["prompt"].startswith("Do it.")
    assert fitted(found, 700) == found and fitted(found, 10) == fitted(fitted(found, 10), 10)
    assert fitted(view, 100_000) == view


def test_rounds_stay_folded_and_within_their_share() -> None:
    budget = budget_for(8_192, FIXED)
    rounds = [
        Round(f"1-{n}", report="word " * (budget.report // 2), line=f"report 1-{n}; " + "x" * 280)
        for n in range(40)
    ]
    before = 0
    for number in range(1, len(rounds) + 1):
        first = folded_until(rounds[:number], budget)
        assert before <= first < number
        before = first
        texts = messages_of(rounds[:number], lambda kind, text, id_="": text, "en", budget)
        assert sum(map(tokens, texts)) < budget.rounds * 1.3  # with the words around them


def test_a_beginning_has_so_many_tokens() -> None:
    assert beginning("short", 100) == "short"
    for text in ("word " * 900, "語" * 900):
        found = beginning(text, 100)
        assert found.endswith("… (cut)\n") and 90 <= tokens(found) <= 110
