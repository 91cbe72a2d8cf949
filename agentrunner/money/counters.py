"""The cost of calls and worker runs, as counters of the state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agentrunner.config.spec import TaskSpec
from agentrunner.gateway.order import Allowance
from agentrunner.gateway.prices import Prices
from agentrunner.gateway.usage import ModelCall, read_calls
from agentrunner.gateway.wires import CallTokens
from agentrunner.money.amount import Amount, Known, amount_of_call, total
from agentrunner.money.bill import MadeCalls, amount_of_record
from agentrunner.state.budget import added, limits_of
from agentrunner.state.run_state import Counters, TaskContext
from agentrunner.storage.run_log import RunLog


@dataclass(frozen=True)
class Usage:
    """The sums over the calls that were sent, by model. Free calls are left out."""

    by_model: Mapping[str, Amount] = field(default_factory=dict)
    last_error: ModelCall | None = None
    """The last call, if it failed: the likely reason why a worker then gave up."""

    @property
    def total(self) -> Amount:
        """The sum over all models."""
        return total(self.by_model.values())


class Reported(Protocol):
    """What a CLI reports about its usage."""

    @property
    def model(self) -> str:
        """The model that it reports; "" if it reports none."""

    @property
    def input_tokens(self) -> int:
        """Everything read, from a cache or not."""

    @property
    def output_tokens(self) -> int:
        """Everything written."""

    @property
    def usd(self) -> float | None:
        """The cost that it reports; None if it reports none."""


class ReportedCall(Reported, Protocol):
    """What is known of one call of the planner."""

    @property
    def cached_tokens(self) -> int:
        """The part of `input_tokens` that came from a cache."""

    @property
    def known(self) -> Known:
        """How the numbers are known."""

    @property
    def subscription(self) -> bool:
        """Whether it is part of a subscription."""

    @property
    def candidate(self) -> str:
        """The candidate that answered."""

    @property
    def near(self) -> bool:
        """Whether a server of this machine or of its network answered."""

    @property
    def error(self) -> str:
        """Why there is no answer; "" if there is one."""


class Accounting:
    """Counters that grow with every attempted call, including failed ones."""

    def __init__(self, counters: Counters, prices: Prices) -> None:
        self.counters = counters
        self._prices = prices

    def add(self, call: ReportedCall) -> dict[str, object]:
        """Count one more attempt; return the fields about its cost for the run log."""
        cost = cost_of(call, self._prices)
        amount = amount_of_record({"model": call.model, **cost})
        self.counters = _with_call(self.counters, amount, "meta_calls")
        return cost


def cost_of(call: ReportedCall, prices: Prices) -> dict[str, object]:
    """Return tokens and money of a call, and how they are known, as fields of its record."""
    tokens = CallTokens(call.input_tokens, call.output_tokens, call.cached_tokens)
    used = bool(tokens.input or tokens.output)
    known: Known = call.known
    if known == "unknown" and used:
        known = "reported"
    elif known == "unknown" and call.error:
        known = "counted"  # refused, or never answered: nothing was used that anybody could report
    usd = call.usd
    if usd is None and not call.subscription and known != "unknown":
        usd = prices.cost(call.model, tokens, near=call.near) if used else 0.0
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
    # A call that used nothing, like a refused one, says nothing about prices.
    nothing = amount.known == "counted" and not amount.tokens and not amount.usd
    return counters.model_copy(
        update={
            name: getattr(counters, name) + 1,
            "meta_input_tokens": counters.meta_input_tokens + amount.input_tokens,
            "meta_output_tokens": counters.meta_output_tokens + amount.output_tokens,
            **({} if nothing else _money(counters, [amount])),
        }
    )


def _money(counters: Counters, amounts: Iterable[Amount]) -> dict[str, object]:
    """Return the counters that planner and workers share."""
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


def caught_up(state: TaskContext, calls: MadeCalls) -> TaskContext:
    """Return channels for what the run log knows and the saved state does not; {} for nothing.

    A node that was killed made calls that no state has. They are the calls in the log beyond those
    counted, because the log has every call, as often as it was made, before a state is saved that
    counts it. Grants come from people while no node runs.
    """
    update: TaskContext = {}
    counters = state["counters"]
    for call in calls.known()[counters.calls :]:
        counters = _with_call(counters, amount_of_record(call), "repeated_calls")
    if counters is not state["counters"]:
        update["counters"] = counters
    grants = granted(calls.log)
    if grants != state.get("grants", {}):
        update["grants"] = grants
    return update


def allowance(
    spec: TaskSpec, grants: Mapping[str, float], counters: Counters, *, subscribed: bool = False
) -> Allowance:
    """Return what a gateway may let through: the tokens and money that remain now.

    Calls of a subscription have no price, so money does not limit them.
    """
    limits = limits_of(spec, grants)
    tokens = usd = None
    if "tokens" in limits:
        tokens = math.ceil(max(0, limits["tokens"] - counters.tokens))
    if "usd" in limits and not subscribed:
        usd = max(0.0, limits["usd"] - counters.usd)
    return Allowance(tokens=tokens, usd=usd)


def granted(log: RunLog) -> dict[str, float]:
    """Return what people have granted so far, from the run log: the state may be older."""
    grants: dict[str, float] = {}
    for record in log.records("grant"):
        grants = added(grants, record.data.get("amounts", {}))
    return grants


# -- workers --------------------------------------------------------------------------------------


def amounts_of(
    used: Usage, reading: Reported, *, gateway: bool, calls_model: bool, subscribed: bool
) -> list[Amount]:
    """Return what a worker run used, by model: as its `gateway` counted, or as its CLI reported.

    If a reply broke off before its usage was reported, the gateway has a lower bound; a CLI that
    reports more is trusted for the rest.
    """
    counted = used.total
    amounts = [amount.subscribed() if subscribed else amount for amount in used.by_model.values()]
    if gateway and not counted.unknown_calls:
        return amounts
    rest_in = max(0, reading.input_tokens - counted.input_tokens)
    rest_out = max(0, reading.output_tokens - counted.output_tokens)
    if rest_in or rest_out or (reading.usd is not None and not counted.calls):
        usd = None if counted.calls or subscribed else reading.usd
        amounts.append(
            Amount(
                model=reading.model,
                calls=0 if counted.calls else None,
                input_tokens=rest_in,
                output_tokens=rest_out,
                usd=usd or 0,
                unpriced_calls=int(usd is None and not counted.calls and not subscribed),
                known="reported",
                subscription=subscribed,
            )
        )
    if not amounts and calls_model:
        amounts.append(_unknown_amount(reading.model, subscribed))
    return amounts


def _unknown_amount(model: str, subscribed: bool) -> Amount:
    return Amount(
        model=model,
        calls=None,
        unpriced_calls=int(not subscribed),
        unknown_calls=1,
        known="unknown",
        subscription=subscribed,
    )


def with_worker(counters: Counters, amounts: Iterable[Amount]) -> Counters:
    """Return the counters after a worker run."""
    amounts = list(amounts)
    used = total(amounts)
    return counters.model_copy(
        update={
            "worker_runs": counters.worker_runs + 1,
            "worker_input_tokens": counters.worker_input_tokens + used.input_tokens,
            "worker_output_tokens": counters.worker_output_tokens + used.output_tokens,
            **_money(counters, amounts),
        }
    )


def read_usage(path: Path) -> Usage:
    """Return the sums of a usage log; nothing if there is none."""
    return usage_of_calls(read_calls(path))


def usage_of_calls(calls: Iterable[ModelCall]) -> Usage:
    """Return the sums over calls."""
    metered = [call for call in calls if call.metered]
    sent = [amount_of_call(call) for call in metered if call.sent]
    models = sorted({amount.model for amount in sent})
    by_model = {name: total(amount for amount in sent if amount.model == name) for name in models}
    last = metered[-1] if metered else None
    return Usage(by_model, last if last is not None and last.error else None)
