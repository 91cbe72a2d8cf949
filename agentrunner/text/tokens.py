"""Estimate how much a model reads, by the text alone."""

from __future__ import annotations


def tokens(text: str) -> int:
    """Estimate the tokens of a text: one per four ASCII characters, one per other character."""
    ascii_ = len(text.encode("ascii", "ignore"))
    return ascii_ // 4 + len(text) - ascii_
