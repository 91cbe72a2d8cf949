"""Texts that are cut where they are too long."""

from __future__ import annotations

from collections.abc import Sequence


def cut(text: str, most: int) -> str:
    """Return at most `most` characters; where the text was cut, the last one is `…`."""
    return text if len(text) <= most else text[: most - 1] + "…"


def some_of(names: Sequence[str], most: int, total: int = 0, between: str = ", ") -> str:
    """Return the first names, at most `most`, and how many more there are; of `total`, if more."""
    more = max(len(names), total) - len(names[:most])
    return between.join(names[:most]) + f" and {more} more" * (more > 0)
