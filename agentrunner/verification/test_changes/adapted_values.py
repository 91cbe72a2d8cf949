"""Values in tests that follow the work without being stated one by one. Pure.

"Greetings end with an exclamation mark" states no greeting. Where the product's own text lost its
full stop, and nothing else of what the test expects has changed, the test follows the product. A
value may be handed over under another name, as the requirements say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import has_word

GAP = lazy_regex(
    r"\$\{[^{}]*\}|#\{[^{}]*\}|\{[^{}]*\}|%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]|\\\([^()]*\)|\$\w+"
)
"""Where a text of the product gets a value: `{name}`, `%d`, `${total}`, `#{x}`."""
WORD = lazy_regex(r"[^\W\d_]+")
LONGEST = 200
"""So many characters of a text are compared."""
MOST_GAPS = 3
MOST_TEXTS = 200


class WantedValues(Struct, frozen=True):
    """What people ask for, and what the product has otherwise than before."""

    text: str
    gone: Collection[str] = ()
    """Values that it has less often, which explain why rows of tests with them went."""
    come: Collection[str] = ()
    """Values that it has more often."""
    stems: Collection[str] = ()
    """The names of its new files, without their endings."""


def follows_a_text(was: str, now: str, wanted: WantedValues) -> bool:
    """Whether a value follows a text that the product gave up for another one.

    What the product puts into the text has to be the same in both, and the new text may have no
    word that the old one and what is wanted lack.
    """
    before, after = was.strip("\"'`"), now.strip("\"'`")
    if max(len(before), len(after)) > LONGEST:
        return False
    filled_before = [
        (text, parts)
        for text in [*wanted.gone][:MOST_TEXTS]
        if (parts := _filling(text, before)) is not None
    ]
    if not filled_before:
        return False
    known = {word.casefold() for word in WORD.findall(wanted.text)}
    for text in [*wanted.come][:MOST_TEXTS]:
        parts = _filling(text, after)
        if parts is None:
            continue
        words = {word.casefold() for word in WORD.findall(GAP.sub(" ", text))}
        for other, same in filled_before:
            own = {word.casefold() for word in WORD.findall(GAP.sub(" ", other))}
            if Counter(parts) == Counter(same) and words <= known | own:
                return True
    return False


def _filling(text: str, value: str) -> list[str] | None:
    """What a value has in the gaps of a text; None where it is not made of that text."""
    bare = text.strip("\"'`")
    pieces = GAP.split(bare)
    touching = any(not one for one in pieces[1:-1])
    if len(bare) > LONGEST or len(pieces) - 1 > MOST_GAPS or touching:
        return None
    if len(pieces) < 2 or not any(WORD.search(one) or one.strip() for one in pieces):
        return None
    pattern = "(.+?)".join(re.escape(one) for one in pieces)
    hit = re.fullmatch(pattern, value, re.DOTALL)
    return list(hit.groups()) if hit else None


def renamed_arguments(
    before: list[str], after: list[str], wanted: str
) -> tuple[Counter[str], Counter[str]]:
    """Values handed over under another name, as `wanted` names both: those before, those now.

    `before` and `after` are the tokens of a test: `timeout_ms=500` may become `timeout=0.5`.
    """
    lost, got = Counter[str](), Counter[str]()
    if len(before) != len(after):
        return lost, got
    for at in range(2, len(before)):
        was, now = before[at - 2], after[at - 2]
        named = has_word(was, wanted) and has_word(now, wanted)
        if before[at - 1] in ("=", ":") and was != now and before[at] != after[at] and named:
            lost[before[at]] += 1
            got[after[at]] += 1
    return lost, got
