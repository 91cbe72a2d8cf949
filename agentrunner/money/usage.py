"""What the calls of one process used, as its gateway counted them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentrunner.gateway.usage import ModelCall, read_calls
from agentrunner.money.amount import Amount, amount_of_call, total


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
