"""The cost of a run: one line on the last screen, and in `show` by role and model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentrunner.money.amount import Amount, amount_of_entry, least_usd, total
from agentrunner.screens.layout import count, flat, thousands

if TYPE_CHECKING:
    from agentrunner.results import BillEntry, Result, TokenCount, UsageTotals

_MOST_ROWS = 20


def cost_line(result: Result) -> str:
    """Return tokens of planner and workers, the source of these figures, and the money."""
    usage, rows = result.usage, result.bill
    begun = bool(rows or result.meta_calls or result.worker_runs)
    if (rows or not begun) and not any(map(_cost_something, rows)):
        # Calls of an outage cost as little as those of a planner that is no model.
        return "none: no tokens were used" if rows else "none: no model was asked"
    planner = [row for row in rows if row.role != "worker"]
    worker = [row for row in rows if row.role == "worker"]
    of_planner = _with_source(_tokens(usage.meta), planner)
    of_worker = _with_source(_tokens(usage.worker), worker)
    text = f"planner {of_planner}, worker {of_worker}"
    return text + ("" if rows else " (reported)") + _money(usage, rows)


def _cost_something(row: BillEntry) -> bool:
    """Whether a model was called, or may have been."""
    tokens = row.input_tokens + row.output_tokens
    return bool(tokens or row.subscription or row.usd or row.known != "counted")


def bill_lines(result: Result) -> list[str]:
    """Return a line for each role, model and worker run, newest last; [] if nothing is known."""
    left = len(result.bill) - _MOST_ROWS
    older = [f"and {left} older lines: agentrunner show --json"] if left > 0 else []
    return older + [_line(row) for row in result.bill[-_MOST_ROWS:]]


def _line(row: BillEntry) -> str:
    who = " ".join(flat(name) for name in (row.role, row.run, row.model) if name)
    if row.candidate and row.role != "worker":
        who += f" ({flat(row.candidate)})"
    calls = "calls not counted" if row.calls is None else count(row.calls, "call")
    tokens = _with_source(f"{row.input_tokens + row.output_tokens:,}", [row])
    return f"{who}: {calls}, {tokens}{_cached(row)}, {_price([row])}"


def _cached(row: BillEntry) -> str:
    """Return the share of input from the provider's cache, if it is reported."""
    if not row.cached_tokens or not row.input_tokens:
        return ""
    return f" ({min(100, round(100 * row.cached_tokens / row.input_tokens))} % of the input cached)"


def _with_source(tokens: str, rows: Sequence[BillEntry]) -> str:
    """Return the number of tokens, with what is to be known of it where it was not counted."""
    whole = total(_amounts(rows))
    match whole.known:
        case "counted":
            return f"{tokens} tokens"
        case "reported":
            return f"{tokens} tokens (reported)"
    return f"at least {tokens} tokens (no usage reported for {count(whole.unknown_calls, 'call')})"


def _money(usage: UsageTotals, rows: Sequence[BillEntry]) -> str:
    if rows:
        return f", {_price(rows)}"
    if usage.usd is not None:
        return f", {usage.usd:.2f} USD"
    # An unknown price is not 0; without any call there is no price.
    return ", price unknown" * bool(usage.tokens)


def _price(rows: Sequence[BillEntry]) -> str:
    """Return the money of paid calls, and which roles use a subscription; never 0 for either."""
    paid = [row for row in rows if not row.subscription]
    words = []
    usd = least_usd(_amounts(paid))
    unpriced = total(_amounts(paid)).unpriced_calls > 0
    if usd:
        words.append(f"{'at least ' * unpriced}{usd:.2f} USD")
    elif unpriced:
        words.append("price unknown")
    if len(paid) < len(rows):
        roles = dict.fromkeys(row.role for row in rows if row.subscription)
        whose = f"{' and '.join(roles)} " * bool(paid)
        words.append(f"{whose}in your subscription")
    return ", ".join(words) or "no cost"


def _amounts(rows: Sequence[BillEntry]) -> list[Amount]:
    return [amount_of_entry(row) for row in rows]


def _tokens(usage: TokenCount) -> str:
    return "an unknown number of" if usage.known is None else thousands(usage.known)
