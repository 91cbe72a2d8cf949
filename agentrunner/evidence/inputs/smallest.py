"""The smallest set of changes that matters, found by trying within a time limit."""

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
    """A smallest set of `items` for which `is_red` still says yes, and whether time ran out.

    All of them together are red, as the caller has seen. `deadline` is a time of `clock`, in
    seconds; the set found so far is returned then. It is Zeller's ddmin: no single item can be
    left out of the result where the search was not cut. Each set is asked about once.
    """
    current = list(items)
    parts = 2
    asked: set[tuple[int, ...]] = set()
    places = {id(item): index for index, item in enumerate(items)}

    async def still_red(subset: Sequence[Item]) -> bool:
        key = tuple(places[id(item)] for item in subset)
        if key in asked:
            return False  # it was green, else the search had gone on with it
        asked.add(key)
        return await is_red(subset)

    while len(current) > 1:
        size = -(-len(current) // parts)
        chunks = [current[at : at + size] for at in range(0, len(current), size)]
        rests = [
            [item for other in chunks if other is not chunk for item in other] for chunk in chunks
        ]
        reduced = False
        for subset in [*chunks, *(rests if len(chunks) > 2 else ())]:
            if clock() >= deadline:
                return current, True
            if await still_red(subset):
                parts = 2 if len(subset) <= size else max(parts - 1, 2)
                current, reduced = list(subset), True
                break
        if not reduced:
            if parts >= len(current):
                break
            parts = min(len(current), parts * 2)
    return current, False
