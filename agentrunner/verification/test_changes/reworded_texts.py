"""Texts that tests expect, where they were reworded as the product's own texts were. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import has_word

GAP = lazy_regex(
    r"\$\{[^{}]*\}|#\{[^{}]*\}|\{[^{}]*\}|%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]|\\\([^()]*\)|\$\w+"
)
"""Where a text of the product gets a value: `{name}`, `%d`, `${total}`, `#{x}`."""
LETTERS = lazy_regex(r"[^\W\d_]+")
LONGEST_TEXT = 200
"""So many characters of a text are compared."""
MOST_GAPS = 3
ALIKE = 0.6
"""How much two texts have in common that say one thing."""
MOST_TEXTS = 200
WORD_OR_TEXT = lazy_regex(r"\"[^\"\n]*\"|'[^'\n]*'|\w+|\S")
PIECE = lazy_regex(r"\\.|\w+|\s+|[^\w\s]")
"""What a text is compared by: words, blanks and single signs."""
WRAPS = lazy_regex(r"(?:[A-Z]\w*|\w+(?:::|\.)[A-Z]\w*)")
"""A name that may be a type: `Path`, `decimal.Decimal`."""
LONGEST = 400
QUOTED = lazy_regex(r"`([^`\n]{3,80})`|[\"“']([^\"“”`'\n]{3,80})[\"”']")


class WantedValues(Struct, frozen=True):
    """What people ask for, and what the product has otherwise than before.

    "Greetings end with an exclamation mark" states no greeting. Where the product's own text lost
    its full stop, and nothing else of what the test expects has changed, the test follows the
    product. A value may be handed over under another name, as the requirements say.
    """

    text: str
    gone: Collection[str] = ()
    """Values that it has less often, which explain why rows of tests with them went."""
    come: Collection[str] = ()
    """Values that it has more often."""
    stems: Collection[str] = ()
    """The names of its new files, without their endings."""


def reworded(before: str, after: str, wanted: WantedValues) -> bool:
    """Whether a test differs by nothing but texts that changed as `wanted` states.

    "It says "Unkown option", should be "Unknown option"" explains a test that expects the other
    word, and "shows `[ ]` before each" one that expects `1. [ ] buy milk`. A list may grow by what
    the product's own list grew by, and a value may be wrapped in a type that the requirements name.
    """
    old, new = WORD_OR_TEXT.findall(before), WORD_OR_TEXT.findall(after)
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
    if _is_stated_otherwise(now.strip("\"'`"), re.findall(r"\d+", now), wanted.text):
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


def follows_a_text(was: str, now: str, wanted: WantedValues) -> bool:
    """Whether a value follows a text that the product gave up for another one.

    What the product puts into the text has to be the same in both, and the new text may have no
    word that the old one and what is wanted lack.
    """
    before, after = was.strip("\"'`"), now.strip("\"'`")
    if max(len(before), len(after)) > LONGEST_TEXT:
        return False
    filled_before = [
        (text, parts)
        for text in [*wanted.gone][:MOST_TEXTS]
        if (parts := _filling(text, before)) is not None
    ]
    if not filled_before:
        return False
    known = {word.casefold() for word in LETTERS.findall(wanted.text)}
    for text in [*wanted.come][:MOST_TEXTS]:
        parts = _filling(text, after)
        if parts is None or _is_stated_otherwise(after, parts, wanted.text):
            continue
        words = {word.casefold() for word in LETTERS.findall(GAP.sub(" ", text))}
        for other, same in filled_before:
            own = {word.casefold() for word in LETTERS.findall(GAP.sub(" ", other))}
            if Counter(parts) == Counter(same) and words <= known | own:
                return True
    return False


def _is_stated_otherwise(value: str, parts: Sequence[str], wanted: str) -> bool:
    """Whether people state another text with the same in its gaps: "1 file found" and no "1 files
    found"."""
    stated = {"".join(one) for one in QUOTED.findall(wanted)} if parts else set()
    return not any(one in value for one in stated) and any(
        all(has_word(part, one) for part in parts)
        and SequenceMatcher(None, one, value).ratio() > ALIKE
        for one in stated
    )


def _filling(text: str, value: str) -> list[str] | None:
    """What a value has in the gaps of a text; None where it is not made of that text."""
    bare = text.strip("\"'`")
    pieces = GAP.split(bare)
    touching = any(not one for one in pieces[1:-1])
    if len(bare) > LONGEST_TEXT or len(pieces) - 1 > MOST_GAPS or touching:
        return None
    if len(pieces) < 2 or not any(LETTERS.search(one) or one.strip() for one in pieces):
        return None
    pattern = "(.+?)".join(re.escape(one) for one in pieces)
    hit = re.fullmatch(pattern, value, re.DOTALL)
    return list(hit.groups()) if hit else None
