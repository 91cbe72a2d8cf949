"""Expected data that the PRD lets change, with a part of its changes. Pure.

A test that was red is red on the old code as long as one new line of its data is not met there. A
part of the changes by which it would be green there asks less than before; it is not the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import combinations

WORD = re.compile(r"\w+|\W")
MOST = 16
"""Changes of a file that are tried."""
MOST_LINES = 5_000
MOST_KINDS = 4
"""Kinds of changes of which every set is tried: ten beside those of one."""


def single_changes(before: str, after: str) -> list[str]:
    """`before` with a part of the changes that make it `after`; [] for a single one.

    Each change by itself, and each set of kinds of changed words, where there are few kinds: a
    new column is one kind, and whatever else was changed in the same lines is another. Of many
    kinds, all but one.

    Where lines are replaced by more lines, some of them may belong to another change: each run of
    as many lines as there were is tried. Of a line, and of a replaced word, each is tried alone;
    of changes that put the same in the same's place the last one is.
    """
    one, two = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(one), len(two)) > MOST_LINES:
        return []
    kinds = {kind: text for kind, text in _each(one, two) if text not in (before, after)}
    alone = list(dict.fromkeys(reversed(kinds.values())))[:MOST]
    sets = [text for text in _sets(one, two) if text not in (before, after, *alone)]
    return [*alone, *dict.fromkeys(sets)]


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


def _sets(one: list[str], two: list[str]) -> Iterator[str]:
    """The text with sets of kinds of changes: all sets of few kinds, all but one of many."""
    pieces = list(_pieces(one, two))
    kinds = list(dict.fromkeys(piece for piece in pieces if piece[0] != piece[1]))
    if len(kinds) <= MOST_KINDS:
        sizes = range(2, len(kinds))
        chosen = (some for size in reversed(sizes) for some in combinations(kinds, size))
    else:
        chosen = (tuple(k for k in kinds if k != left) for left in kinds[:MOST])
    for some in chosen:
        yield "".join(new if (was, new) in some else was for was, new in pieces)


def _pieces(one: list[str], two: list[str]) -> Iterator[tuple[str, str]]:
    """The text in pieces: what stands there and what is put there, the same where none is."""
    for tag, a, b, c, d in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if tag == "replace" and b - a == d - c:
            for was, now in zip(one[a:b], two[c:d], strict=True):
                words, others = WORD.findall(was), WORD.findall(now)
                matcher = SequenceMatcher(None, words, others, autojunk=False)
                for _, i, j, k, m in matcher.get_opcodes():
                    # A word that is replaced and what is added behind it are two kinds.
                    middle = k + j - i if 0 < j - i < m - k else m
                    yield "".join(words[i:j]), "".join(others[k:middle])
                    yield "", "".join(others[middle:m])
        else:
            yield "".join(one[a:b]), "".join(two[c:d])


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
