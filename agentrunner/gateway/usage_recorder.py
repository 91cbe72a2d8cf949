"""Records every call of a worker run, and refuses further ones once the allowance is spent."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from datetime import datetime

from msgspec import Struct

from agentrunner.gateway.exchange import Outgoing
from agentrunner.gateway.metering import Meter
from agentrunner.gateway.order import Allowance, GatewayOrder
from agentrunner.gateway.prices import Prices
from agentrunner.gateway.upstream_errors import UpstreamError
from agentrunner.gateway.usage import ModelCall, UsageLog, read_log
from agentrunner.text.redaction import Redactor
from agentrunner.text.times import stamp


class OpenCall(Struct):
    """What is known so far of one call that was let through."""

    request: Outgoing
    started: float
    """By the monotonic clock."""
    number: int | None = None
    """Its number in the usage log, once it is sent on."""
    status: int = 0
    meter: Meter | None = None
    error: UpstreamError | None = None


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

    def begin(self, call: OpenCall, started: datetime) -> None:
        """Record that a call is sent on, and give it its number."""
        self._calls += 1
        call.number = self._calls
        line = replace(self._line(call, started), detail="nobody saw the end of this call")
        with contextlib.suppress(OSError):
            self._log.append(line, begins=True)

    def book(self, call: OpenCall, ended: datetime) -> None:
        """Record how a call ended; one without a number was not sent on, or costs nothing."""
        tokens = call.meter.tokens() if call.meter is not None else None
        error = call.error
        # A refused call costs nothing; one that breaks off may.
        free = not call.request.metered or call.status >= 400
        usd = 0.0 if free else self._prices.cost(call.request.model, tokens)
        if call.number is None:
            self._calls = call.number = self._calls + 1
        self._usd += usd or 0
        line = replace(
            self._line(call, ended),
            status=call.status,
            duration_ms=round((time.monotonic() - call.started) * 1000),
            usd=usd,
            metered=call.request.metered,
        )
        if tokens is not None:
            self._tokens += tokens.input + tokens.output
            line = replace(
                line,
                input_tokens=tokens.input,
                cached_tokens=tokens.cached,
                output_tokens=tokens.output,
            )
        if error is not None:
            line = replace(
                line,
                error=error.kind,
                reset_at=stamp(error.reset_at) if error.reset_at else None,
                detail=self._redactor.redact(error.detail),
            )
        # On a full disk the worker continues; the totals here still apply to its allowance.
        with contextlib.suppress(OSError):
            self._log.append(line)

    def _line(self, call: OpenCall, at: datetime) -> ModelCall:
        """Return a call of which nothing is known but that it was made."""
        assert call.number is not None
        return ModelCall(
            ts=stamp(at), label=self._label, n=call.number, path=call.request.path,
            model=self._redactor.redact(call.request.model[:200]), status=0, duration_ms=0,
            input_tokens=None, cached_tokens=None, output_tokens=None, usd=None,
        )  # fmt: skip

    def close(self) -> None:
        """Close the log."""
        self._log.close()
