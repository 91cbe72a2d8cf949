"""Find the smallest set of changes that matters, by trial within a time limit."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


async def smallest(
    items: Sequence[Item],
    is_red: Callable[[Sequence[Item]], Awaitable[bool]],
    deadline: float,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Item], bool]:
    """Return a smallest set of `items` for which `is_red` is still true, and whether time ran out.

    All items together are red, as the caller has checked. `deadline` is a time of `clock`, in
    seconds; when it is reached, the set found so far is returned. The algorithm is Zeller's ddmin:
    unless the search was cut short, no single item can be left out of the result. Each set is tried
    only once.
    """
    current = list(range(len(items)))
    parts = 2
    asked: set[tuple[int, ...]] = set()

    async def still_red(subset: Sequence[int]) -> bool:
        if tuple(subset) in asked:
            return False  # it was green, otherwise the search would have continued with it
        asked.add(tuple(subset))
        return await is_red([items[index] for index in subset])

    while len(current) > 1:
        size = -(-len(current) // parts)
        chunks = [current[at : at + size] for at in range(0, len(current), size)]
        rests = [[one for one in current if one not in chunk] for chunk in chunks]
        reduced = False
        for subset in [*chunks, *(rests if len(chunks) > 2 else ())]:
            if clock() >= deadline:
                return [items[index] for index in current], True
            if await still_red(subset):
                parts = 2 if len(subset) <= size else max(parts - 1, 2)
                current, reduced = subset, True
                break
        if not reduced:
            if parts >= len(current):
                break
            parts = min(len(current), parts * 2)
    return [items[index] for index in current], False
