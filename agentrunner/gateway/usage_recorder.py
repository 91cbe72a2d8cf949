"""Records every call of a worker run, and refuses further ones once the allowance is spent."""

from __future__ import annotations

import contextlib
from datetime import datetime

from agentrunner.gateway.order import Allowance, GatewayOrder
from agentrunner.gateway.prices import Prices
from agentrunner.gateway.upstream_errors import UpstreamError
from agentrunner.gateway.usage import Call, UsageLog, read_log
from agentrunner.gateway.wires import CallTokens
from agentrunner.text.redaction import Redactor
from agentrunner.text.times import stamp


class UsageRecorder:
    """Writes the usage log of one worker run, and continues where an earlier process stopped."""

    def __init__(self, order: GatewayOrder, prices: Prices, redactor: Redactor) -> None:
        """Open the log. Calls of the same label in it count against the allowance.

        Raises OSError if it cannot be opened.
        """
        self._allowance: Allowance = order.allowance
        self._label = order.label
        self._prices = prices
        self._redactor = redactor
        ended, lost = read_log(order.usage_log)
        earlier = [call for call in ended if call.label == order.label]
        self._log = UsageLog(order.usage_log)
        known = (call.n for call in (*earlier, *lost) if call.label == order.label)
        self._calls = max(known, default=0)
        self.answered = sum(call.metered and call.sent for call in earlier)
        """Calls that an earlier process had sent on."""
        self._tokens = sum((c.input_tokens or 0) + (c.output_tokens or 0) for c in earlier)
        self._usd = sum(call.usd or 0 for call in earlier)

    def refusal(self) -> str:
        """Return why no further call may be made, as a sentence; "" if one may."""
        tokens, usd = self._allowance.tokens, self._allowance.usd
        if tokens is not None and self._tokens >= tokens:
            return (
                "the token budget of this run is used up "
                f"({self._tokens} of {tokens} tokens that were left for this worker)."
            )
        if usd is not None and self._usd >= usd:
            return (
                "the cost budget of this run is used up "
                f"({self._usd:.2f} of {usd:.2f} US dollars that were left for this worker)."
            )
        return ""

    def begin(self, path: str, model: str, started: datetime) -> int:
        """Record that a call is sent on, and return its number."""
        self._calls += 1
        call = Call(
            ts=stamp(started), label=self._label, n=self._calls, path=path,
            model=self._redactor.redact(model[:200]), status=0, duration_ms=0,
            input_tokens=None, cached_tokens=None, output_tokens=None, usd=None,
            detail="nobody saw the end of this call",
        )  # fmt: skip
        with contextlib.suppress(OSError):
            self._log.append(call, begins=True)
        return self._calls

    def book(
        self,
        *,
        number: int | None,
        path: str,
        model: str,
        metered: bool,
        status: int,
        duration_sec: float,
        tokens: CallTokens | None,
        error: UpstreamError | None,
        ended: datetime,
    ) -> None:
        """Record how a call ended; `tokens` is None if they are unknown.

        `number` is the result of `begin`, None for a call that was not sent on or costs nothing.
        """
        # A refused call costs nothing; one that breaks off may.
        free = not metered or status >= 400
        usd = 0.0 if free else self._prices.cost(model, tokens)
        if number is None:
            self._calls = number = self._calls + 1
        if tokens is not None:
            self._tokens += tokens.input + tokens.output
        self._usd += usd or 0
        reset_at = error.reset_at if error else None
        call = Call(
            ts=stamp(ended),
            label=self._label,
            n=number,
            path=path,
            model=self._redactor.redact(model[:200]),
            status=status,
            duration_ms=round(duration_sec * 1000),
            input_tokens=tokens.input if tokens else None,
            cached_tokens=tokens.cached if tokens else None,
            output_tokens=tokens.output if tokens else None,
            usd=usd,
            error=error.kind if error else None,
            reset_at=stamp(reset_at) if reset_at else None,
            detail=self._redactor.redact(error.detail) if error else "",
            metered=metered,
        )
        # On a full disk the worker continues; the totals here still apply to its allowance.
        with contextlib.suppress(OSError):
            self._log.append(call)

    def close(self) -> None:
        """Close the log."""
        self._log.close()
