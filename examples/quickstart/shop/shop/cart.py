"""What a customer buys, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shop.money import show


@dataclass(frozen=True)
class Line:
    """So many pieces of one thing, at a price in cents each."""

    name: str
    price: int
    pieces: int = 1


def total(lines: Iterable[Line]) -> int:
    """What all of it costs, in cents."""
    return sum(line.price for line in lines)


def receipt(lines: Iterable[Line]) -> str:
    """One line each, and the total."""
    bought = list(lines)
    rows = [f"{line.pieces} x {line.name} {show(line.price)}" for line in bought]
    return "\n".join([*rows, f"total {show(total(bought))}"])
