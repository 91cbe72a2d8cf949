"""What the runs of a plan have cost so far, compared with the plan's budget."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agentrunner.config.budget import BudgetSpec
from agentrunner.money.amount import Amount, total
from agentrunner.money.bill import spent_by

LIMITS = ("usd", "tokens")
"""Limits of a plan's budget that count over all its runs."""


class Spending:
    """The plan's budget while the plan is executed."""

    def __init__(self, state_dir: Path, budget: BudgetSpec, run_ids: Iterable[str]) -> None:
        """`run_ids` are the runs of earlier processes."""
        self._state_dir = state_dir
        self.budget = budget
        """The limits."""
        self._by_run = {run_id: spent_by(state_dir, run_id) for run_id in run_ids if run_id}

    @property
    def spent(self) -> Amount:
        """Return what all runs of the plan have spent."""
        return total(self._by_run.values())

    @property
    def reached(self) -> str:
        """Return the name of a limit that is reached; "" while there is room."""
        for name in LIMITS:
            limit = getattr(self.budget, name)
            if limit is not None and getattr(self.spent, name) >= limit:
                return name
        return ""

    def left(self, budget: BudgetSpec) -> BudgetSpec:
        """Return the limits of the next run: no more than the plan has left."""
        most, spent = self.budget, self.spent
        tokens = None if most.tokens is None else max(0, most.tokens - spent.tokens)
        usd = None if most.usd is None else round(max(0.0, most.usd - spent.usd), 6)
        return budget.model_copy(update={"tokens": tokens, "usd": usd})

    def count(self, run_id: str) -> None:
        """Read again what a run has used."""
        self._by_run[run_id] = spent_by(self._state_dir, run_id)
