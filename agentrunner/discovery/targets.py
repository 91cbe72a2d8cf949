"""Targets and scripts that a repository calls its tests: Makefile, justfile, Taskfile, bin/test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agentrunner.discovery.found import FoundCommand, line_of
from agentrunner.discovery.reading import exists, names_inside, read_inside
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.results.commands import texts_run

_FILES = (
    ("Makefile", "make"),
    ("makefile", "make"),
    ("GNUmakefile", "make"),
    ("justfile", "just"),
    ("Justfile", "just"),
    (".justfile", "just"),
    ("Taskfile.yml", "task"),
    ("Taskfile.yaml", "task"),
)
_PATTERNS = {
    "make": r"(?P<name>{0})\s*:(?![:=])",
    "just": r"@?(?P<name>{0})(?:\s[^:=]*)?:(?!=)",
    "task": r"  (?P<name>{0}):\s*$",
}
_SCRIPT_FOLDERS = ("scripts", "script", "bin", "tools", "dev", ".")
SCRIPT = lazy_regex(r"(?:run[-_]?)?(?:all[-_]?)?tests?(?:\.sh|\.py|\.bash)?")
"""Names of scripts that run all tests."""
INSTALLS = lazy_regex(
    r"\b(?:go (?:get|install|mod download)|pip3? install|npm (?:ci|i|install)"
    r"|(?:yarn|pnpm|bun|composer|bundle|gem|poetry|pipenv|conda|cpanm?) (?:install|add)"
    r"|uv (?:sync|pip install)|pdm (?:sync|install)|apt(?:-get)? install|brew install|cargo install"
    r"|curl|wget|git clone)\b[^\n]*"
)
"""A step that needs the network, unless what it fetches is already present: reason for a remark and
for a lower rank. Only a trial shows what really happens.
"""


def by_target(repo: Path) -> Iterator[FoundCommand]:
    """Yield `make test`, `just test` or `task test`; the target `check` if there is no `test`."""
    for name, tool in _FILES:
        text = read_inside(repo, name)
        for target in ("test", "tests", "check") if tool == "make" else ("test", "tests"):
            if line := line_of(text, _PATTERNS[tool].format(target)):
                command = f"{tool} {target}"
                yield FoundCommand(command, f"{name}, line {line}", installs(repo, command))
                break


def by_script(repo: Path) -> Iterator[FoundCommand]:
    """Yield executables that are called test: `scripts/test`, `./run_tests.sh`."""
    for folder in _SCRIPT_FOLDERS:
        for path in names_inside(repo, folder, ("",)):
            name = path.removeprefix("./")
            starts = os.access(repo / name, os.X_OK) and read_inside(repo, name).startswith("#!")
            if SCRIPT.fullmatch(name.rsplit("/", 1)[-1]) and starts:
                command = name if "/" in name else f"./{name}"
                yield FoundCommand(command, name, installs(repo, command, name))


def installs(repo: Path, command: str, script: str = "") -> str:
    """Return what the command fetches before it tests, as a sentence; "" if nothing is found.

    Recipes and scripts that it runs are followed; `script` is one that no shell need run.
    """
    for text in [*recipes(repo, command), read_inside(repo, script) if script else ""]:
        if hit := INSTALLS.search(text):
            return f"it runs `{hit[0].strip()[:60]}` first"
    return ""


def recipes(repo: Path, command: str) -> list[str]:
    """Return the command, and the recipes and scripts of the repository that it runs."""

    def read(path: str) -> bytes | None:
        return to_bytes(read_inside(repo, path)) if exists(repo, path) else None

    return texts_run(command, ".", read)
