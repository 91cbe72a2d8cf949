"""What calls and worker runs have cost, as counters of the state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentrunner.execution.bill import Amount, Known, MadeCalls, amount_of_call
from agentrunner.execution.budget_questions import granted
from agentrunner.execution.deps import Update
from agentrunner.gateway.prices import Prices
from agentrunner.gateway.usage import ModelUsage, Usage
from agentrunner.gateway.wires import Tokens
from agentrunner.planners.base import PlannerCall
from agentrunner.state.run_state import Counters, TaskContext
from agentrunner.workers.base import WorkerReading


class Accounting:
    """Counters that grow with every attempt on the wire, also with those that fail."""

    def __init__(self, counters: Counters, prices: Prices) -> None:
        self.counters = counters
        self._prices = prices

    def add(self, call: PlannerCall) -> dict[str, Any]:
        """Count one more attempt; what the run log is to say of its cost."""
        cost = cost_of(call, self._prices)
        amount = amount_of_call({"model": call.model, **cost})
        self.counters = _with_call(self.counters, amount, "meta_calls")
        return cost


def cost_of(call: PlannerCall, prices: Prices) -> dict[str, Any]:
    """Tokens and money of a call, and how they are known, as fields of its record."""
    tokens = Tokens(call.input_tokens, call.output_tokens, call.cached_tokens)
    used = bool(tokens.input or tokens.output)
    known: Known = call.known
    if known == "unknown" and used:
        known = "reported"
    elif known == "unknown" and call.error:
        known = "counted"  # refused, or never answered: nothing was used that anybody tells of
    usd = call.usd
    if usd is None and not call.subscription and known != "unknown":
        usd = prices.cost(call.model, tokens) if used else 0.0
    return {
        "usage": {
            "input_tokens": tokens.input,
            "cached_tokens": tokens.cached,
            "output_tokens": tokens.output,
        },
        "usd": None if call.subscription else usd,
        "known": known,
        "subscription": call.subscription,
        "candidate": call.candidate,
    }


def _with_call(counters: Counters, amount: Amount, name: str) -> Counters:
    # A call that used nothing, like one that was refused, says nothing of prices.
    nothing = amount.known == "counted" and not amount.tokens and not amount.usd
    return counters.model_copy(
        update={
            name: getattr(counters, name) + 1,
            "meta_input_tokens": counters.meta_input_tokens + amount.input_tokens,
            "meta_output_tokens": counters.meta_output_tokens + amount.output_tokens,
            **({} if nothing else _money(counters, [amount])),
        }
    )


def _money(counters: Counters, amounts: Iterable[Amount]) -> dict[str, Any]:
    """The counters that both planner and workers have a part in."""
    usd, priced, unpriced = counters.usd, counters.priced_calls, counters.unpriced_calls
    subscribed, unknown = counters.subscribed_calls, counters.unknown_calls
    for amount in amounts:
        usd += amount.usd
        priced += amount.priced_calls
        unpriced += amount.unpriced_calls
        unknown += amount.unknown_calls
        if amount.subscription:
            subscribed += 1 if amount.calls is None else amount.calls
    return {
        "usd": usd,
        "priced_calls": priced,
        "unpriced_calls": unpriced,
        "subscribed_calls": subscribed,
        "unknown_calls": unknown,
    }


def caught_up(state: TaskContext, calls: MadeCalls) -> Update:
    """What the run log knows and the saved state does not: channels to be set, {} for nothing.

    A node that was killed made calls that no state has. They are those that the log has more than
    were counted, because every call is in it, as often as it was made, before a state is saved
    that counts it. Grants come from people while no node runs.
    """
    update: Update = {}
    counters = state["counters"]
    for call in calls.known()[counters.calls :]:
        counters = _with_call(counters, amount_of_call(call), "repeated_calls")
    if counters is not state["counters"]:
        update["counters"] = counters
    grants = granted(calls.log)
    if grants != state.get("grants", {}):
        update["grants"] = grants
    return update


# -- workers --------------------------------------------------------------------------------------


def amounts_of(
    used: Usage, reading: WorkerReading, *, gateway: bool, calls_model: bool, subscribed: bool
) -> list[Amount]:
    """What a worker run used, by model: as its `gateway` counted, else as its CLI reported.

    Where a reply broke off before it told, the gateway has the least that was used; a CLI that
    reports more is believed for the rest.
    """
    amounts = [_counted(model, one, subscribed) for model, one in used.by_model.items()]
    if gateway and not used.unknown_calls:
        return amounts
    rest_in = max(0, reading.input_tokens - used.input_tokens)
    rest_out = max(0, reading.output_tokens - used.output_tokens)
    if rest_in or rest_out or (reading.usd is not None and not used.calls):
        usd = None if used.calls or subscribed else reading.usd
        amounts.append(
            Amount(
                model=reading.model,
                calls=0 if used.calls else None,
                input_tokens=rest_in,
                output_tokens=rest_out,
                usd=usd or 0,
                unpriced_calls=int(usd is None and not used.calls and not subscribed),
                known="reported",
                subscription=subscribed,
            )
        )
    if not amounts and calls_model:
        amounts.append(_nobody_knows(reading.model, subscribed))
    return amounts


def _counted(model: str, used: ModelUsage, subscribed: bool) -> Amount:
    return Amount(
        model=model,
        calls=used.calls,
        input_tokens=used.input_tokens,
        cached_tokens=used.cached_tokens,
        output_tokens=used.output_tokens,
        usd=0 if subscribed else used.known_usd,
        unpriced_calls=0 if subscribed else used.unpriced_calls,
        unknown_calls=used.unknown_calls,
        known="unknown" if used.unknown_calls else "counted",
        subscription=subscribed,
    )


def _nobody_knows(model: str, subscribed: bool) -> Amount:
    return Amount(
        model=model,
        calls=None,
        unpriced_calls=int(not subscribed),
        unknown_calls=1,
        known="unknown",
        subscription=subscribed,
    )


def with_worker(counters: Counters, amounts: Iterable[Amount]) -> Counters:
    """The counters after a worker run."""
    amounts = list(amounts)
    tokens_in = sum(amount.input_tokens for amount in amounts)
    tokens_out = sum(amount.output_tokens for amount in amounts)
    return counters.model_copy(
        update={
            "worker_runs": counters.worker_runs + 1,
            "worker_input_tokens": counters.worker_input_tokens + tokens_in,
            "worker_output_tokens": counters.worker_output_tokens + tokens_out,
            **_money(counters, amounts),
        }
    )
