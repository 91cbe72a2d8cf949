"""Finds the shell texts behind make, just and package managers. Pure."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.shell import words_of

SEPARATORS = re.compile(r"&&|\|\||[;|&()\n]")
QUOTED_SHELL = re.compile(r"(\s-\w*c\s+)(['\"])(.+?)\2", re.DOTALL)
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
NO_COMMAND = frozenset({"!", "if", "then", "elif", "else", "do", "while", "{"})
FOLDER_OPTIONS = frozenset({"-C", "--prefix", "--directory", "--cwd", "--dir"})

RECIPES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
}
PACKAGE_MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
RULE = re.compile(
    r"^([\w./$%-][^:=\n\t#]*?)\s*:(?!=)([^=\n]*)\n((?:[ \t]+.*\n?|\n)*)", re.MULTILINE
)
MOST_SCRIPTS = 100
"""Texts that are followed; a command that runs more is not understood anyway."""


@dataclass(frozen=True)
class _Text:
    """A shell text, and the folder in which it starts, relative to the repository."""

    shell: str
    folder: str


def texts_run(command: str, cwd: str, read: ReadFile) -> list[str]:
    """The shell texts that `command` runs: itself, then those behind make, just and npm."""
    return [text.shell for text in _followed(command, cwd, read)]


def _followed(command: str, cwd: str, read: ReadFile) -> Iterator[_Text]:
    """The command and every text that it runs in turn, each once."""
    pending = [_Text(command, posixpath.normpath(cwd))]
    seen: set[_Text] = set()
    while pending and len(seen) < MOST_SCRIPTS:
        text = pending.pop()
        if text in seen:
            continue
        seen.add(text)
        yield text
        pending += [_Text(quoted[3], text.folder) for quoted in QUOTED_SHELL.finditer(text.shell)]
        for words, folder in _commands(text):
            pending += _delegated(words, folder, read)


def _commands(text: _Text) -> Iterator[tuple[list[str], str]]:
    """Each simple command with the folder it runs in; `cd` is followed."""
    folder = text.folder
    for piece in SEPARATORS.split(QUOTED_SHELL.sub(r"\1", text.shell)):
        words = words_of(piece.lstrip("@-+ \t"), comments=True)
        while words and (ASSIGNMENT.match(words[0]) or words[0] in NO_COMMAND):
            words.pop(0)
        if words[:1] == ["cd"] and len(words) > 1:
            folder = _join(folder, words[1])
        elif words:
            yield words, folder


def delegated(words: list[str], folder: str, read: ReadFile) -> Iterator[tuple[str, str]]:
    """The shell texts that make, just or a package manager runs for a command, with folders."""
    for text in _delegated(words, folder, read):
        yield text.shell, text.folder


def _delegated(words: list[str], folder: str, read: ReadFile) -> Iterator[_Text]:
    """The shell texts that make, just or a package manager runs for this command."""
    options = pairwise(words)
    folders = [folder, *(_join(folder, value) for name, value in options if name in FOLDER_OPTIONS)]
    programs = {PurePosixPath(word).name for word in words[:4]}
    for place in folders:
        for name in (name for program in programs for name in RECIPES.get(program, ())):
            for recipe in _recipes(_text(read(_join(place, name))), words[1:]):
                yield _Text(recipe, place)
        if programs & PACKAGE_MANAGERS:
            for script in _package_scripts(_text(read(_join(place, "package.json"))), words[1:]):
                yield _Text(script, place)


def _recipes(makefile: str, words: list[str]) -> list[str]:
    """The recipes of the named targets, or of the first one, with those they depend on."""
    rules = {
        target: (match[2].split("#")[0].split(), match[3])
        for match in RULE.finditer(makefile)
        for target in match[1].split()
    }
    pending = [word for word in words if word in rules]
    pending = pending or [name for name in rules if not name.startswith(".")][:1]
    done: dict[str, str] = {}
    while pending:
        target = pending.pop()
        if target in rules and target not in done:
            depends, done[target] = rules[target]
            pending += depends
    return list(done.values())


def _package_scripts(package: str, words: list[str]) -> list[str]:
    """The named scripts of a package.json, with what runs before and after them."""
    try:
        scripts = json.loads(package or "{}").get("scripts", {})
        names = ["test" if word == "t" else word for word in words]
        wanted = [f"{when}{name}" for name in names for when in ("pre", "", "post")]
        return [scripts[name] for name in wanted if isinstance(scripts.get(name), str)]
    except (ValueError, AttributeError):
        return []


def _text(content: bytes | None) -> str:
    return (content or b"")[:200_000].decode("utf-8", "replace")


def _join(folder: str, word: str) -> str:
    return posixpath.normpath(posixpath.join(folder, word))
