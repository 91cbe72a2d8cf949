"""Tests whose expected texts changed just as the requirements state. Pure.

"It says "Unkown option", should be "Unknown option"" explains a test that expects the other word,
and "shows `[ ]` before each" one that expects `1. [ ] buy milk`. A list may grow by what the
product's own list grew by, and a value may be wrapped in a type that the requirements name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

from agentrunner.text.lazy_regex import lazy_regex

TOKEN = lazy_regex(r"\"[^\"\n]*\"|'[^'\n]*'|\w+|\S")
PIECE = lazy_regex(r"\\.|\w+|\s+|[^\w\s]")
"""What a text is compared by: words, blanks and single signs."""
WRAPS = lazy_regex(r"(?:[A-Z]\w*|\w+(?:::|\.)[A-Z]\w*)")
"""A name that may be a type: `Path`, `decimal.Decimal`."""
LONGEST = 400


def reworded(
    before: str,
    after: str,
    wanted: str,
    gone: Collection[str],
    come: Collection[str],
    stems: Collection[str],
) -> bool:
    """Whether a test differs by nothing but texts that changed as `wanted` states.

    `gone` and `come` are the values that the product has less and more often than before, and
    `stems` the names of files that are new, without their endings.
    """
    old, new = TOKEN.findall(before), TOKEN.findall(after)
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    open_wraps = 0
    for tag, a, b, c, d in changes:
        was, now = old[a:b], new[c:d]
        if tag == "equal":
            continue
        if tag == "replace" and len(was) == len(now):
            if not all(_exchanged(*pair, wanted, gone) for pair in zip(was, now, strict=True)):
                return False
        elif tag == "insert" and now == [")"] * len(now) and open_wraps >= len(now):
            open_wraps -= len(now)
        elif tag == "insert" and (wrapped := _wrap(now, wanted)):
            open_wraps += wrapped
        elif tag != "insert" or not _grows(now, wanted, come, stems):
            return False
    return open_wraps == 0 and any(tag != "equal" for tag, *_ in changes)


def _exchanged(was: str, now: str, wanted: str, gone: Collection[str]) -> bool:
    """Whether a text may stand in the place of another one."""
    if was == now:
        return True
    if not (_is_text(was) and _is_text(now)) or max(len(was), len(now)) > LONGEST:
        return False
    old, new = PIECE.findall(was), PIECE.findall(now)
    known = {word for value in gone for word in re.findall(r"\w+", value)}
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        lost, got = "".join(old[a:b]), "".join(new[c:d]).strip()
        explained = all(word in known or _says(wanted, word) for word in re.findall(r"\w+", lost))
        if not got or not _says(wanted, got) or not explained:
            return False
    return True


def _wrap(tokens: Sequence[str], wanted: str) -> int:
    """How many brackets a type that the requirements name opens here; 0 where it is none."""
    *name, bracket = tokens if tokens else ("", "")
    text = "".join(name)
    named = WRAPS.fullmatch(text) and _says(wanted, re.split(r"::|\.", text)[-1])
    return 1 if bracket == "(" and named else 0


def _grows(
    tokens: Sequence[str], wanted: str, come: Collection[str], stems: Collection[str]
) -> bool:
    """Whether a list got elements that the product's got, and that somebody asked for."""
    values = [one for one in tokens if one != ","]
    return (
        len(values) == len(tokens) - tokens.count(",")
        and tokens.count(",") == len(values)
        and all(
            _is_text(one)
            and one.strip("\"'") in {value.strip("\"'") for value in come}
            and (one.strip("\"'") in stems or _says(wanted, one.strip("\"'")))
            for one in values
        )
    )


def _is_text(token: str) -> bool:
    return len(token) > 1 and token[0] in "\"'"


def _says(wanted: str, text: str) -> bool:
    return bool(text) and bool(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", wanted))
