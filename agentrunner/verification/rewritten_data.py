"""Builds old texts of expected data with a part of the changes that the PRD permits. Pure.

A test that was red stays red on the old code as long as one new line of its data is not met there.
If a part of the changes makes it green on the old code, that part asks for less than before, and
is not the work.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import combinations
from typing import Any

from agentrunner.text.lazy_regex import lazy_regex

WORD = lazy_regex(r"\w+|\W")
MOST_CHANGES = 16
"""Changes of a file that are tried."""
MOST_LINES = 5_000
MOST_KINDS = 4
"""Up to so many kinds of changes every set of them is tried: ten sets beside the single kinds."""


def has_all_of(before: bytes, after: bytes) -> bool:
    """Whether all that a file of data said is there still, in its order; JSON in any layout."""
    try:
        return _holds(json.loads(before), json.loads(after))
    except (ValueError, RecursionError):
        old, new = ([line.strip() for line in text.splitlines()] for text in (before, after))
        return _in_order([line for line in old if line], new)


def _holds(before: Any, after: Any) -> bool:
    if isinstance(before, dict) and isinstance(after, dict):
        return all(key in after and _holds(before[key], after[key]) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return _in_order(before, after)
    return bool(before == after)


def _in_order(before: list[Any], after: list[Any]) -> bool:
    rest = iter(after)
    return all(any(one == other for other in rest) for one in before)


def single_changes(before: str, after: str) -> list[str]:
    """`before` with a part of the changes that make it `after`; [] where there is only one change.

    Tried are each change by itself, and each set of kinds of changed words where there are few
    kinds: a new column is one kind, and whatever else changed in the same lines is another. Of many
    kinds, all but one are tried.

    Where lines are replaced by more lines, some of these may belong to another change: each run of
    as many lines as there were is tried. Each changed line and each replaced word is tried alone.
    Of changes that replace the same text by the same text only the last one is tried.
    """
    old_lines, new_lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old_lines), len(new_lines)) > MOST_LINES:
        return []
    kinds = {
        kind: text
        for kind, text in _single_texts(old_lines, new_lines)
        if text not in (before, after)
    }
    alone = list(dict.fromkeys(reversed(kinds.values())))[:MOST_CHANGES]
    sets = [
        text
        for text in _texts_with_kinds(old_lines, new_lines)
        if text not in (before, after, *alone)
    ]
    return [*alone, *dict.fromkeys(sets)]


def _single_texts(before: list[str], after: list[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """Each single change as (old, new), with the whole text that has only this change."""
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        size = b - a
        lines = "".join(before[a:b])
        if tag == "replace":
            for start in range(c, d - size + 1) if d - c > size else ():
                new = "".join(after[start : start + size])
                yield (lines, new), "".join([*before[:a], new, *before[b:]])
            for place, (was, now) in enumerate(zip(before[a:b], after[c:d], strict=False), a):
                head, rest = "".join(before[:place]), "".join(before[place + 1 :])
                if size > 1:
                    yield (was, now), head + now + rest
                for kind, text in _words(was, now):
                    yield kind, head + text + rest
        yield (lines, "".join(after[c:d])), "".join([*before[:a], *after[c:d], *before[b:]])


def _texts_with_kinds(before: list[str], after: list[str]) -> Iterator[str]:
    """The text with sets of kinds of changes: every set of few kinds, all but one of many."""
    pieces = list(_pieces(before, after))
    kinds = list(dict.fromkeys(piece for piece in pieces if piece[0] != piece[1]))
    if len(kinds) <= MOST_KINDS:
        sizes = range(2, len(kinds))
        chosen = (
            chosen_kinds for size in reversed(sizes) for chosen_kinds in combinations(kinds, size)
        )
    else:
        chosen = (
            tuple(kind for kind in kinds if kind != omitted) for omitted in kinds[:MOST_CHANGES]
        )
    for chosen_kinds in chosen:
        yield "".join(new if (was, new) in chosen_kinds else was for was, new in pieces)


def _pieces(before: list[str], after: list[str]) -> Iterator[tuple[str, str]]:
    """The text in pieces (old, new); both are equal where nothing changed."""
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "replace" and b - a == d - c:
            for was, now in zip(before[a:b], after[c:d], strict=True):
                old_words, new_words = WORD.findall(was), WORD.findall(now)
                matcher = SequenceMatcher(None, old_words, new_words, autojunk=False)
                for _, i, j, k, m in matcher.get_opcodes():
                    # A replaced word and what is added behind it are two kinds.
                    middle = k + j - i if 0 < j - i < m - k else m
                    yield "".join(old_words[i:j]), "".join(new_words[k:middle])
                    yield "", "".join(new_words[middle:m])
        else:
            yield "".join(before[a:b]), "".join(after[c:d])


def _words(was: str, now: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Each changed word of a line as (old, new), with the line that has only this change."""
    before, after = WORD.findall(was), WORD.findall(now)
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        size = b - a
        for start in range(c, d - size + 1) if 0 < size < d - c else ():
            new = "".join(after[start : start + size])
            yield ("".join(before[a:b]), new), "".join([*before[:a], new, *before[b:]])
        new = "".join(after[c:d])
        yield ("".join(before[a:b]), new), "".join([*before[:a], new, *before[b:]])
