"""Command lines as pages show them, read by the parser of the command they name."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from typer.main import get_command

from agentrunner import cli
from agentrunner.commands.index import Index


def parse(words: Iterable[str]) -> None:
    """Read the words behind `agentrunner` as it would, without running anything.

    Raises what the parser raises for an option or a value that there is not.
    """
    words = cli.understood(list(words))
    name = " ".join(words[:1])
    program: Any = get_command(cli.app)
    command = program
    while isinstance(command, Index) and words and words[0] in command.entries:
        command, words = command.get_command(None, words[0]), words[1:]
    assert command is not program or not words, f"there is no command {name}"
    if not isinstance(command, Index) and "--help" not in words:
        command.make_context(name, words)


def agentrunner_lines(script: str) -> list[list[str]]:
    """The words behind every `agentrunner` of a shell script, up to where the shell takes over."""
    found = []
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        if words and words[0].rpartition("/")[2] == "agentrunner":
            ends = [i for i, word in enumerate(words) if set(word) & set("|<>;&")]
            found.append(words[1 : min(ends, default=len(words))])
    return found
