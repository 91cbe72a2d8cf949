"""Splits a shell text into simple commands, with the position of each word in it. Pure.

It covers enough of POSIX sh to find test tools in a command line, and to add options to one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex

OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "(", ")", "\n", "{ ", "}")
REDIRECTION = lazy_regex(r"\d*(?:>>|>\||>&|<&|<<-?|<>|>|<|&>>|&>)")
ASSIGNMENT = lazy_regex(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
KEYWORDS = frozenset("! if then elif else fi do done while until time".split())


class Word(Struct, frozen=True):
    """One word without its quotes, and its position in the text with them."""

    text: str
    start: int
    end: int


class SimpleCommand(Struct, frozen=True):
    """A simple command: its words without redirections, and its assignments."""

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    after: str = ""
    """The operator that ends it: "&&", "|", …"""

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.words]


def simple_commands(shell: str) -> list[SimpleCommand]:
    """All simple commands of a text in their order. What cannot be lexed ends the last one."""
    return [*_simple_commands(shell)]


@lru_cache(maxsize=64)
def _simple_commands(shell: str) -> tuple[SimpleCommand, ...]:
    """The same, cached: a round asks hundreds of times what the test command runs."""
    found: list[SimpleCommand] = []
    words: list[Word] = []
    skip = False
    for word, operator in _tokens(shell):
        if operator:
            _add_command(found, words, operator)
            words, skip = [], False
        elif skip:
            skip = False
        elif word is not None and (hit := REDIRECTION.match(shell, word.start, word.end)):
            skip = hit.end() == word.end
        elif word is not None:
            words.append(word)
    _add_command(found, words, "")
    return tuple(found)


def _add_command(found: list[SimpleCommand], words: list[Word], operator: str) -> None:
    position = 0
    while position < len(words) and words[position].text in KEYWORDS:
        position += 1
    first = position
    while position < len(words) and ASSIGNMENT.match(words[position].text):
        position += 1
    if words[first:]:
        found.append(SimpleCommand(tuple(words[position:]), tuple(words[first:position]), operator))


def _tokens(shell: str) -> Iterator[tuple[Word | None, str]]:
    position, length = 0, len(shell)
    while position < length:
        character = shell[position]
        if character in " \t\r" or shell.startswith("\\\n", position):
            position += 1 if character != "\\" else 2
        elif character == "#":
            end = shell.find("\n", position)
            position = length if end < 0 else end
        elif operator := next((o for o in OPERATORS if shell.startswith(o, position)), ""):
            if operator == "&" and shell.startswith("&>", position):
                word = _word(shell, position)
                yield word, ""
                position = word.end
            else:
                yield None, operator.strip() or "\n"
                position += len(operator)
        else:
            word = _word(shell, position)
            yield word, ""
            position = max(word.end, position + 1)


def _word(shell: str, start: int) -> Word:
    text, position, length = [], start, len(shell)
    while position < length:
        character = shell[position]
        if character == "\\" and position + 1 < length:
            text.append(shell[position + 1] if shell[position + 1] != "\n" else "")
            position += 2
        elif character == "'":
            end = shell.find("'", position + 1)
            end = length if end < 0 else end
            text.append(shell[position + 1 : end])
            position = end + 1
        elif character == '"':
            position = _after_double_quotes(shell, position + 1, text)
        elif shell.startswith(("$(", "${"), position):
            end = _after_bracket(shell, position + 1)
            text.append(shell[position:end])
            position = end
        elif character in " \t\r\n;|()" or (character == "&" and not _redirects(shell, position)):
            break
        else:
            text.append(character)
            position += 1
    return Word("".join(text), start, min(position, length))


def _redirects(shell: str, position: int) -> bool:
    return shell.startswith("&>", position) or shell[position - 1 : position] in (">", "<")


def _after_double_quotes(shell: str, position: int, text: list[str]) -> int:
    while position < len(shell) and shell[position] != '"':
        if shell[position] == "\\" and shell[position + 1 : position + 2] in tuple('"\\$`\n'):
            position += 1
        text.append(shell[position : position + 1])
        position += 1
    return position + 1


def _after_bracket(shell: str, position: int) -> int:
    """The position behind the bracket that closes the one at `position`."""
    opening, depth = shell[position], 0
    closing = {"(": ")", "{": "}"}[opening]
    for at in range(position, len(shell)):
        depth += (shell[at] == opening) - (shell[at] == closing)
        if depth == 0:
            return at + 1
    return len(shell)


def words_of(shell: str, *, comments: bool = False) -> list[str]:
    """The words of a command, as far as they can be told apart.

    `comments`: without what stands behind a `#`.
    """
    try:
        return shlex.split(shell, comments=comments)
    except ValueError:
        return shell.split()


def quoted(text: str) -> str:
    """A word quoted for a shell; plain words stay as they are."""
    if re.fullmatch(r"[\w@%+=:,./-]+", text, re.ASCII):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def edited(shell: str, edits: list[tuple[int, int, str]]) -> str:
    """The text with spans replaced; (5, 5, "x") inserts."""
    for start, end, text in sorted(edits, reverse=True):
        shell = shell[:start] + text + shell[end:]
    return shell


def put_first(shell: str, variable: str, folder: str) -> str:
    """The text; where it sets a list of folders itself, with this folder before its value."""
    at = [
        shell.index("=", word.start) + 1
        for command in simple_commands(shell)
        for word in (*command.assignments, *command.words)
        if word.text.startswith(f"{variable}=")
    ]
    first = f"{quoted(folder)}:"
    return edited(
        shell, [(place, place, first) for place in at if not shell.startswith(first, place)]
    )
