"""Expected data that the PRD lets change, with one of its changes alone. Pure.

A test that was red is red on the old code as long as one new line of its data is not met there. A
change by which it would be green there asks less than before; it is not the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

WORD = re.compile(r"\w+|\W")
MOST = 16
"""Changes of a file that are tried."""
MOST_LINES = 5_000


def single_changes(before: str, after: str) -> list[str]:
    """`before` with each of the changes that make it `after`, by itself; [] for a single one.

    Where lines are replaced by more lines, some of them may belong to another change: each run of
    as many lines as there were is tried. Of a line, and of a replaced word, each is tried alone;
    of changes that put the same in the same's place the last one is.
    """
    one, two = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(one), len(two)) > MOST_LINES:
        return []
    kinds = {kind: text for kind, text in _each(one, two) if text not in (before, after)}
    return list(dict.fromkeys(reversed(kinds.values())))[:MOST]


def _each(one: list[str], two: list[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """What is replaced and by what, and the whole text with that alone."""
    for tag, a, b, c, d in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        size = b - a
        lines = "".join(one[a:b])
        if tag == "replace":
            for at in range(c, d - size + 1) if d - c > size else ():
                new = "".join(two[at : at + size])
                yield (lines, new), "".join([*one[:a], new, *one[b:]])
            for place, (was, now) in enumerate(zip(one[a:b], two[c:d], strict=False), a):
                head, rest = "".join(one[:place]), "".join(one[place + 1 :])
                if size > 1:
                    yield (was, now), head + now + rest
                for kind, text in _words(was, now):
                    yield kind, head + text + rest
        yield (lines, "".join(two[c:d])), "".join([*one[:a], *two[c:d], *one[b:]])


def _words(was: str, now: str) -> Iterator[tuple[tuple[str, str], str]]:
    """A line with each of its changed words alone."""
    one, two = WORD.findall(was), WORD.findall(now)
    for tag, a, b, c, d in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        size = b - a
        for at in range(c, d - size + 1) if 0 < size < d - c else ():
            new = "".join(two[at : at + size])
            yield ("".join(one[a:b]), new), "".join([*one[:a], new, *one[b:]])
        new = "".join(two[c:d])
        yield ("".join(one[a:b]), new), "".join([*one[:a], new, *one[b:]])
