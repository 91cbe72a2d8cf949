"""Whether people speak of a file, a target or a module by its name. Pure."""

from __future__ import annotations

import re

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

QUOTES = "`'\"「『“‘"
"""What stands before a name that is quoted."""
PLACE = (
    r"(?:targets?|scripts?|recipes?|folders?|director(?:y|ies)"
    r"|ターゲット|スクリプト|フォルダ|ディレクトリ)"
)
"""The words beside which a common word is a name."""


def alone(name: str, joined: str = "-", before: str = "") -> str:
    """A pattern of a name where it is no part of a longer one.

    The letters of other scripts are no part of a name. `joined` are further characters that make a
    longer one of it, a `-` at their end, and so are those of `before` on its left.
    """
    letters = "A-Za-z0-9_"
    return rf"(?<![{letters}{before}{joined}]){re.escape(name)}(?![{letters}{joined}])"


def speaks_of(text: str, name: str) -> bool:
    """Whether a text holds a name as a whole word; a `*` in it is any part of a word."""
    whole = alone(name, joined="").replace(r"\*", r"[A-Za-z0-9_.-]+")
    return bool(name.strip("-")) and bool(re.search(whole, text, re.IGNORECASE))


def speaks_of_place(text: str, name: str) -> bool:
    """Whether a text speaks of a target, script or folder of this name.

    A common word (`tests`, `check`) is a name only in quotes, after a tool, or beside such a word.
    """
    if not re.fullmatch(r"[A-Za-z]+", name):
        return speaks_of(text, name)
    tools = r"(?:make|just|rake|task|npm|yarn|pnpm|bun|npm run|yarn run|pnpm run|bun run)"
    form = re.escape(name)
    return bool(
        re.search(
            rf"[{QUOTES}](?:\S+ )*{form}(?![\w-])|(?<![A-Za-z]){form}/|{tools} {form}(?![\w-])"
            rf"|(?<![A-Za-z]){form} ?の?{PLACE}|{PLACE} {form}(?![\w-])",
            text,
        )
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
