"""Rounds as people count them, from 1 over all attempts of a run. Pure.

Tries of one order are one round, and a request for completion that was refused is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentrunner.state.lifecycle import TaskState

if TYPE_CHECKING:  # looking at runs must not load the models
    from agentrunner.state.run_state import TaskContext


def round_of(number: int | None, loop: int | None) -> int:
    """Return the round of an order, a worker run or an event; those of earlier versions have only
    the loop of their attempt.
    """
    return number or (loop or 0) + 1


def rounds_so_far(state: TaskContext) -> int:
    """Return the round of the latest worker run that has ended; 0 before the first."""
    recent = state.get("recent", [])
    return round_of(recent[-1].round, recent[-1].loop) if recent else 0


def rounds_at_most(state: TaskContext) -> int:
    """Return the last round that the attempt's limit of loops leaves room for."""
    left = max(state["run"].max_loops - state["counters"].loops, 0)
    if order := state.get("order"):
        return round_of(order.round, order.loop) + left
    free = state["state"] != TaskState.VALIDATING  # what is ordered next needs no loop
    return rounds_so_far(state) + left + free
