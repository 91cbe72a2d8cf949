"""What calls used and cost, and the only way to add that up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # screens that add up start without these
    from agentrunner.gateway.usage import ModelCall
    from agentrunner.results import BillEntry

Known = Literal["counted", "reported", "unknown"]
"""Source of a figure: counted from the provider's reply, reported by a CLI, or unknown."""
_WORST: Sequence[Known] = ("counted", "reported", "unknown")


@dataclass(frozen=True)
class Amount:
    """What calls of one model used. If not everything is `known`, it is a lower bound."""

    model: str = ""
    """"" if nobody reported it."""
    calls: int | None = 0
    """None if nobody counted them."""
    input_tokens: int = 0
    """Everything read, from a cache or not."""
    cached_tokens: int = 0
    """The part of `input_tokens` that came from a cache."""
    output_tokens: int = 0
    usd: float = 0
    """The cost of the calls whose cost is known."""
    unpriced_calls: int = 0
    """Calls whose cost is unknown; calls of a subscription do not count."""
    unknown_calls: int = 0
    """Calls whose tokens are unknown, or not all known."""
    known: Known = "counted"
    """`counted` by the gateway or from the provider's own replies, `reported` by a CLI, or
    `unknown`: not all is known."""
    subscription: bool = False
    """Whether they are part of a subscription, so that no price is paid for them."""

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    @property
    def priced_calls(self) -> int:
        """How many calls have a known cost."""
        made = 1 if self.calls is None else self.calls
        return 0 if self.subscription else made - self.unpriced_calls

    @property
    def price(self) -> float | None:
        """The cost of the calls; None if it is unknown for any of them."""
        return None if self.unpriced_calls else self.usd

    @property
    def least_usd(self) -> float | None:
        """The known part of the cost; None if nothing is known."""
        return self.usd if self.priced_calls or self.usd else None

    def __add__(self, other: Amount) -> Amount:
        """Return the sum; it has a model if both have the same."""
        if NOTHING in (self, other):
            return other if self == NOTHING else self
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

    def subscribed(self) -> Amount:
        """Return the same amount as part of a subscription."""
        return replace(self, usd=0, unpriced_calls=0, subscription=True)

    def as_dict(self) -> dict[str, object]:
        """Return the fields for the run log."""
        return asdict(self)


NOTHING = Amount()
"""The amount of no calls."""


def total(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of all amounts."""
    return sum(amounts, NOTHING)


def least_usd(amounts: Iterable[Amount]) -> float | None:
    """Return the known part of the cost of all; None if nothing is known of any."""
    known = [usd for amount in amounts if (usd := amount.least_usd) is not None]
    return round(sum(known), 6) if known else None


def amount_of_call(call: ModelCall) -> Amount:
    """Return what one call through a gateway used."""
    return Amount(
        model=call.model,
        calls=1,
        input_tokens=call.input_tokens or 0,
        cached_tokens=call.cached_tokens or 0,
        output_tokens=call.output_tokens or 0,
        usd=call.usd or 0,
        unpriced_calls=int(call.usd is None),
        unknown_calls=int(call.unknown),
        known="unknown" if call.unknown else "counted",
    )


def amount_of_entry(entry: BillEntry) -> Amount:
    """Return the amount of a line of a bill."""
    alike = {field.name: getattr(entry, field.name) for field in fields(Amount)}
    return Amount(**{**alike, "usd": entry.usd or 0})
