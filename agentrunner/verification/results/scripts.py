"""Finds the shell texts behind make, just and package managers. Pure."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePosixPath

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.model import ReadFile

FOLDER_OPTIONS = frozenset({"-C", "--prefix", "--directory", "--cwd", "--dir"})

RECIPES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
}
PACKAGE_MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
RULE = lazy_regex(
    r"^([\w./$%-][^:=\n\t#]*?)\s*:(?!=)([^=\n]*)\n((?:[ \t]+.*\n?|\n)*)", re.MULTILINE
)


def delegated(words: list[str], folder: str, read: ReadFile) -> Iterator[tuple[str, str]]:
    """The shell texts that make, just or a package manager runs for a command, with folders."""
    options = pairwise(words)
    folders = [folder, *(_join(folder, value) for name, value in options if name in FOLDER_OPTIONS)]
    programs = {PurePosixPath(word).name for word in words[:4]}
    for place in folders:
        for name in (name for program in programs for name in RECIPES.get(program, ())):
            for recipe in _recipes(_text(read(_join(place, name))), words[1:]):
                yield recipe, place
        if programs & PACKAGE_MANAGERS:
            for script in _package_scripts(_text(read(_join(place, "package.json"))), words[1:]):
                yield script, place


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
