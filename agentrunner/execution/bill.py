"""What a run cost, by role, model and worker run, from what the run log says of it. Pure.

The rows add up to the counters that limits are held against: both are made of the same records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agentrunner.storage.run_log import RunLog

Role = Literal["planner", "assess", "worker"]
Known = Literal["counted", "reported", "unknown"]

LOST: Mapping[str, Any] = {"usage": {}, "usd": None, "known": "unknown"}
"""What is known of a call whose end nobody saw: that it was made."""
_WORST: Sequence[Known] = ("counted", "reported", "unknown")


@dataclass(frozen=True)
class Amount:
    """What calls of one model used. Where not all is `known`, it is the least."""

    model: str = ""
    """"" where nobody told."""
    calls: int | None = 0
    """None where nobody counted them."""
    input_tokens: int = 0
    """All that was read, from a cache or not."""
    cached_tokens: int = 0
    """The part of `input_tokens` that came from a cache."""
    output_tokens: int = 0
    usd: float = 0
    """Of the calls whose cost is known."""
    unpriced_calls: int = 0
    """Calls whose cost is not; none of a subscription."""
    unknown_calls: int = 0
    """Calls whose tokens are not known, or not all of them."""
    known: Known = "counted"
    """`counted` by the gateway or from the provider's own replies, `reported` by a CLI, or not
    all known."""
    subscription: bool = False
    """Whether they are part of a subscription, so that no price is paid for them."""

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.input_tokens + self.output_tokens

    @property
    def priced_calls(self) -> int:
        """Calls whose cost is known."""
        made = 1 if self.calls is None else self.calls
        return 0 if self.subscription else made - self.unpriced_calls

    def __add__(self, other: Amount) -> Amount:
        """The sum; with the model of both, where that is one."""
        counted = self.calls is not None and other.calls is not None
        return Amount(
            model=self.model if self.model == other.model else "",
            calls=(self.calls or 0) + (other.calls or 0) if counted else None,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
            unpriced_calls=self.unpriced_calls + other.unpriced_calls,
            unknown_calls=self.unknown_calls + other.unknown_calls,
            known=max(self.known, other.known, key=_WORST.index),
            subscription=self.subscription and other.subscription,
        )

    def as_dict(self) -> dict[str, Any]:
        """For the run log."""
        return asdict(self)


NOTHING = Amount()
"""What nobody used."""


@dataclass(frozen=True)
class BillRow:
    """One line of the bill."""

    role: Role
    candidate: str
    """Who it was among those of the role; of workers the name in `runner.workers`."""
    run: str
    """The worker run; "" for the planner."""
    amount: Amount

    def as_dict(self) -> dict[str, Any]:
        """For the result object. `usd` is None where no call's cost is known."""
        row = {"role": self.role, "candidate": self.candidate, "run": self.run}
        amount = self.amount
        usd = round(amount.usd, 6) if amount.priced_calls or amount.usd else None
        return {**row, **amount.as_dict(), "usd": usd}


def bill_of(log: RunLog) -> list[dict[str, Any]]:
    """The bill of a run as its log stands."""
    return [row.as_dict() for row in rows_of(log)]


def rows_of(log: RunLog) -> list[BillRow]:
    """The rows of the bill of a run, as its log stands."""
    runs = [record.data for record in log.records("worker_run")]
    return bill(MadeCalls(log).known(), runs)


def bill(calls: Iterable[Mapping[str, Any]], runs: Iterable[Mapping[str, Any]]) -> list[BillRow]:
    """Rows for the planner by role, candidate and model, then for each worker run by model.

    `calls` and `runs` are the data of records `meta_call` and `worker_run`.
    """
    sums: dict[tuple[Role, str, str], Amount] = {}
    for call in calls:
        role: Role = "assess" if call.get("type") == "completion_assessment" else "planner"
        amount = amount_of_call(call)
        key = (role, str(call.get("candidate") or ""), f"{amount.model}|{amount.subscription}")
        sums[key] = sums[key] + amount if key in sums else amount
    rows = [BillRow(role, candidate, "", amount) for (role, candidate, _), amount in sums.items()]
    for run in runs:
        name, own = str(run.get("member") or run.get("worker") or ""), str(run["worker_run_id"])
        rows += [BillRow("worker", name, own, Amount(**used)) for used in run.get("usage", [])]
    return sorted(rows, key=lambda row: row.role == "worker")


class MadeCalls:
    """The calls of the planner that a run's log has, followed as it grows.

    A number that comes again is another call: the node that made the first one was killed before
    it was saved.
    """

    def __init__(self, log: RunLog) -> None:
        self.log = log
        self._seen = 0
        self._calls: list[Mapping[str, Any]] = []
        self._begun: dict[tuple[int, str], int] = {}
        """Where in `_calls` those are whose end is not seen yet."""

    def known(self) -> Sequence[Mapping[str, Any]]:
        """The data of every call that was made, in the order they began."""
        fresh = self.log.written(self._seen)
        self._seen += len(fresh)
        for record in fresh:
            name = (record.attempt, record.key)
            if record.kind == "meta_begun":
                self._begun[name] = len(self._calls)
                self._calls.append({**record.data, **LOST})
            elif record.kind == "meta_call":
                if (place := self._begun.pop(name, None)) is None:
                    self._calls.append(record.data)
                else:
                    self._calls[place] = record.data
        return self._calls


def amount_of_call(call: Mapping[str, Any]) -> Amount:
    """What one call of the planner used, from the data of its record."""
    usage = call.get("usage") or {}
    known: Known = call.get("known", "reported")
    usd, subscription = call.get("usd"), bool(call.get("subscription"))
    return Amount(
        model=str(call.get("model") or ""),
        calls=1,
        input_tokens=usage.get("input_tokens") or 0,
        cached_tokens=usage.get("cached_tokens") or 0,
        output_tokens=usage.get("output_tokens") or 0,
        usd=usd or 0,
        unpriced_calls=int(usd is None and not subscription),
        unknown_calls=int(known == "unknown"),
        known=known,
        subscription=subscription,
    )
