"""How much a model reads, by the text alone."""

from __future__ import annotations


def tokens(text: str) -> int:
    """About how many tokens a text has: four ASCII characters each, one for any other."""
    ascii_ = len(text.encode("ascii", "ignore"))
    return ascii_ // 4 + len(text) - ascii_
