"""Texts that are cut where they are too long."""

from __future__ import annotations


def cut(text: str, most: int) -> str:
    """Return at most `most` characters; where the text was cut, the last one is `…`."""
    return text if len(text) <= most else text[: most - 1] + "…"
