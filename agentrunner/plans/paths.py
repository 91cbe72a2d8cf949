"""Files that a task may change, as a planner names them: paths, folders and patterns. Pure.

In doubt two names count as the same file: two tasks that wait for each other needlessly lose time,
two that change one file at once lose work.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from agentrunner.text.lazy_regex import lazy_regex

_CHOICE = lazy_regex(r"\{[^{}]*\}")
_MAGIC = lazy_regex(r"[*?\[]")
_ANY = "**"


def normal(path: str) -> str:
    """Return one spelling for each path: no `./`, `//`, `..` or trailing slash; "" for no path.

    Case is ignored, as some file systems do; for `{a,b}` any text counts as one of them.
    """
    path = _CHOICE.sub("*", path.strip().replace("\\", "/")).casefold()
    return posixpath.normpath(path.lstrip("/") or ".") if path else ""


def is_pattern(path: str) -> bool:
    """Whether a normal path may match several; also `[id]`, which is the name of some folders."""
    return bool(_MAGIC.search(path))


def meet(one: str, other: str) -> bool:
    """Whether two normal paths may mean the same file: one is in the other, or both match one.

    `**` is any number of folders, and what a path or pattern names may be a folder with all in it.
    """
    if "." in (one, other):
        return True
    return _meet(tuple(one.split("/")), tuple(other.split("/")))


@lru_cache(maxsize=4096)
def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Compare by parts, last to first: `after` has the results one part further in `one`."""
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
    """Whether a path is a folder that may contain the rest of the other one.

    `README.md` is not a folder in which `**/*.py` could find something.
    """
    is_file = bool(posixpath.splitext(path[-1])[1])
    return not (is_file and rest[0] == _ANY) or set(rest) == {_ANY}


def _alike(one: str, other: str) -> bool:
    """Whether a name may match both; of two patterns, judged by beginning and end."""
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
    """Return the certain end of a pattern; a set of characters may be the last part of it."""
    return re.split(r"[*?\]]", pattern)[-1]
