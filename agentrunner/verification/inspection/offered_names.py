"""Whether files offer a name or an option to others. Pure, but for reading a tree."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property

from msgspec import Struct

from agentrunner.text.mentions import alone
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.name_scopes import is_local_name, is_outer_name
from agentrunner.verification.syntax.tokens import (
    Token,
    content,
    lexical_family,
    tokens,
    without_comments,
)

VALUE = r"(?:<[^>\n]*>|\[[^\]\n]*\]|[A-Z][A-Z_]+)"
OPTION = r"-{1,2}[\w-]+"
BEFORE = rf"(?:^\s*(?:{OPTION}(?:[ =]{VALUE})?\s*[,|/]?\s*)*|[\[(|]\s*)"
AFTER = rf"(?=\s*$|\s*[=,|/\])]|\s+{VALUE}|\s{{2,}})"
"""What stands around an option in a list of options or a line of usage, and not in prose."""


class Files(Struct, frozen=True, dict=True):
    """Files of one tree."""

    paths: Collection[str]
    read: ReadFile

    @cached_property
    def tokens(self) -> dict[str, tuple[Token, ...]]:
        """The tokens of each file that has any."""
        found = {}
        for path in self.paths:
            source = self.read(path) or b""
            family = lexical_family(path, source)
            found[path] = tokens(source, family) if family is not None else ()
        return {path: each for path, each in found.items() if each}

    @property
    def texts(self) -> Iterator[str]:
        """What stands in their strings."""
        for each in self.tokens.values():
            for one in each:
                if one.kind == "string":
                    yield content(one.text)

    @property
    def unread(self) -> Iterator[bytes]:
        """Files without tokens, as they are without comments."""
        for path in self.paths:
            if path not in self.tokens:
                yield without_comments(path, self.read(path) or b"")


def is_lost(name: str, old: Files, new: Files) -> bool:
    """Whether old files offer a name or an option to others, and new ones do not."""
    if name.startswith("-"):
        return _is_option_lost(name, old, new)
    if not has_outer(name, old):
        offered = [path for path in old.paths if not _is_local(name, path, old.read)]
        return _says(name, Files(offered, old.read)) and not _says(name, new)
    # A new text that is the name makes it when it is asked for; an old one is a use, or a list.
    is_made = sum(one == name for one in new.texts) > sum(one == name for one in old.texts)
    return not (has_outer(name, new) or is_made or _is_in_unread(name, new))


def _is_option_lost(name: str, old: Files, new: Files) -> bool:
    """An option is offered by a text that lists options, or by its name without dashes."""
    if any(_lists(name, one) for one in old.texts):
        return not any(_lists(name, one) for one in new.texts) and not _is_in_unread(name, new)
    if _stands_alone(name, old):
        return not _stands_alone(name, new)
    bare = name.lstrip("-")
    return any(one == bare for one in old.texts) and not any(one == bare for one in new.texts)


def _lists(option: str, text: str) -> bool:
    return bool(re.search(BEFORE + re.escape(option) + AFTER, text, re.MULTILINE))


def _stands_alone(name: str, files: Files) -> bool:
    word = re.compile(to_bytes(alone(name)))
    return any(word.search(without_comments(one, files.read(one) or b"")) for one in files.paths)


def has_outer(name: str, files: Files) -> bool:
    """Whether a name stands in one of these files outside of functions."""
    for path in files.paths:
        language, source = language_of(path), files.read(path)
        if language is not None and source is not None and is_outer_name(source, language, name):
            return True
    return False


def _is_local(name: str, path: str, read: ReadFile) -> bool:
    """Whether a file has a name only as variables of functions, which nobody else can use."""
    language, source = language_of(path), read(path)
    return language is not None and source is not None and is_local_name(source, language, name)


def _says(name: str, files: Files) -> bool:
    """Whether the code of a file has a name, itself or as a whole text: `{"old": new}`.

    What a longer text or a comment says of a name makes none.
    """
    shown = to_bytes(name).decode("latin-1")  # as tokens have it
    return (
        any(one == shown for one in files.texts)
        or any(one.text.lstrip("$@") == shown for each in files.tokens.values() for one in each)
        or _is_in_unread(name, files)
    )


def _is_in_unread(name: str, files: Files) -> bool:
    """Whether a file without a grammar has it: one of another language, or without tokens."""
    word = re.compile(to_bytes(alone(name)))
    others = [one for one in files.tokens if language_of(one) is None]
    code = (without_comments(one, files.read(one) or b"") for one in others)
    return any(word.search(one) for one in (*files.unread, *code))
