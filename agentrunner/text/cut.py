"""Texts that are cut where they are too long."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.text.lazy_regex import lazy_regex


def cut(text: str, most: int) -> str:
    """Return at most `most` characters; where the text was cut, the last one is `…`."""
    return text if len(text) <= most else text[: most - 1] + "…"


def some_of(names: Sequence[str], most: int, total: int = 0, between: str = ", ") -> str:
    """Return the first names, at most `most`, and how many more there are; of `total`, if more."""
    more = max(len(names), total) - len(names[:most])
    return between.join(names[:most]) + f" and {more} more" * (more > 0)


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


_TELLING = (
    lazy_regex(r"(?m)^.*\b\w*(?:Error|Exception)\b: .*$"),
    lazy_regex(r"(?m)^\S+:\d+:in [`']\S+': (.* \([A-Z][\w:]*\))$"),
    lazy_regex(
        r"(?im)^[^\w\n]*(?:error|fatal|fail(?:ed|ure)?)\b.*$"
        r"|^.*(?:not found|no such|cannot |can't locate |could not |unable to |failed to ).*$"
    ),
)
"""Words of an exception (the second pattern is Ruby's) say more than those of a wrapper."""


def telling_line(output: str, most: int) -> str:
    """Return the line that explains best why a command failed; by default the last line."""
    end = output[-20_000:]
    found = (pattern.search(end) for pattern in _TELLING)
    hits = [hit[hit.lastindex or 0] for hit in found if hit]
    lines = hits or output.strip().splitlines()[-1:]
    return cut(lines[0].strip(), most) if lines else ""
