"""What a worker run has spent: every call is booked, and none begins once the allowance is gone."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from agentrunner.gateway.order import Allowance, GatewayOrder
from agentrunner.gateway.prices import Prices
from agentrunner.gateway.upstream_errors import UpstreamError
from agentrunner.gateway.usage import Call, UsageLog, read_log
from agentrunner.gateway.wires import CallTokens
from agentrunner.text.redaction import Redactor


class UsageRecorder:
    """Keeps the usage log of one worker run, and goes on where an earlier process stopped."""

    def __init__(self, order: GatewayOrder, prices: Prices, redactor: Redactor) -> None:
        """Open the log. Calls of the same label in it count against the allowance.

        Raises OSError where it cannot be opened.
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
        """Why no further call may be made, as a sentence; "" where one may."""
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
        """Write down that a call is sent on, and give its number."""
        self._calls += 1
        call = Call(
            ts=_stamp(started), label=self._label, n=self._calls, path=path,
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
        """Write down how a call ended; `tokens` is None where they are not known.

        `number` is that of `begin`, None for a call that was not sent on or costs nothing.
        """
        # A call that is refused costs nothing; one that breaks off may.
        free = not metered or status >= 400
        usd = 0.0 if free else self._prices.cost(model, tokens)
        if number is None:
            self._calls = number = self._calls + 1
        if tokens is not None:
            self._tokens += tokens.input + tokens.output
        self._usd += usd or 0
        reset_at = error.reset_at if error else None
        call = Call(
            ts=_stamp(ended),
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
            reset_at=_stamp(reset_at) if reset_at else None,
            detail=self._redactor.redact(error.detail) if error else "",
            metered=metered,
        )
        # On a full disk the worker goes on; the totals here still hold for its allowance.
        with contextlib.suppress(OSError):
            self._log.append(call)

    def close(self) -> None:
        """Release the log."""
        self._log.close()


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
