"""The kinds of budget: what each is measured in, and when some of it must be left.

Apart from the models, so that screens that only name limits start without these.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class BudgetKind(Struct, frozen=True):
    """What one key of `runner.budget` limits."""

    unit: str
    """Unit for the figure 1, as people read it."""
    units: str
    """Unit for any other figure."""
    counter: str = ""
    """The field of `Counters` that is compared with the limit; "" for the one of the same name."""
    whole: bool = True
    """Whether the figure is an integer count; else it is measured."""
    before_call: bool = True
    """Whether some of it must be left before a call of the planner."""
    before_worker: bool = True
    """Whether some of it must be left before a worker run."""
    by_talking: bool = True
    """Whether talking about a plan uses it up; each message has a time limit of its own."""


BUDGET_KINDS: Mapping[str, BudgetKind] = {
    "wall_sec": BudgetKind("s of work", "s of work", whole=False, by_talking=False),
    "meta_calls": BudgetKind("call", "calls", "calls", before_worker=False),
    "worker_runs": BudgetKind("run", "runs", before_call=False, by_talking=False),
    "tokens": BudgetKind("token", "tokens"),
    "usd": BudgetKind("US dollar", "US dollars", whole=False),
}
"""By key; the first that is used up is named. A test shows what else a new kind needs."""
