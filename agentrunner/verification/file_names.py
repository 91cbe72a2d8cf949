"""How a text names a file: in full, by a folder, an ending, a pattern, or as missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

LITERAL = r"[\"'`/]"
PLAIN_WORD = re.compile(r"[a-z]+")
NO_FILE = re.compile(
    r"(?i)no such file|not found|cannot find|can't find|could not find|cannot open|can't open"
    r"|no module named|does not exist|doesn't exist|missing|enoent|unresolved|unable to load"
)
"""How tools say that a file is not there."""


@dataclass(frozen=True)
class Naming:
    """How much of a path one text says."""

    in_full: bool = False
    """Its own name stands there, with word limits."""
    folders: int = 0
    """How many of its folders do, or are the text's own."""
    ending: bool = False

    @property
    def much(self) -> int:
        """To be compared with what another text says of the same path."""
        return 4 * self.in_full + min(self.folders, 2) + self.ending

    @property
    def leads_there(self) -> bool:
        """Whether code that says this can be what reads the file."""
        return self.in_full or self.folders > 0


def naming(path: str, text: str, place: str = "") -> Naming:
    """How a text names a file; `place` is the text's own path, whose folders need no word.

    A bare word is no name of a file: `item` is one where it is quoted, or part of a path.
    """
    pure = PurePosixPath(path)
    word, ending = re.escape(pure.name), re.escape(pure.suffix)
    if PLAIN_WORD.fullmatch(pure.name) is None:
        name = rf"(?<![\w.-]){word}(?![\w-])"
    else:
        name = rf"{LITERAL}{word}(?=[\"'`\s)]|$)"
    # To look for a text first is a hundred times faster than for a pattern, and mostly ends it.
    in_full = pure.name in text and re.search(name, text) is not None
    has_ending = (
        bool(ending)
        and pure.suffix in text
        and bool(re.search(rf"(?:[*\"'`}})%]|\$\w+){ending}(?:[\"'`)\s]|$)|\*{ending}\b", text))
    )
    own = set(PurePosixPath(place).parent.parts) if place else set()
    folders = sum(part in own or _is_folder_in(part, text) for part in pure.parent.parts)
    return Naming(in_full, folders, has_ending)


def best(path: str, texts: Mapping[str, str]) -> Naming:
    """The most that any text says of a file, by their own paths."""
    found: Iterable[Naming] = (naming(path, text, place) for place, text in texts.items())
    return max(found, key=lambda one: one.much, default=Naming())


def means(path: str, text: str) -> bool:
    """Whether a text may mean a file: it says its name, or its folder or ending as a literal."""
    found = naming(path, text)
    return found.in_full or found.ending or found.folders > 0


def complaints(text: str) -> str:
    """The lines in which a tool says that something is not there."""
    return "\n".join(line for line in text.splitlines() if NO_FILE.search(line))


def has_word(word: str, text: str) -> bool:
    """Whether a text has a word, with word limits."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _is_folder_in(part: str, text: str) -> bool:
    """Whether a literal is this folder; a key, as in `order["items"]`, is none."""
    if len(part) < 3 or part not in text:
        return False
    word = re.escape(part)
    literal = rf"(?<!\[){LITERAL}{word}(?:[\"'`/*](?!\]|\s*:)|$)"
    # Shells and make write paths without quotes: `for f in spec/*.in`, `DIR=spec/data`.
    bare = rf"(?:^|[\s=:(<>]){word}/[\w.*$%{{\"']"
    return bool(re.search(rf"{literal}|{bare}", text, re.MULTILINE))
