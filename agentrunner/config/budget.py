"""The limits of a run as a task or a policy sets them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentrunner.config.config_model import ConfigModel


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
