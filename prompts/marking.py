"""Markers around text that we did not write, so that it cannot pose as ours.

The number in a marker is a keyed hash (with the run's salt) of the block's kind, id and exact
bytes. So the same block has the same number in every call of a run, which lets prompts begin alike.
Repository and worker cannot guess it, and a leaked number closes no other text.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable

from agentrunner.text.lazy_regex import lazy_regex

_MARKER = lazy_regex(r"\[(\s*)\[(?=\s*(?:BEGIN|END)\b)", re.IGNORECASE)
_WHOLE = lazy_regex(r"\[\s*\[\s*(?:BEGIN|END)\s+\w+\s+[0-9a-f]{16}\s*\]\s*\]", re.IGNORECASE)
_NUMBER_LIKE = lazy_regex(r"[0-9a-f]{16}")
_NUMBER = lazy_regex(r"^\[\[BEGIN \w+ ([0-9a-f]{16})\]\]$", re.MULTILINE)


def number_of(salt: str, block: str, id_: str, text: str) -> str:
    """Return 16 hex digits for exactly this text as this block."""
    subject = "\0".join((block, id_, text)).encode("utf-8", "backslashreplace")
    return hmac.new(salt.encode(), subject, hashlib.sha256).hexdigest()[:16]


def defanged(text: str) -> str:
    """Return `text` without markers: `[[BEGIN` and `[[END` get a backslash between the brackets."""
    return _MARKER.sub(r"[\1\\[", text) if "[" in text else text


def marked(salt: str, block: str, text: str, id_: str = "") -> str:
    """Return `text`, defanged, between its two markers, each on a line of its own.

    `id_` separates blocks of one kind, such as the rounds that changes belong to.
    """
    body = defanged(text.rstrip("\n"))
    number = number_of(salt, block, id_, body)
    return f"[[BEGIN {block} {number}]]\n{body}\n[[END {block} {number}]]"


def numbers_in(text: str) -> set[str]:
    """Return the numbers of the markers that open a block in one of our prompts."""
    return set(_NUMBER.findall(text))


def without_numbers(text: str, prompts: Iterable[str]) -> str:
    """Return `text` without whole markers and without the numbers of blocks in our `prompts`.

    For replies that are passed on, since nobody else may learn the numbers.
    """
    text = _WHOLE.sub("", text)
    if _NUMBER_LIKE.search(text):
        for number in set().union(*map(numbers_in, prompts)):
            text = text.replace(number, "")
    return text
