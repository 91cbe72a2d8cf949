"""Expected data that the PRD lets change, with one of its changes alone. Pure.

A test that was red is red on the old code as long as one new line of its data is not met there. A
change by which it would be green there asks less than before; it is not the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

MOST = 12
"""Changes of a file that are tried."""
MOST_LINES = 5_000


def single_changes(before: str, after: str) -> list[str]:
    """`before` with each of the changes that make it `after`, by itself; [] for a single one.

    Where lines are replaced by more lines, some of them may belong to another change: each run of
    as many lines as there were is tried.
    """
    one, two = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(one), len(two)) > MOST_LINES:
        return []
    made = list(dict.fromkeys(_each(one, two)))
    return [text for text in made if text != after][:MOST]


def _each(one: list[str], two: list[str]) -> Iterator[str]:
    for tag, a, b, c, d in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        size = b - a
        places = range(c, d - size + 1) if tag == "replace" and d - c > size else ()
        for at in places:
            yield "".join([*one[:a], *two[at : at + size], *one[b:]])
        yield "".join([*one[:a], *two[c:d], *one[b:]])
