"""Functions of two trees that are the same one, also under another name or in another file.

What a file does beside its functions is one more part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.refusals import bodies_of
from agentrunner.verification.syntax.tokens import lexical_family

STATUS_ALONE = lazy_regex(
    rb"(?m)^(?![ \t]*[\w$.>:-]+ ?\([ \t]*4\d\d\b[^\n]*\)[ \t]*;?$).*\b4\d\d\b.*$"
)
"""A line with a number, there, that is no call with it as the first argument: data, as a rule."""
MOST_COMPARED = 1000
"""New functions that one which is gone is compared with."""
SHORTEST = 4
"""Characters of a line that tells a function from others."""


class Part(Struct, frozen=True):
    """A function, or what a file does beside its functions."""

    path: str
    name: str
    start: int
    text: bytes
    own: bytes
    """Its text, of a file with blanks in place of functions."""


def same_functions(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    known: Mapping[str, Mapping[str, tuple[int, bytes]]],
) -> Iterator[tuple[Part, Part]]:
    """Yield what stands in both, or stands under another name or in another file now."""
    old, new = (
        {(one.path, one.name): one for path, text in each.items() for one in _parts(path, text)}
        for each in (before, after)
    )
    fresh = {
        one: _lines(one.text) for key, one in new.items() if key not in old and one.name != one.path
    }
    for key, one in old.items():
        if key in new:
            yield one, new[key]
        elif one.name != one.path and (other := _successor(one, fresh)):
            yield one, other


def _successor(old: Part, fresh: Mapping[Part, set[bytes]]) -> Part | None:
    """Which of the new functions has the name of one that is gone, or most of its lines."""
    same = [one for one in fresh if one.name == old.name]
    lines = _lines(old.text)
    shared = {one: len(fresh[one] & lines) for one in [*fresh][:MOST_COMPARED]}
    best = max(shared, key=shared.__getitem__, default=None)
    alike = best is not None and 2 * shared[best] >= len(lines)
    return same[0] if len(same) == 1 else best if alike else None


def _lines(text: bytes) -> set[bytes]:
    return {one.strip() for one in text.split(b"\n")[1:] if len(one.strip()) >= SHORTEST}


def _parts(path: str, source: bytes) -> Iterator[Part]:
    bodies = bodies_of(path, source)
    for name, (start, body) in bodies.items():
        yield Part(path, name, start, body, body)
    placed = path not in bodies and all(at >= 0 for at, _ in bodies.values())
    if placed and lexical_family(path, source) is not None:
        own = bytearray(source)
        for start, body in bodies.values():
            own[start : start + len(body)] = re.sub(rb"[^\n]", b" ", body)
        text = STATUS_ALONE.sub(lambda hit: re.sub(rb"\d", b" ", hit[0]), bytes(own))
        yield Part(path, path, 0, source, text)
