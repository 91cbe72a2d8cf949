"""The words that show what a text is about, to compare two texts. Pure."""

from __future__ import annotations

from agentrunner.text.lazy_regex import lazy_regex

WORD = lazy_regex(
    r"[A-Za-z][a-z]+|[A-Z]{2,}s?(?![a-z])|[a-z]+|[\u30a0-\u30ff]{2,}|[\u4e00-\u9fff]{2,}"
)
SHORT = 3
"""Words of this length or less mean nothing by themselves."""
EMPTY_WORDS = frozenset(
    """the and for not are was has all any can but its one out test tests should when with without
    that this from into have does returns return given case cases spec works work class method
    function value values error errors raises check make must main init file code unit""".split()
)


def content_words(text: str) -> set[str]:
    """Return the words that show what something is about, singular and plural in one form."""
    found = set()
    for word in WORD.findall(text):
        plain = word.lower()
        if len(plain) > SHORT and plain.endswith("s"):
            plain = plain[:-1]
        if (len(plain) >= SHORT or not plain.isascii()) and plain not in EMPTY_WORDS:
            found.add(plain)
    return found
