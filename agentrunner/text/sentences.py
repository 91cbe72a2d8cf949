"""Where a sentence ends and the next one begins, in English and Japanese. Pure.

It ends at a full stop with a blank behind it, at 。 and before an empty line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from agentrunner.text.lazy_regex import lazy_regex


def sentences(
    text: str, *, points: bool = True, semicolons: bool = False, brackets: bool = False
) -> list[str]:
    """The sentences of a text, without blank ones.

    With `points`, each point of a list and each heading stands by itself; without, a list belongs
    to the sentence before it. With `semicolons`, these end a sentence as well, and with `brackets`
    what stands in round ones is a sentence of its own.
    """
    ends = _ends(points=points, semicolons=semicolons, brackets=brackets)
    return [one for one in ends.split(text) if one.strip()]


def with_gaps(text: str) -> list[str]:
    """The sentences of a text and, after each but the last, what sets it apart from the next.

    Joined, they are the text.
    """
    return re.split(f"({_ends().pattern})", text)


def sentence_before(text: str, place: int, most: int) -> str:
    """What stands before a place in its own sentence, `most` characters of it at the most.

    A semicolon ends a sentence here.
    """
    return _ends(semicolons=True).split(text[max(place - most, 0) : place])[-1]


def sentence_behind(text: str, place: int, most: int) -> str:
    """What stands from a place on in its own sentence, as `sentence_before` does."""
    return _ends(semicolons=True).split(text[place : place + most])[0]


@cache
def _ends(
    *, points: bool = True, semicolons: bool = False, brackets: bool = False
) -> re.Pattern[str]:
    parts = [
        rf"(?<=[.!?{';' if semicolons else ''}])\s+",
        r"(?<=。)\s*",
        r"\n\s*\n",
        *([r"\n\s*(?=(?:[-*+]|#+|\d+[.)])\s)"] if points else []),
        *([r"(?=\()|(?<=\))"] if brackets else []),
    ]
    return re.compile("|".join(parts))


STANDS_FIRST = lazy_regex(r"(?:Nothing|The|This|There|No|It|A)\b")


def ended(text: str) -> str:
    """The text as a sentence: with one full stop, where nothing else ends it."""
    return text if text.endswith((".", "!", "?", "…", "。")) else f"{text}."


def in_a_row(texts: Sequence[str]) -> str:
    """Sentences and phrases as one, with semicolons in place of the full stops between them."""
    return "; ".join([*(one.removesuffix(".") for one in texts[:-1]), *texts[-1:]])


def within(text: str) -> str:
    """A sentence as a part of another: the small words that may begin one are not capital."""
    return text[:1].lower() + text[1:] if STANDS_FIRST.match(text) else text
