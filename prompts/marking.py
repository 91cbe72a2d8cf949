"""Markers around text that we did not write, so that it cannot pose as ours.

The number in a marker is keyed with the run's salt, and made of the kind of block, its id and its
very bytes. So the same block has the same number in every call of a run, which lets prompts begin
alike; repository and worker cannot guess it; and a number that leaks closes no other text.
"""

from __future__ import annotations

import hashlib
import hmac
import re

_MARKER = re.compile(r"\[(\s*)\[(?=\s*(?:BEGIN|END)\b)", re.IGNORECASE)
_WHOLE = re.compile(r"\[\s*\[\s*(?:BEGIN|END)\s+\w+\s+[0-9a-f]{16}\s*\]\s*\]", re.IGNORECASE)
_NUMBER = re.compile(r"^\[\[BEGIN \w+ ([0-9a-f]{16})\]\]$", re.MULTILINE)


def number_of(salt: str, block: str, id_: str, text: str) -> str:
    """16 hex digits for this very text, as this block."""
    subject = "\0".join((block, id_, text)).encode("utf-8", "backslashreplace")
    return hmac.new(salt.encode(), subject, hashlib.sha256).hexdigest()[:16]


def defanged(text: str) -> str:
    """`text` in which nothing is a marker: `[[BEGIN` and `[[END` have a backslash between."""
    return _MARKER.sub(r"[\1\\[", text) if "[" in text else text


def marked(salt: str, block: str, text: str, id_: str = "") -> str:
    """`text`, defanged, between its two markers, each on a line of its own.

    `id_` tells blocks of one kind apart, such as the rounds that changes belong to.
    """
    body = defanged(text.rstrip("\n"))
    number = number_of(salt, block, id_, body)
    return f"[[BEGIN {block} {number}]]\n{body}\n[[END {block} {number}]]"


def numbers_in(text: str) -> set[str]:
    """The numbers of the markers that open a block in a prompt of ours."""
    return set(_NUMBER.findall(text))


def without_numbers(text: str, numbers: set[str]) -> str:
    """`text` without these numbers and without whole markers: for what a reply hands on."""
    text = _WHOLE.sub("", text)
    for number in numbers:
        text = text.replace(number, "")
    return text
