"""Which known name a person meant who made a slip; none is better than a far one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def is_slip(word: str, name: str) -> bool:
    """Whether two words differ as a slip of the finger leaves them; dashes before them apart.

    One letter is missing, too many, another, or has changed places with its neighbour; of eight
    letters on two may, of twelve three. Words of two letters have no slips.
    """
    word, name = word.lstrip("-").casefold(), name.lstrip("-").casefold()
    most = 0 if len(word) < 3 else max(1, len(word) // 4)
    return abs(len(word) - len(name)) <= most and _slips(word, name) <= most


def slip_of(word: str, names: Iterable[str]) -> str:
    """Return the name of which a word is a slip, the nearest and then the first; "" for none."""
    near = [name for name in names if is_slip(word, name)]
    return min(near, key=lambda name: _slips(word, name), default="")


def likest(word: str, names: Iterable[str]) -> str:
    """Return the name that a word is a slip of, or begins, or that has the same words and more.

    `codexx` is `codex-cli`, and `criteria` is `acceptance_criteria`. "" where there is none.
    """
    known = list(names)
    if slip := slip_of(word, known):
        return slip
    plain = word.lstrip("-")
    begun = [name for name in known if len(plain) > 2 and name.lstrip("-").startswith(plain)]
    parts = _parts(word)
    shared = [
        name for name in known if _within(parts, _parts(name)) or _within(_parts(name), parts)
    ]
    return min(begun or shared, key=len, default="")


def _parts(word: str) -> list[str]:
    return [part for part in re.split(r"[-_./ ]+", word.casefold()) if part]


def _within(few: Sequence[str], more: Sequence[str]) -> bool:
    """Whether words stand one after the other among others, slips apart."""
    if max(map(len, few), default=0) < 3:
        return False
    return any(all(map(_is_part, few, more[at:])) for at in range(len(more) - len(few) + 1))


def _is_part(one: str, other: str) -> bool:
    return one == other or (max(len(one), len(other)) > 4 and is_slip(one, other))


def _slips(one: str, other: str) -> int:
    """Return how many letters are dropped, added, exchanged or in another order."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        above, last, before, row = row, before, row, [i]
        for j, wanted in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != wanted)))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                row[-1] = min(row[-1], last[j - 2] + 1)
    return row[-1]
