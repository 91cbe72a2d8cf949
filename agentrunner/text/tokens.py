"""Estimate how much a model reads, by the text alone."""

from __future__ import annotations


def tokens(text: str) -> int:
    """Estimate the tokens of a text: one per four ASCII characters, one per other character."""
    ascii_ = len(text.encode("ascii", "ignore"))
    return ascii_ // 4 + len(text) - ascii_


def beginning(text: str, most: int) -> str:
    """Return a text of at most `most` tokens, with a mark where it is cut."""
    if tokens(text) <= most:
        return text
    low, high = 0, min(len(text), 4 * most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens(text[:middle]) <= most else (low, middle - 1)
    return f"{text[:low]}\n… (cut)\n"
