"""The kinds of budget that there are, as data. It imports no model, so that screens may read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BudgetKind:
    """What is limited by one key of `runner.budget`."""

    unit: str
    """Of 1, as people read it."""
    units: str
    """Of any other figure."""
    counter: str = ""
    """What of `Counters` is held against it; "" for the one of the same name."""
    whole: bool = True
    """Whether it is counted; else it is measured."""
    before_call: bool = True
    """Whether it must not be spent before a call of the planner."""
    before_worker: bool = True
    """Whether it must not be spent before a worker run."""
    by_talking: bool = True
    """Whether talking about a plan spends it; its time is bounded for each message."""


BUDGET_KINDS: Mapping[str, BudgetKind] = {
    "wall_sec": BudgetKind("s of work", "s of work", whole=False, by_talking=False),
    "meta_calls": BudgetKind("call", "calls", "calls", before_worker=False),
    "worker_runs": BudgetKind("run", "runs", before_call=False, by_talking=False),
    "tokens": BudgetKind("token", "tokens"),
    "usd": BudgetKind("US dollar", "US dollars", whole=False),
}
"""By key; the first that is spent is named. A test says what else a kind needs."""
