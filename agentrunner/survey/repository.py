"""How a repository is tested and made ready, read off its files."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrunner.survey.reading import exists, names_inside, read_inside
from agentrunner.survey.workflows import ci_test_command

_SETUPS = (
    ("uv.lock", "uv sync --frozen"),
    ("poetry.lock", "poetry install --no-interaction"),
    ("pdm.lock", "pdm sync"),
    ("Pipfile.lock", "pipenv sync --dev"),
    ("package-lock.json", "npm ci"),
    ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
    ("yarn.lock", "yarn install --frozen-lockfile"),
    ("bun.lock", "bun install --frozen-lockfile"),
    ("Cargo.lock", "cargo fetch --locked"),
    ("go.sum", "go mod download"),
)
_PYTHON = (
    ("uv.lock", "uv run "),
    ("poetry.lock", "poetry run "),
    ("pdm.lock", "pdm run "),
    ("Pipfile.lock", "pipenv run "),
)
_NODE = (
    ("pnpm-lock.yaml", "pnpm test"),
    ("yarn.lock", "yarn test"),
    ("bun.lock", "bun run test"),
)


@dataclass(frozen=True)
class Found:
    """A command and where it was found: ".github/workflows/test.yml, line 22"."""

    command: str
    where: str


def detect_tests(repo: Path) -> Found | None:
    """How the repository is tested: what CI runs, else what its build files say, else None."""
    for look in _LOOKS:
        if found := look(repo):
            return found
    return None


def detect_test(repo: Path) -> str | None:
    """The command alone, for `test: auto`."""
    found = detect_tests(repo)
    return found.command if found else None


def detect_setup(repo: Path) -> Found | None:
    """What installs the dependencies that a lock file fixes."""
    for name, command in _SETUPS:
        if exists(repo, name):
            return Found(command, name)
    return None


def _by_ci(repo: Path) -> Found | None:
    found = ci_test_command(repo)
    return Found(*found) if found else None


def _by_target(repo: Path) -> Found | None:
    for name, tool in (
        ("Makefile", "make"),
        ("makefile", "make"),
        ("GNUmakefile", "make"),
        ("justfile", "just"),
        ("Justfile", "just"),
    ):
        pattern = r"test\s*:(?![:=])" if tool == "make" else r"@?test(?:\s[^:=]*)?:(?!=)"
        if line := _line_of(read_inside(repo, name), pattern):
            return Found(f"{tool} test", f"{name}, line {line}")
    return None


def _by_package_json(repo: Path) -> Found | None:
    text = read_inside(repo, "package.json")
    script = _mapping(_mapping(_json(text)).get("scripts")).get("test")
    if not isinstance(script, str) or "no test specified" in script:
        return None
    command = next((command for lock, command in _NODE if exists(repo, lock)), "npm test")
    line = _line_of(text, r'.*"test"\s*:')
    return Found(command, f"package.json, line {line}")


def _by_python(repo: Path) -> Found | None:
    prefix = next((prefix for lock, prefix in _PYTHON if exists(repo, lock)), "")
    pyproject = read_inside(repo, "pyproject.toml")
    tools = _mapping(_mapping(_toml(pyproject)).get("tool"))
    if "pytest" in tools:
        line = _line_of(pyproject, r"\s*\[\s*tool\s*\.\s*pytest\b")
        return Found(f"{prefix}pytest -q", f"pyproject.toml, line {line}")
    for name, section in (
        ("pytest.ini", "pytest"),
        ("setup.cfg", "tool:pytest"),
        ("tox.ini", "pytest"),
    ):
        if section in _sections(read_inside(repo, name)):
            return Found(f"{prefix}pytest -q", name)
    if "tox" in tools or exists(repo, "tox.ini"):
        return Found(f"{prefix}tox", "tox.ini" if exists(repo, "tox.ini") else "pyproject.toml")
    for name, command in (("noxfile.py", "nox"), ("conftest.py", "pytest -q")):
        if exists(repo, name):
            return Found(prefix + command, name)
    if exists(repo, "tests/conftest.py"):
        return Found(f"{prefix}pytest -q", "tests/conftest.py")
    return _by_python_tests(repo, prefix)


def _by_python_tests(repo: Path, prefix: str) -> Found | None:
    """Tests that nothing configures: what the first file of them imports tells the runner."""
    for folder in ("tests", "test", "."):
        names = [n for n in names_inside(repo, folder, (".py",)) if Path(n).name.startswith("test")]
        if not names:
            continue
        name = names[0].removeprefix("./")
        if not re.search(r"^\s*(import|from) unittest\b", read_inside(repo, name), re.MULTILINE):
            return Found(f"{prefix}pytest -q", name)
        packaged = folder == "." or exists(repo, f"{folder}/__init__.py")
        command = "python3 -m unittest" + ("" if packaged else f" discover -s {folder}")
        return Found(prefix + command, name)
    return None


def _by_language(repo: Path) -> Found | None:
    for name, command in (("Cargo.toml", "cargo test"), ("go.mod", "go test ./...")):
        if exists(repo, name):
            return Found(command, name)
    return None


_LOOKS: tuple[Callable[[Path], Found | None], ...] = (
    _by_ci,
    _by_target,
    _by_package_json,
    _by_python,
    _by_language,
)
"""In this order: what is run for every change says more than what could be run."""


def _line_of(text: str, pattern: str) -> int:
    """The first line that begins with a match, 0 for none."""
    expression = re.compile(pattern)
    lines = enumerate(text.split("\n"), 1)
    return next((number for number, line in lines if expression.match(line[:500])), 0)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _sections(text: str) -> list[str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    return parser.sections()


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
