"""Finds the programs that a command runs in the end: through wrappers, recipes, scripts. Pure."""

from __future__ import annotations

import configparser
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import PurePosixPath

from msgspec import Struct, field

from agentrunner.config.yaml_text import read_yaml
from agentrunner.errors import UsageError
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.files import json_of, table, texts, toml_of
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.shell import SimpleCommand, quoted, simple_commands

FOLDER_OPTIONS = frozenset({"-C", "--prefix", "--directory", "--cwd", "--dir"})

RECIPES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
}
SESSIONS = {"nox": "noxfile.py", "invoke": "tasks.py", "inv": "tasks.py"}
HOOKED = frozenset({"pre-commit", "prek"})
HOOKS = ".pre-commit-config.yaml"
SEVERAL_SCRIPTS = frozenset({"run-s", "run-p", "npm-run-all", "npm-run-all2"})
PACKAGE_MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
RULE = lazy_regex(
    r"^([\w./$%-][^:=\n\t#]*?)\s*:(?!=)([^=\n]*)\n((?:[ \t]+.*\n?|\n)*)", re.MULTILINE
)

MOST_COMMANDS = 300
MOST_DEPTH = 8
PYTHON = lazy_regex(r"(?:python[\d.]*|pypy[\d.]*|py)$")
VARIABLE = lazy_regex(r"\$[({]?([A-Za-z_]\w*)[)}]?$")
SHELL = lazy_regex(r"(?:sh|bash|dash|zsh|ksh)$")
RUNNERS = {
    "uv": ("run", "tool"), "poetry": ("run",), "pdm": ("run",), "hatch": ("run",), "rye": ("run",),
    "pipenv": ("run",), "pixi": ("run",), "pnpm": ("exec", "dlx"), "npm": ("exec",), "npx": (),
    "yarn": ("exec", "dlx"), "bundle": ("exec",), "env": (), "nice": (), "time": (), "exec": (),
    "command": (), "timeout": (), "stdbuf": (), "xvfb-run": (), "cross-env": (), "dotenv": (),
    "nyc": (), "c8": (), "sudo": (), "coverage": (), "mise": ("exec",), "direnv": ("exec",),
    "setarch": (), "ionice": (), "unbuffer": (), "composer": ("exec",), "pnpx": (), "bunx": (),
    "corepack": (),
}  # fmt: skip
"""Programs that run the command in their last arguments, after one of these words if they have any.
Which of their own options take a value need not be known: the first word that has the form of a
program, and not of a value, is taken."""

INSTALLED = lazy_regex(
    r"(?:^|/)node_modules/(?:\.bin/|([\w.-]+)/(?:[\w.-]+/)*)([\w-]+)(?:\.[cm]?js)?$"
)
"""A file of an installed package: the package, and the program by the file's name."""
LOADED_FIRST = frozenset({"-r", "--require", "--import", "--loader", "--experimental-loader"})
"""Options of Node that name what it loads before its program."""
VALUED = lazy_regex(r"--(?:\w+-)+(?:dir|directory)$")
"""Options of Node whose next word names a folder."""
INLINE = lazy_regex(r"-[ep]+$|--(?:eval|print)$")
"""Options of Node that make a program of the next word."""
RUN_BY_NODE = lazy_regex(r"\.[cm]?[jt]sx?$|/[^./]+$")
"""A file that Node runs, by its ending or as a path without one: other words behind an option are
its value."""


class Run(Struct, frozen=True):
    """One program that a command finally runs."""

    words: tuple[str, ...]
    """The program and its arguments, without wrappers."""
    folder: str
    """The folder in which it runs, relative to the repository."""
    assignments: tuple[str, ...] = ()
    """`NAME=value` before it, as in `PYTHONPATH=src pytest`."""
    outer: SimpleCommand | None = None
    """The simple command in the text itself that leads to it."""
    direct: bool = False
    """Whether that command is the program itself, at most with wrappers before it."""
    appended: str | None = None
    """What must come before options that are added to `outer`: "", or " --" for each script of npm
    on the way; None where such options do not reach the program."""
    position: int = 0
    """The index of the program among the words of `outer`, where `direct`."""

    @property
    def program(self) -> str:
        """The program's name without folders."""
        return self.words[0].rsplit("/", 1)[-1]

    def tool(self, programs: Collection[str]) -> tuple[str, int] | None:
        """Which of these programs it is, and the index of the word that names it.

        By its name, or by its file in an installed package, which Node is told to run:
        `node --no-warnings node_modules/jest/bin/jest.js --ci`.
        """
        if self.program in programs:
            return self.program, 0
        if self.program not in ("node", "nodejs"):
            return None
        for index, (before, word) in enumerate(pairwise(self.words), 1):
            if INLINE.match(before):
                return None
            if word.startswith("-") or _is_value_for_node(before, word):
                continue
            names = hit.groups() if (hit := INSTALLED.search(word)) else ()
            return next(((one, index) for one in names if one in programs), None)
        return None

    @property
    def python(self) -> tuple[str, int] | None:
        """What a Python runs, `-m` with a module's name or a path, and the index of that word."""
        if not PYTHON.match(self.program) and self.words[0] != "-m":
            return None
        position = 0 if self.words[0] == "-m" else 1
        while position < len(self.words):
            word = self.words[position]
            if word == "-m" and position + 1 < len(self.words):
                return f"-m {self.words[position + 1]}", position + 1
            if word.startswith("-m") and len(word) > 2:
                return f"-m {word[2:]}", position
            if word in ("-W", "-X"):
                position += 1
            elif not word.startswith("-"):
                return word, position
            position += 1
        return None


def _is_value_for_node(option: str, word: str) -> bool:
    """Whether a word behind another one is no program but what that option of Node takes."""
    if not option.startswith("-") or "=" in option:
        return False
    named = option in LOADED_FIRST or VALUED.match(option)
    return bool(named) or not RUN_BY_NODE.search(word)


def runs_of(shell: str, cwd: str, read: ReadFile) -> list[Run]:
    """All programs that a command finally runs, in order of appearance."""
    followed = _Followed(read)
    _follow(shell, posixpath.normpath(cwd), followed)
    return followed.runs


def texts_run(shell: str, cwd: str, read: ReadFile) -> list[str]:
    """The shell texts that a command runs: itself, then those behind make, just, npm and others."""
    followed = _Followed(read)
    _follow(shell, posixpath.normpath(cwd), followed)
    return list(followed.texts)


class _Followed(Struct):
    """What a command was found to run."""

    read: ReadFile
    runs: list[Run] = field(default_factory=list)
    texts: dict[str, None] = field(default_factory=dict)


def _follow(
    shell: str,
    folder: str,
    followed: _Followed,
    inherited: tuple[str, ...] = (),
    depth: int = 0,
    outer: SimpleCommand | None = None,
    appended: str | None = None,
    seen: frozenset[tuple[str, str]] = frozenset(),
) -> None:
    if depth > MOST_DEPTH or (shell, folder) in seen:
        return
    seen |= {(shell, folder)}
    followed.texts[shell] = None
    all_commands = [
        command for command in simple_commands(shell) if command.words or command.assignments
    ]
    for command in all_commands:
        if len(followed.runs) >= MOST_COMMANDS:
            return
        spelt = command.texts
        if spelt and depth:
            spelt[0] = spelt[0].lstrip("@-+") or spelt[0]
        if spelt and (variable := VARIABLE.match(spelt[0])):
            # `$(PYTHON)` in a recipe most likely is the program that it is named after.
            spelt[0] = variable[1].lower()
        assignments = inherited + tuple(word.text for word in command.assignments)
        if not spelt or spelt[0] == "export":
            inherited = assignments + tuple(spelt[1:])
            continue
        if spelt[0] == "cd" and len(spelt) > 1:
            folder = posixpath.normpath(posixpath.join(folder, spelt[1]))
            continue
        position, more = unwrapped(spelt)
        words = tuple(spelt[position:])
        if not words:
            continue
        last = command is all_commands[-1]
        options_prefix = (appended if last else None) if depth else ""
        first = outer or command
        run = Run(words, folder, assignments + more, first, not depth, options_prefix, position)
        behind = list(_texts_run_by(run, followed.read))
        if not behind:
            followed.runs.append(run)
        for text, place, extra in behind:
            reached = extra is not None and options_prefix is not None
            _follow(
                text,
                place,
                followed,
                run.assignments,
                depth + 1,
                first,
                f"{options_prefix}{extra}" if reached else None,
                seen,
            )


def unwrapped(words: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """The index of the program behind `env`, `timeout 5`, `uv run`, …, and what these assign."""
    position, more = 0, []
    while position < len(words):
        name = words[position].rsplit("/", 1)[-1]
        keys = RUNNERS.get(name)
        if keys is None or (keys and not set(words[position + 1 : position + 6]) & set(keys)):
            break
        start = position
        if keys:
            position = next(i for i in range(position + 1, len(words)) if words[i] in keys)
        position = _program_from(words, position + 1, name)
        more += [each for each in words[start:position] if re.match(r"[A-Za-z_]\w*=", each)]
        if name == "coverage":
            return (position, tuple(more)) if position < len(words) else (start, tuple(more))
        if name == "npx" and position >= len(words):
            return start, tuple(more)
    return position, tuple(more)


def _program_from(words: Sequence[str], position: int, wrapper: str) -> int:
    """The index of the first word that is no option, assignment, number or option's value."""
    values = {
        "uv": {"--with", "--python", "-p", "--group", "--extra", "--package", "--env-file",
               "--project", "--directory", "--with-requirements", "--index", "--only-group",
               "--from"},
        "timeout": {"-s", "-k", "--signal", "--kill-after"},
        "nice": {"-n"}, "env": {"-u", "-C", "-S"}, "ionice": {"-c", "-n"},
        "npx": {"-p", "--package"},
        "stdbuf": {"-i", "-o", "-e"}, "poetry": {"-C", "-P"}, "dotenv": {"-e", "-f"},
    }.get(wrapper, set())  # fmt: skip
    if wrapper == "coverage":
        return _covered_program(words, position)
    while position < len(words):
        word = words[position]
        if word in values:
            position += 2
        elif (
            word.startswith("-")
            or re.match(r"[A-Za-z_]\w*=", word)
            or (wrapper == "timeout" and re.fullmatch(r"[\d.]+[smhd]?", word))
        ):
            position += 1
        else:
            break
    return position


def _covered_program(words: Sequence[str], position: int) -> int:
    """The index of `-m` or the script in `coverage run [options] -m pytest`; else past the end."""
    if words[position : position + 1] != ["run"]:
        return len(words)
    while position + 1 < len(words):
        position += 1
        if words[position] == "-m" or not words[position].startswith("-"):
            return position
    return len(words)


def _texts_run_by(run: Run, read: ReadFile) -> Iterator[tuple[str, str, str | None]]:
    """The shell texts that this program runs, each with its folder and how options reach it."""
    words, program = list(run.words), run.program
    if run.python and run.python[0].startswith("-m "):  # `python -m nox` is nox
        program = run.python[0][3:].replace("_", "-")
        words = [program, *words[run.python[1] + 1 :]]
    if SHELL.match(program):
        yield from _shell_arguments(words[1:], run.folder, read)
    elif program in PACKAGE_MANAGERS and "exec" not in words:
        texts = _only_elsewhere(list(delegated(words, run.folder, read)), run.folder)
        if not texts and program != "npm" and _text(read, run.folder, "package.json"):
            texts = _installed_program(words, run.folder)
        for text, folder in texts:
            dashes = (
                ("" if program in ("yarn", "pnpm", "bun") else " --") if len(texts) == 1 else None
            )
            added = _passed_arguments(words, dashes)
            yield text + added, folder, dashes if dashes is None or "--" not in words else ""
    elif program in SEVERAL_SCRIPTS:
        yield from ((text, run.folder, None) for text in _scripts_named(words, run.folder, read))
    elif program in RECIPES:
        for text, folder in _only_elsewhere(list(delegated(words, run.folder, read)), run.folder):
            yield text, folder, None
    elif program == "tox":
        yield from ((text, run.folder, None) for text in _tox_commands(run.folder, read))
    elif program in SESSIONS:
        code = _text(read, run.folder, SESSIONS[program])
        yield from ((text, run.folder, None) for text in session_commands(code))
    elif program in HOOKED:
        settings = _text(read, run.folder, HOOKS)
        yield from ((text, run.folder, None) for text in hook_commands(settings))
    elif program == "composer":
        scripts = _composer_scripts(words[1:], run.folder, read)
        yield from ((text, run.folder, None) for text in scripts)
    elif "/" in words[0] and not words[0].startswith("/") and not INSTALLED.search(words[0]):
        yield from _shell_script(words[0], run.folder, read)


def _only_elsewhere(texts: list[tuple[str, str]], folder: str) -> list[tuple[str, str]]:
    """Where the command names another folder (`make -C x`), only the texts found there."""
    in_other_folder = [each for each in texts if each[1] != folder]
    return in_other_folder or texts


def _installed_program(words: list[str], folder: str) -> list[tuple[str, str]]:
    """The program of a package that `yarn jest` and `bun run vitest` start, as no script is so
    called."""
    at = 2 if words[1:2] == ["run"] else 1
    own = words[at : words.index("--") if "--" in words else None]
    # `test` is a script alone.
    is_program = own and not own[0].startswith("-") and own[0] != "test"
    return [(" ".join(map(quoted, own)), folder)] if is_program else []


def _scripts_named(words: list[str], folder: str, read: ReadFile) -> list[str]:
    """The scripts of a package.json by names and patterns, such as `run-s lint "test:*"`."""
    package = _text(read, folder, "package.json")
    patterns = [word.replace("**", "*") for word in words[1:] if not word.startswith("-")]
    scripts = table(json_of(package), "scripts")
    names = [name for one in patterns for name in scripts if fnmatchcase(name, one)]
    return _package_scripts(package, names)


def _passed_arguments(words: list[str], dashes: str | None) -> str:
    """What the command passes to the script: the ` -k x` of `npm test -- -k x`."""
    if dashes is None or "--" not in words:
        return ""
    return "".join(f" {quoted(word)}" for word in words[words.index("--") + 1 :])


def _shell_arguments(
    words: list[str], folder: str, read: ReadFile
) -> Iterator[tuple[str, str, str | None]]:
    for position, word in enumerate(words):
        if re.fullmatch(r"-\w*c", word):
            yield from ((text, folder, None) for text in words[position + 1 : position + 2])
            return
        if not word.startswith(("-", "+")):
            yield from _shell_script(word, folder, read)
            return


def _shell_script(path: str, folder: str, read: ReadFile) -> Iterator[tuple[str, str, str | None]]:
    """The text of a shell script of the tree."""
    content = read(posixpath.normpath(posixpath.join(folder, path)))
    if content is None or len(content) > 200_000:
        return
    text = content.decode("utf-8", "replace")
    first = text.partition("\n")[0]
    if text.startswith("#!/bin/sh\n'''exec'"):  # pip's way to a Python whose path is long
        return
    if path.endswith((".sh", ".bash")) or re.match(r"#!.*\b(?:sh|bash|dash|zsh|ksh)\b", first):
        yield text, folder, None


def _composer_scripts(words: list[str], folder: str, read: ReadFile) -> Iterator[str]:
    scripts = table(json_of(_text(read, folder, "composer.json")), "scripts")
    for word in words:
        for text in texts(scripts.get(word)):
            if not text.startswith("@"):
                yield text
            elif text[1:] != word:
                yield f"composer {text[1:]}"


def _text(read: ReadFile, folder: str, name: str) -> str:
    content = read(posixpath.normpath(posixpath.join(folder, name)))
    return (content or b"").decode("utf-8", "replace")


def _tox_commands(folder: str, read: ReadFile) -> Iterator[str]:
    """The commands of all tox environments."""
    for name in ("tox.ini", "setup.cfg"):
        yield from _tox_ini(_text(read, folder, name))
    own, project = (toml_of(_text(read, folder, name)) for name in ("tox.toml", "pyproject.toml"))
    for tool in (own, table(project, "tool")):
        settings = table(tool, "tox") if "tox" in tool else tool
        if isinstance(legacy := settings.get("legacy_tox_ini"), str):
            yield from _tox_ini(legacy)
        yield from _tox_toml(settings, 0)


def _tox_toml(settings: dict[str, object], depth: int) -> Iterator[str]:
    commands = settings.get("commands")
    for command in commands if isinstance(commands, list) else []:
        if isinstance(command, list):
            yield " ".join(quoted(str(word)) for word in command if isinstance(word, str))
    for value in settings.values() if depth < 3 else ():
        if isinstance(value, dict):
            yield from _tox_toml(value, depth + 1)


def _tox_ini(text: str) -> Iterator[str]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in parser.sections():
        if section.startswith(("testenv", "tox:testenv")):
            yield re.sub(r"\{[^{}]*\}", "", parser.get(section, "commands", fallback="") or "")


def session_commands(code: str) -> Iterator[str]:
    """The commands of nox and invoke, written as texts in their file."""
    for call in re.finditer(r"\.run(?:_always|_install)?\(([^()]*)\)", code):
        yield " ".join(re.findall(r"[\"']([^\"'\n]*)[\"']", call[1]))


def hook_commands(text: str) -> Iterator[str]:
    """The commands of pre-commit's hooks that the repository itself defines."""
    try:
        settings = read_yaml(text, HOOKS).value
    except UsageError:
        return
    repos = settings.get("repos") if isinstance(settings, dict) else None
    for one in repos if isinstance(repos, list) else []:
        hooks = one.get("hooks") if isinstance(one, dict) else None
        for hook in hooks if isinstance(hooks, list) else []:
            if isinstance(hook, dict) and isinstance(hook.get("entry"), str):
                yield " ".join([hook["entry"], *map(quoted, texts(hook.get("args")))])


def delegated(words: list[str], folder: str, read: ReadFile) -> Iterator[tuple[str, str]]:
    """The shell texts that make, just or a package manager runs for a command, with folders."""
    options = pairwise(words)
    folders = [folder, *(_join(folder, value) for name, value in options if name in FOLDER_OPTIONS)]
    programs = {PurePosixPath(word).name for word in words[:4]}
    for place in folders:
        for name in (name for program in programs for name in RECIPES.get(program, ())):
            for recipe in _recipes(_decoded(read(_join(place, name))), words[1:]):
                yield recipe, place
        if programs & PACKAGE_MANAGERS:
            for script in _package_scripts(_decoded(read(_join(place, "package.json"))), words[1:]):
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
    scripts = table(json_of(package), "scripts")
    names = ["test" if word == "t" else word for word in words]
    wanted = [f"{when}{name}" for name in names for when in ("pre", "", "post")]
    return [text for name in wanted if isinstance(text := scripts.get(name), str)]


def _decoded(content: bytes | None) -> str:
    return (content or b"")[:200_000].decode("utf-8", "replace")


def _join(folder: str, word: str) -> str:
    return posixpath.normpath(posixpath.join(folder, word))
