"""What a run cost, on the last screen in a line and in `show` by who and what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentrunner.screens.layout import count, flat, thousands

Result = Mapping[str, Any]
Row = Mapping[str, Any]

_WHO = (("planner", "meta", ("planner", "assess")), ("worker", "worker", ("worker",)))
_WORST = ("counted", "reported", "unknown")
_MOST_ROWS = 20


def cost_line(result: Result) -> str:
    """Tokens of planner and workers with how they are known, and the money."""
    usage, rows = result.get("usage") or {}, list(result.get("bill") or ())
    parts = []
    for name, key, roles in _WHO:
        own = [row for row in rows if row["role"] in roles]
        parts.append(f"{name} {_tokens(usage.get(key))}{_known(own)}")
    text = ", ".join(parts) + " tokens" + ("" if rows else " (reported)")
    return text + _money(usage, rows)


def bill_lines(result: Result) -> list[str]:
    """A line for each role, model and worker run, the newest last; [] where nothing is known."""
    rows = list(result.get("bill") or ())
    left = len(rows) - _MOST_ROWS
    told = [f"and {left} older lines: agentrunner show --json"] if left > 0 else []
    return told + [_line(row) for row in rows[-_MOST_ROWS:]]


def _line(row: Row) -> str:
    who = " ".join(flat(str(row[key])) for key in ("role", "run", "model") if row[key])
    if row["candidate"] and row["role"] != "worker":
        who += f" ({flat(str(row['candidate']))})"
    calls = "calls not counted" if row["calls"] is None else count(int(row["calls"]), "call")
    tokens = int(row["input_tokens"]) + int(row["output_tokens"])
    return f"{who}: {calls}, {tokens:,} tokens{_known([row])}{_cached(row)}, {_price([row])}"


def _cached(row: Row) -> str:
    """How much of what was read came from the provider's cache, where it tells."""
    cached, read = int(row.get("cached_tokens") or 0), int(row["input_tokens"])
    if not cached or not read:
        return ""
    return f" ({min(100, round(100 * cached / read))} % of the input cached)"


def _known(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    worst = max((str(row["known"]) for row in rows), key=_WORST.index)
    if worst != "unknown":
        return f" {worst}"
    silent = sum(int(row["unknown_calls"]) for row in rows)
    return f" at least ({count(silent, 'call')} did not tell)"


def _money(usage: Mapping[str, Any], rows: Sequence[Row]) -> str:
    if rows:
        return f", {_price(rows)}"
    if usage.get("usd") is not None:
        return f", {usage['usd']:.2f} USD"
    # A price that is not known is not 0; where nothing was asked there is none.
    parts = (part for part in usage.values() if isinstance(part, Mapping))
    return ", price unknown" * any(number for part in parts for number in part.values())


def _price(rows: Sequence[Row]) -> str:
    """The money of calls that cost some, and who has a subscription: never 0 for either."""
    paid = [row for row in rows if not row["subscription"]]
    words = []
    priced = [row["usd"] for row in paid if row["usd"] is not None]
    unpriced = any(row["unpriced_calls"] for row in paid)
    if sum(priced):
        words.append(f"{'at least ' * unpriced}{sum(priced):.2f} USD")
    elif unpriced:
        words.append("price unknown")
    if len(paid) < len(rows):
        roles = dict.fromkeys(str(row["role"]) for row in rows if row["subscription"])
        whose = f"{' and '.join(roles)} " * bool(paid)
        words.append(f"{whose}in your subscription")
    return ", ".join(words) or "no cost"


def _tokens(usage: Mapping[str, Any] | None) -> str:
    counts = [(usage or {}).get(key) for key in ("input_tokens", "output_tokens")]
    known = [int(number) for number in counts if number is not None]
    return thousands(sum(known)) if known else "unknown"
