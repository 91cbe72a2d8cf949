"""The limits of a run as a task or a policy sets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from pydantic import Field

from agentrunner.config.config_model import ConfigModel


class BudgetKind(Struct, frozen=True):
    """What one key of `runner.budget` limits.

    Apart from the models, so that screens that only name limits start without these.
    """

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


class Limits(ConfigModel):
    """One limit of each kind of budget. None is unlimited, 0 is none at all."""

    wall_sec: float | None = Field(None, ge=0)
    """Seconds of work; pauses and waits cost nothing."""
    meta_calls: int | None = Field(None, ge=0)
    """Calls of the planner's model, repeated ones included."""
    worker_runs: int | None = Field(None, ge=0)
    """Worker runs, repeated and lost ones included."""
    tokens: int | None = Field(None, ge=0)
    """Tokens of planner and workers together: as the gateway counts, else as reported."""
    usd: float | None = Field(None, ge=0)
    """Cost in US dollars, where it is known."""


class BudgetSpec(Limits):
    """Limits over all attempts of a run. None is unlimited, 0 is none at all."""

    wall_sec: float | None = Field(3600, ge=0)
    """Seconds of work; pauses and waits cost nothing."""
    wait_sec: float = Field(21_600, ge=0)
    """The longest wait for a quota or an overloaded provider; a longer one is asked about."""
    on_spent: Literal["ask", "fail"] = "ask"
    """`ask`: the run pauses, and a person raises the limit or stops. `fail`: it ends FAILED."""
    enforce: Literal["soft", "hard"] = "soft"
    """`hard`: refuse to start where a limit cannot be held while a worker runs."""
