"""What a test command runs: the scripts it names, also those behind make, just and npm. Pure.

A worker who may not weaken a test can still weaken `scripts/check.sh` behind `make test`. So the
command is followed through recipes. It is not followed into scripts: what those run may as well be
the product.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

Read = Callable[[str], bytes | None]
"""A file of the tree before the run, None where there is none."""

SEPARATORS = re.compile(r"&&|\|\||[;|&()\n]")
QUOTED_SHELL = re.compile(r"(\s-\w*c\s+)(['\"])(.+?)\2", re.DOTALL)
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
NO_COMMAND = frozenset({"!", "if", "then", "elif", "else", "do", "while", "{"})
INTERPRETER = re.compile(
    r"^(sh|bash|dash|zsh|ksh|source|\.|python[\d.]*|pypy3?|node|deno|bun|ruby|perl|php|lua|tsx"
    r"|ts-node|Rscript)$"
)
WRAPPERS = frozenset("env exec time nice timeout npx uv poetry pdm hatch pipenv rye run".split())
MAKERS = frozenset(
    "cp mv ln cat rm mkdir install chmod tar cc gcc g++ c++ clang clang++ ld rustc javac tsc"
    " shellcheck".split()
)
"""Programs that are handed the product, not tests of it."""
FILE_OPTIONS = frozenset(
    "-c -f -r --config --config-file --rcfile --require --import --loader --file --makefile".split()
)
"""Options whose value steers a test tool when it is a file."""
FOLDER_OPTIONS = frozenset({"-C", "--prefix", "--directory", "--cwd", "--dir"})
SOURCE = re.compile(r"\.(py|[cm]?[jt]sx?|c|cc|cpp|cxx|h|hpp|rs|go|java|kt|rb|php|swift|cs)$")
"""What a compiler or test runner is handed is the product, unless it is run itself."""

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
    """A shell text, and the folder below the repository that it starts in."""

    shell: str
    folder: str


def scripts_run(command: str, cwd: str, read: Read) -> frozenset[str]:
    """Paths that steer `command`: what it names, runs or is configured by, recipes followed.

    What the command itself names counts even where it does not exist yet.
    """
    found: set[str] = set()
    for index, text in enumerate(_followed(command, cwd, read)):
        for words, folder in _commands(text):
            for word in _steering_words(words):
                path = _join(folder, word)
                if index == 0 or read(path) is not None:
                    found.add(path)
    return frozenset(found)


def texts_run(command: str, cwd: str, read: Read) -> list[str]:
    """The shell texts that `command` runs: itself, then what is behind make, just and npm."""
    return [text.shell for text in _followed(command, cwd, read)]


def _followed(command: str, cwd: str, read: Read) -> Iterator[_Text]:
    """The command and every text that it hands on to, each once."""
    waiting = [_Text(command, posixpath.normpath(cwd))]
    seen: set[_Text] = set()
    while waiting and len(seen) < MOST_SCRIPTS:
        text = waiting.pop()
        if text in seen:
            continue
        seen.add(text)
        yield text
        waiting += [_Text(quoted[3], text.folder) for quoted in QUOTED_SHELL.finditer(text.shell)]
        for words, folder in _commands(text):
            waiting += _delegated(words, folder, read)


SILENT = frozenset({"set", "export", "true", ":", "echo", "printf", "unset", "umask", "mkdir"})
"""Words of the shell that decide nothing."""


def commands_run(command: str, cwd: str, read: Read) -> list[list[str]]:
    """The commands that do something, in place of make, just and npm those of their recipes."""
    found: list[list[str]] = []
    waiting = [_Text(command, posixpath.normpath(cwd))]
    seen: set[_Text] = set()
    while waiting and len(seen) < MOST_SCRIPTS:
        text = waiting.pop()
        if text in seen:
            continue
        seen.add(text)
        quoted = [_Text(one[3], text.folder) for one in QUOTED_SHELL.finditer(text.shell)]
        waiting += quoted
        for words, folder in _commands(text):
            if below := list(_delegated(words, folder, read)):
                waiting += below
            elif words[0] not in SILENT and not (quoted and INTERPRETER.match(words[0])):
                found.append(words)
    return found


def _commands(text: _Text) -> Iterator[tuple[list[str], str]]:
    """Each simple command with the folder it runs in; `cd` is obeyed."""
    folder = text.folder
    for piece in SEPARATORS.split(QUOTED_SHELL.sub(r"\1", text.shell)):
        words = _words(piece)
        while words and (ASSIGNMENT.match(words[0]) or words[0] in NO_COMMAND):
            words.pop(0)
        if words[:1] == ["cd"] and len(words) > 1:
            folder = _join(folder, words[1])
        elif words:
            yield words, folder


def _words(piece: str) -> list[str]:
    try:
        return shlex.split(piece.lstrip("@-+ \t"), comments=True)
    except ValueError:
        return piece.split()


def _steering_words(words: list[str]) -> Iterator[str]:
    """The program, an interpreter's script, values of options, and whatever is no source file."""
    wanted, previous = "program", ""
    for word in words:
        name = PurePosixPath(word).name
        if word.startswith("-"):
            if "=" in word:
                yield word.partition("=")[2]
        elif wanted == "script" and previous == "-m":
            module = word.replace(".", "/")
            yield from (f"{module}.py", f"{module}/__main__.py")
            wanted = "arguments"
        elif wanted != "arguments":
            yield word
            if INTERPRETER.match(name):
                wanted = "script"
            elif wanted == "script":
                wanted = "arguments" if "." in word or "/" in word else "script"
            elif name in MAKERS:
                return
            elif name not in WRAPPERS and not word.isdigit() and not ASSIGNMENT.match(word):
                wanted = "arguments"
        elif previous in FILE_OPTIONS or not SOURCE.search(word):
            yield word
        previous = word


def delegated(words: list[str], folder: str, read: Read) -> Iterator[tuple[str, str]]:
    """What make, just or a package manager runs for a command: shell texts and their folders."""
    for text in _delegated(words, folder, read):
        yield text.shell, text.folder


def _delegated(words: list[str], folder: str, read: Read) -> Iterator[_Text]:
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
    """The recipes of the targets that are named, or of the first one, with what they depend on."""
    rules = {
        target: (match[2].split("#")[0].split(), match[3])
        for match in RULE.finditer(makefile)
        for target in match[1].split()
    }
    waiting = [word for word in words if word in rules]
    waiting = waiting or [name for name in rules if not name.startswith(".")][:1]
    done: dict[str, str] = {}
    while waiting:
        target = waiting.pop()
        if target in rules and target not in done:
            depends, done[target] = rules[target]
            waiting += depends
    return list(done.values())


def _package_scripts(package: str, words: list[str]) -> list[str]:
    """The scripts of a package.json that are named, with what runs before and after them."""
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
