"""Tests whose expected texts changed just as the requirements state. Pure.

"It says "Unkown option", should be "Unknown option"" explains a test that expects the other word,
and "shows `[ ]` before each" one that expects `1. [ ] buy milk`. A list may grow by what the
product's own list grew by, and a value may be wrapped in a type that the requirements name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import has_word
from agentrunner.verification.test_changes.adapted_values import WantedValues

TOKEN = lazy_regex(r"\"[^\"\n]*\"|'[^'\n]*'|\w+|\S")
PIECE = lazy_regex(r"\\.|\w+|\s+|[^\w\s]")
"""What a text is compared by: words, blanks and single signs."""
WRAPS = lazy_regex(r"(?:[A-Z]\w*|\w+(?:::|\.)[A-Z]\w*)")
"""A name that may be a type: `Path`, `decimal.Decimal`."""
LONGEST = 400


def reworded(before: str, after: str, wanted: WantedValues) -> bool:
    """Whether a test differs by nothing but texts that changed as `wanted` states."""
    old, new = TOKEN.findall(before), TOKEN.findall(after)
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    open_wraps = 0
    for tag, a, b, c, d in changes:
        was, now = old[a:b], new[c:d]
        if tag == "equal":
            continue
        if tag == "replace" and len(was) == len(now):
            if not all(_exchanged(*pair, wanted) for pair in zip(was, now, strict=True)):
                return False
        elif tag == "insert" and now == [")"] * len(now) and open_wraps >= len(now):
            open_wraps -= len(now)
        elif tag == "insert" and (wrapped := _wrap(now, wanted.text)):
            open_wraps += wrapped
        elif tag != "insert" or not _grows(now, wanted):
            return False
    return open_wraps == 0 and any(tag != "equal" for tag, *_ in changes)


def _exchanged(was: str, now: str, wanted: WantedValues) -> bool:
    """Whether a text may stand in the place of another one."""
    if was == now:
        return True
    if not (_is_text(was) and _is_text(now)) or max(len(was), len(now)) > LONGEST:
        return False
    old, new = PIECE.findall(was), PIECE.findall(now)
    known = {word for value in wanted.gone for word in re.findall(r"\w+", value)}
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        lost, got = "".join(old[a:b]), "".join(new[c:d]).strip()
        words = re.findall(r"\w+", lost)
        explained = all(word in known or _says(wanted.text, word) for word in words)
        if not got or not _says(wanted.text, got) or not explained:
            return False
    return True


def _wrap(tokens: Sequence[str], wanted: str) -> int:
    """How many brackets a type that the requirements name opens here; 0 where it is none."""
    *name, bracket = tokens if tokens else ("", "")
    text = "".join(name)
    named = WRAPS.fullmatch(text) and _says(wanted, re.split(r"::|\.", text)[-1])
    return 1 if bracket == "(" and named else 0


def _grows(tokens: Sequence[str], wanted: WantedValues) -> bool:
    """Whether a list got elements that the product's got, and that somebody asked for."""
    values = [one.strip("\"'") for one in tokens if _is_text(one)]
    come = {value.strip("\"'") for value in wanted.come}
    return tokens.count(",") == len(values) == len(tokens) / 2 and all(
        one in come and (one in wanted.stems or _says(wanted.text, one)) for one in values
    )


def _is_text(token: str) -> bool:
    return len(token) > 1 and token[0] in "\"'"


def _says(wanted: str, text: str) -> bool:
    return bool(text) and has_word(text, wanted)
