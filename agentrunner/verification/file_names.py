"""How a text names a file: in full, by a folder, an ending, a pattern, or as missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex

PAGES = (".md", ".rst", ".adoc")
"""Endings of pages for people."""
TEXTS = (*PAGES, ".txt")
"""Endings of texts for people, of which some are data."""
LITERAL = r"[\"'`/]"
PLAIN_WORD = lazy_regex(r"[a-z]+")
NO_FILE = lazy_regex(
    r"(?i)no such file|not found|cannot find|can't find|could not find|cannot open|can't open"
    r"|no module named|does not exist|doesn't exist|missing|enoent|unresolved|unable to load"
)
"""How tools report that a file does not exist."""


class Naming(Struct, frozen=True):
    """How much of a file's path a text names."""

    in_full: bool = False
    """Whether the file's name stands in the text as a whole word."""
    folders: int = 0
    """How many of the path's folders the text names, or lies in itself."""
    ending: bool = False

    @property
    def much(self) -> int:
        """A number by which to compare what several texts name of one path."""
        return 4 * self.in_full + min(self.folders, 2) + self.ending

    @property
    def leads_there(self) -> bool:
        """Whether code that names this much can be what reads the file."""
        return self.in_full or self.folders > 0


def naming(path: str, text: str, place: str = "") -> Naming:
    """How a text names a file; `place` is the text's own path, whose folders need not be named.

    A bare word is not a file's name: `item` is one only in quotes or as part of a path.
    """
    pure = PurePosixPath(path)
    word, ending = re.escape(pure.name), re.escape(pure.suffix)
    if PLAIN_WORD.fullmatch(pure.name) is None:
        name = rf"(?<![\w.-]){word}(?![\w-])"
    else:
        name = rf"{LITERAL}{word}(?=[\"'`\s)]|$)"
    # A plain search is a hundred times faster than the pattern, and mostly settles it.
    in_full = pure.name in text and re.search(name, text) is not None
    has_ending = (
        bool(ending)
        and pure.suffix in text
        and bool(re.search(rf"(?:[*\"'`}})%]|\$\w+){ending}(?:[\"'`)\s]|$)|\*{ending}\b", text))
    )
    own = set(PurePosixPath(place).parent.parts) if place else set()
    folders = sum(part in own or _is_folder_named_in(part, text) for part in pure.parent.parts)
    return Naming(in_full, folders, has_ending)


def best(path: str, texts: Mapping[str, str]) -> Naming:
    """The naming of a file by the text that names most of it; `texts` are keyed by their paths."""
    found: Iterable[Naming] = (naming(path, text, place) for place, text in texts.items())
    return max(found, key=lambda one: one.much, default=Naming())


def means(path: str, text: str) -> bool:
    """Whether a text may name a file: by its name, or by its folder or ending as a literal."""
    found = naming(path, text)
    return found.in_full or found.ending or found.folders > 0


def complaints(text: str) -> str:
    """The lines of an output in which a tool reports that something does not exist."""
    return "\n".join(line for line in text.splitlines() if NO_FILE.search(line))


def has_word(word: str, text: str) -> bool:
    """Whether a text has a word, as a whole word."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _is_folder_named_in(folder: str, text: str) -> bool:
    """Whether a literal is this folder; a key such as `order["items"]` is not."""
    if len(folder) < 3 or folder not in text:
        return False
    word = re.escape(folder)
    literal = rf"(?<!\[){LITERAL}{word}(?:[\"'`/*](?!\]|\s*:)|$)"
    # Shells and make write paths without quotes: `for f in spec/*.in`, `DIR=spec/data`.
    bare = rf"(?:^|[\s=:(<>]){word}/[\w.*$%{{\"']"
    return bool(re.search(rf"{literal}|{bare}", text, re.MULTILINE))
