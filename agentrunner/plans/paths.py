"""Files that a task may change, as a planner names them: paths, folders and patterns. Pure.

What is no file for sure counts as one that may be: two tasks that wait for each other in vain lose
time, two that change one file at once lose work.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

_CHOICE = re.compile(r"\{[^{}]*\}")
_MAGIC = re.compile(r"[*?\[]")
_ANY = "**"


def normal(path: str) -> str:
    """One spelling for each place: no `./`, `//`, `..` or slash at an end; "" for no place.

    Case does not count, as on some machines it makes no other file; of `{a,b}` any text is one.
    """
    path = _CHOICE.sub("*", path.strip().replace("\\", "/")).casefold()
    return posixpath.normpath(path.lstrip("/") or ".") if path else ""


def is_pattern(path: str) -> bool:
    """Whether a normal path may stand for several; also `[id]`, which some folders are called."""
    return bool(_MAGIC.search(path))


def meet(one: str, other: str) -> bool:
    """Whether two normal paths may be about the same file: one is in the other, or both match one.

    `**` is any number of folders, and what a path or pattern names may be a folder with all in it.
    """
    if "." in (one, other):
        return True
    return _meet(tuple(one.split("/")), tuple(other.split("/")))


@lru_cache(maxsize=4096)
def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """By parts, from the last to the first: `after` is for what follows the part of `one`."""
    after = [*(_holds(one, other[there:]) for there in range(len(other))), True]
    for here in reversed(range(len(one))):
        now = [*[False] * len(other), _holds(other, one[here:])]
        for there in reversed(range(len(other))):
            if _ANY in (one[here], other[there]):
                now[there] = after[there] or now[there + 1]
            else:
                now[there] = _alike(one[here], other[there]) and after[there + 1]
        after = now
    return after[0]


def _holds(path: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether a path is a folder that has the rest of the other one in it.

    `README.md` is none in which `**/*.py` could find something.
    """
    a_file = bool(posixpath.splitext(path[-1])[1])
    return not (a_file and rest[0] == _ANY) or set(rest) == {_ANY}


def _alike(one: str, other: str) -> bool:
    """Whether a name may be both; of two patterns, by what they begin and end with."""
    if one == other or fnmatchcase(one, other) or fnmatchcase(other, one):
        return True
    if not (is_pattern(one) and is_pattern(other)):
        return False
    return all(
        mine.startswith(yours) or yours.startswith(mine)
        for mine, yours in (
            (_MAGIC.split(one)[0], _MAGIC.split(other)[0]),
            (_last(one)[::-1], _last(other)[::-1]),
        )
    )


def _last(pattern: str) -> str:
    """What it ends with for sure; a set of characters may be the last of it."""
    return re.split(r"[*?\]]", pattern)[-1]
