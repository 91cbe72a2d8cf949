"""Code between a test and what was asked for: helpers, builders, matchers, tables. Pure.

A file that tests use and no product code uses may be what the tests are about, or stand in between.
What was asked for tells: it mentions the former by the name of the file or of something in it.
"""

from __future__ import annotations

import re

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import content_words

DEFINED = lazy_regex(
    r"(?:\b(?:def|class|function|const|let|var|func|fn|sub|interface|struct|trait|enum|type|module)\s+"
    r"|\bexports\.|^)([A-Za-z_]\w{2,})(?=\s*[(:={<]|\s*$)",
    re.MULTILINE,
)
"""What code defines for others; a name bound deeper inside belongs to its function alone."""
MOST = 2_000
"""The most names of one file."""


class Asked:
    """What was asked for, as a text in which code may be named."""

    def __init__(self, text: str) -> None:
        """`text` is empty if it is unknown what was asked for."""
        self.words = content_words(text)
        self._text = text
        self._written = frozenset(re.findall(r"\w+", text))
        self._names = frozenset(name.casefold() for name in self._written)

    def __bool__(self) -> bool:
        return bool(self.words)

    def writes(self, value: str) -> bool:
        """Whether all words of a value occur in it."""
        return self._written.issuperset(re.findall(r"\w+", value))

    def writes_out(self, path: str) -> bool:
        """Whether it contains a file's name with its ending."""
        return path.rpartition("/")[2] in self._text

    def speaks_of(self, folder: str) -> bool:
        """Whether it mentions what a folder contains, in the singular or plural."""
        word = folder.casefold()
        return not self._names.isdisjoint({word, word.removesuffix("s"), f"{word}s"})

    def names(self, path: str, text: str) -> bool:
        """Whether it mentions a file: by its name, or by something that the file defines."""
        stem = content_words(path.rpartition("/")[2].partition(".")[0])
        if stem and stem <= self.words:
            return True
        return any(map(self.names_code, dict.fromkeys(DEFINED.findall(text)[:MOST])))

    def names_code(self, name: str) -> bool:
        """Whether it mentions a function or class, as written or in words.

        A name in capitals must occur as written: a word that happens to be the same does not count.
        """
        if name.isupper():
            return name in self._written
        words = content_words(name)
        return name.casefold() in self._names or (len(words) > 1 and words <= self.words)
