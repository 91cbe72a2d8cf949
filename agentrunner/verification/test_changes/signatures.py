"""Tests that only hand over, or take, what functions take now. Pure.

A double has to take what the interface takes now, and a call has to hand it over. Nothing else may
differ: what is added stands between the brackets of a function whose parameters the work changed,
and the requirements speak of what it takes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.imports import without_imports
from agentrunner.verification.test_changes.renamed_names import NAME

CODE_TOKEN = lazy_regex(
    r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|\d[\w.]*|[^\W\d]\w*|\S", re.DOTALL
)
HEAD = lazy_regex(r"(?<![\w.])([A-Za-z_]\w*)[ \t]*\(((?:[^()]|\([^()]*\)){0,2000})\)")
"""A name with what is between its brackets, which may hold functions as parameters."""
NO_HEADS = frozenset(
    "if for while switch catch return assert elif and or not in match with".split()
)
"""Words before brackets that are no function."""
LARGEST = 4_000
"""Tokens of a file that are compared."""


def changed_heads(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, set[str]]:
    """Functions that take more than before in changed files, and the names of what is more.

    `pairs` are the texts of files before and after. A class takes what makes it takes.
    """
    found: dict[str, set[str]] = {}
    for before, after in pairs:
        was, now = _heads(before), _heads(after)
        for name in was.keys() & now.keys():
            for one in now[name] - was[name]:
                if one and not any(
                    set(NAME.findall(one)) <= set(NAME.findall(o)) for o in was[name]
                ):
                    known = {word for other in was[name] for word in NAME.findall(other)}
                    found.setdefault(name, set()).update(set(NAME.findall(one)) - known)
    for name in ("__init__", "constructor", "new", "initialize", "__construct"):
        if name in found:
            for _, after in pairs:
                for made in re.findall(r"\bclass\s+(\w+)", after.decode("utf-8", "replace")):
                    found.setdefault(made, set()).update(found[name])
    return found


def follows_heads(
    before: bytes, after: bytes, language: str, heads: dict[str, set[str]], asked: str
) -> bool:
    """Whether a file differs by what functions with other heads take now, and by imports alone.

    Tests that are added at its end count as nothing. `asked` has to speak of what is taken.
    """
    words = {word.casefold() for word in NAME.findall(asked)}
    spoken = {name for name, more in heads.items() if {one.casefold() for one in more} & words}
    if not spoken:
        return False
    bare = ((without_imports(text, language), text) for text in (before, after))
    old, new = (
        CODE_TOKEN.findall((rest if rest is not None else text).decode("utf-8", "replace"))
        for rest, text in bare
    )
    if max(len(old), len(new)) > LARGEST:
        return False
    changed = False
    for tag, a, _b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if tag == "insert" and a == len(old):
            continue  # tests that are added
        if tag != "insert" or not _is_argument(new, c, d) or not _between_brackets(new, c, spoken):
            return False
        changed = True
    return changed


def _heads(text: bytes) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for hit in HEAD.finditer(text.decode("utf-8", "replace")):
        if hit[1] in NO_HEADS:
            continue
        found.setdefault(hit[1], set()).add(" ".join(hit[2].split()))
    return found


def _is_argument(tokens: list[str], start: int, end: int) -> bool:
    """Whether these tokens are whole arguments, between commas and brackets."""
    own = tokens[start:end]
    begins = tokens[start - 1] in "(" or own[0] == ","
    ends = own[-1] == "," or tokens[end : end + 1] in ([")"], [","])
    return start > 0 and begins and ends and not set(own) & {";", "{", "}"}


def _between_brackets(tokens: list[str], at: int, names: Collection[str]) -> bool:
    """Whether a place is inside of the brackets that follow one of these names."""
    depth = 0
    for index in range(at - 1, max(at - 200, -1), -1):
        if depth == 0 and tokens[index] in "{[;":
            return False
        if tokens[index] == ")":
            depth += 1
        elif tokens[index] == "(":
            if depth == 0:
                return index > 0 and tokens[index - 1] in names
            depth -= 1
    return False
