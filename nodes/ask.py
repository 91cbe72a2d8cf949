"""Asking the meta-agent from a node: budget, facts, record, count."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from agentrunner.errors import TaskFailed
from agentrunner.gateway.prices import Prices
from agentrunner.gateway.wires import Tokens
from agentrunner.meta.asking import Asker
from agentrunner.meta.base import MetaCall
from agentrunner.meta.make import reply_format
from agentrunner.nodes.deps import Deps
from agentrunner.prompts import PromptInput, PromptType
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
    for name, limit, spent in (
        ("wall_sec", budget.wall_sec, counters.wall_sec),
        ("meta_calls", budget.meta_calls, counters.meta_calls),
        ("tokens", budget.tokens, counters.tokens),
        ("usd", budget.usd, counters.usd),
    ):
        if limit is not None and spent >= limit:
            raise BudgetSpent(name, limit)


async def ask(
    state: TaskContext,
    deps: Deps,
    type: PromptType,  # noqa: A002  (the protocol's word)
    counters: Counters,
    check: Callable[[Message], None] | None = None,
    repository: Mapping[str, Any] | None = None,
) -> tuple[Message, Counters]:
    """One message of the meta-agent, and the counters after it.

    Raises TaskFailed where it can't be had; the counters so far are on the error.
    """
    tally = Tally(counters, deps.prices)

    async def record(call: MetaCall) -> None:
        tally.add(call)
        await asyncio.to_thread(_record, state, deps, call)

    asker = Asker(
        deps.meta,
        record=record,
        before_attempt=lambda: check_budget(deps, tally.counters),
        sleep=deps.clock.sleep,
        redact=deps.redactor.redact,
    )
    prompt = PromptInput.of(
        deps.spec,
        type,
        facts=summarize(
            state, deps.spec, patterns=deps.patterns, workers=[one.name for one in deps.members]
        ),
        repository=repository,
        salt=state["run"].salt,
        call_number=counters.meta_calls,
        format=reply_format(deps.spec),
        patterns=deps.patterns,
    )
    try:
        asked = await asker.ask(prompt, check)
    except TaskFailed as error:
        raise AskFailed(error, tally.counters) from error
    for warning in asked.message.warnings:
        deps.warn(state, f"reply-{warning.code}", f"{type} {warning.path}: {warning.message}")
    return asked.message, tally.counters


class AskFailed(TaskFailed):
    """The meta-agent could not be asked; `counters` hold what it cost."""

    def __init__(self, cause: TaskFailed, counters: Counters) -> None:
        super().__init__(cause.message, code=cause.code, remedy=cause.remedy)
        self.counters = counters


class Tally:
    """Counters that grow with every attempt on the wire, also with those that fail."""

    def __init__(self, counters: Counters, prices: Prices) -> None:
        self.counters = counters
        self._prices = prices

    def add(self, call: MetaCall) -> None:
        """One more attempt."""
        before = self.counters
        update: dict[str, int | float] = {
            "meta_calls": before.meta_calls + 1,
            "meta_input_tokens": before.meta_input_tokens + call.input_tokens,
            "meta_output_tokens": before.meta_output_tokens + call.output_tokens,
        }
        if call.input_tokens or call.output_tokens:
            usd = self._prices.cost(call.model, Tokens(call.input_tokens, call.output_tokens))
            known = "unpriced_calls" if usd is None else "priced_calls"
            update |= {"usd": before.usd + (usd or 0), known: getattr(before, known) + 1}
        self.counters = before.model_copy(update=update)


def _record(state: TaskContext, deps: Deps, call: MetaCall) -> None:
    """Keep the whole exchange in files, and a line about it in log and events."""
    name = f"meta/{call.number:04d}-{call.type}"
    messages = [{"role": m.role, "content": m.content} for m in call.messages]
    usage = {"input_tokens": call.input_tokens, "output_tokens": call.output_tokens}
    asked = json.dumps(messages, ensure_ascii=False)
    # For people to read; no step depends on them, as one does on the checkpoint and the log.
    request = deps.folder.write(f"{name}.request.json", asked, sync=False, new=True)
    response = deps.folder.write(f"{name}.response.txt", call.response, sync=False, new=True)
    deps.record(
        state,
        "meta_call",
        str(call.number),
        {
            "number": call.number,
            "type": call.type,
            "at": deps.clock.stamp(),
            "duration_sec": round(call.duration_sec, 3),
            "usage": usage,
            "error": call.error,
            "model": call.model,
            "request": request.model_dump(),
            "response": response.model_dump(),
        },
    )
    deps.emit(
        "meta_call",
        type=call.type,
        attempt=call.number + 1,
        duration_ms=round(call.duration_sec * 1000),
        usage=usage,
        error=call.error or None,
    )
