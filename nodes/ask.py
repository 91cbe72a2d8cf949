"""Asking the meta-agent from a node: budget, facts, record, count."""

from __future__ import annotations

from collections.abc import Callable

from agentrunner.errors import TaskFailed
from agentrunner.meta.base import MessageType
from agentrunner.nodes.deps import Deps
from agentrunner.protocol import Message
from agentrunner.task.context import Counters, TaskContext
from agentrunner.task.summary import summarize


class BudgetSpent(TaskFailed):
    """A budget of the task is spent."""

    default_code = "budget"

    def __init__(self, name: str, limit: float) -> None:
        super().__init__(
            f"The budget runner.budget.{name} of {limit:g} is spent.", code=f"budget: {name}"
        )


def check_budget(deps: Deps, counters: Counters) -> None:
    """Raise BudgetSpent where another step may not be taken."""
    budget = deps.spec.runner.budget
    spent_tokens = (
        counters.meta_input_tokens
        + counters.meta_output_tokens
        + counters.worker_input_tokens
        + counters.worker_output_tokens
    )
    for name, limit, spent in (
        ("wall_sec", budget.wall_sec, counters.wall_sec),
        ("meta_calls", budget.meta_calls, counters.meta_calls),
        ("tokens", budget.tokens, spent_tokens),
    ):
        if limit is not None and spent >= limit:
            raise BudgetSpent(name, limit)


async def ask(
    state: TaskContext,
    deps: Deps,
    type: MessageType,  # noqa: A002  (the protocol's word)
    counters: Counters,
    check: Callable[[Message], None] | None = None,
) -> tuple[Message, Counters]:
    """One message of the meta-agent, and the counters after it.

    Raises TaskFailed where it can't be had; the counters so far are on the error.
    """
    facts = summarize(state, deps.spec, patterns=deps.patterns)
    tally = Tally(counters)
    try:
        asked = await deps.asker.ask(
            type,
            facts=facts,
            salt=state["run"].salt,
            call_number=counters.meta_calls,
            before_attempt=lambda: check_budget(deps, tally.counters),
            on_call=lambda call: tally.add(call.input_tokens, call.output_tokens),
            check=check,
        )
    except TaskFailed as error:
        error.counters = tally.counters  # type: ignore[attr-defined]
        raise
    return asked, tally.counters


class Tally:
    """Counters that grow with every attempt on the wire, also with those that fail."""

    def __init__(self, counters: Counters) -> None:
        self.counters = counters

    def add(self, input_tokens: int, output_tokens: int) -> None:
        """One more attempt."""
        before = self.counters
        self.counters = before.model_copy(
            update={
                "meta_calls": before.meta_calls + 1,
                "meta_input_tokens": before.meta_input_tokens + input_tokens,
                "meta_output_tokens": before.meta_output_tokens + output_tokens,
            }
        )
