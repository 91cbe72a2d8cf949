"""Which paths are tests, which steer the test tool, and which can run code on the host later.

The tamper guard puts the first two kinds back as they were; T2 watches the third.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePosixPath

TEST_FOLDERS = frozenset(
    {"test", "tests", "__tests__", "spec", "specs", "testdata", "e2e", "__snapshots__"}
)
TEST_FILE = re.compile(
    r"^(test_.*\.py|.*_test\.py|tests?\.py|.*_test\.go|.*[._-](test|spec)\.[cm]?[jt]sx?|.*_spec\.rb"
    r"|.*_test\.rb|.*Tests?\.(java|kt|cs|php|swift)|.*\.snap|.*_test\.(rs|exs?|dart|cc|cpp|c))$"
)
STEERING_NAMES = frozenset(
    """conftest.py pytest.ini .pytest.ini pytest.toml tox.ini setup.cfg pyproject.toml .coveragerc
    noxfile.py sitecustomize.py usercustomize.py package.json .npmrc .yarnrc
    .yarnrc.yml .mocharc.js .mocharc.cjs .mocharc.json .mocharc.yml .mocharc.yaml Makefile makefile
    GNUmakefile justfile Justfile .justfile Taskfile.yml Cargo.toml build.rs go.work Rakefile .rspec
    phpunit.xml phpunit.xml.dist build.gradle build.gradle.kts pom.xml .env .envrc .python-version
    .nvmrc .node-version .tool-versions mise.toml""".split()
)
STEERING_PATTERN = re.compile(
    r"^((jest|vitest|vite|playwright|karma|cypress|babel|ava|tap|wdio)\.(config|setup)\..*"
    r"|\.babelrc.*|.*\.pth)$"
)
STEERING_PATHS = (".cargo/config.toml", ".cargo/config", ".mocharc", ".config/nextest.toml")

RUNNER_MODULES = frozenset(
    """pytest _pytest pluggy iniconfig packaging exceptiongroup tomli pygments py coverage xdist
    hypothesis nose nose2 mock tox django flask""".split()
) | frozenset(sys.stdlib_module_names)

EXECUTABLE_CONFIG = (
    ".gitmodules",
    ".gitattributes",
    ".gitconfig",
    ".claude/**",
    ".codex/**",
    ".cursor/**",
    ".gemini/**",
    ".mcp.json",
    ".vscode/**",
    ".idea/**",
    ".devcontainer/**",
    ".github/workflows/**",
    ".github/actions/**",
    ".gitlab-ci.yml",
    ".husky/**",
    ".pre-commit-config.yaml",
    ".envrc",
    "lefthook.yml",
)
"""What a person's editor, agent, CI or git runs without being asked (threat T2)."""


@lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    """A glob in the style of .gitignore: `**` crosses folders, a bare name matches anywhere."""
    anchored = "/" in pattern.strip("/")
    body = pattern.strip("/")
    out = "" if anchored else "(?:.*/)?"
    position = 0
    while position < len(body):
        if body.startswith("**/", position):
            out += "(?:.*/)?"
            position += 3
        elif body.startswith("**", position):
            out += ".*"
            position += 2
        elif body[position] == "*":
            out += "[^/]*"
            position += 1
        elif body[position] == "?":
            out += "[^/]"
            position += 1
        else:
            out += re.escape(body[position])
            position += 1
    return re.compile(rf"^{out}(?:/.*)?$", re.DOTALL)


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether a repository path matches any glob; a folder's name matches all below it."""
    return any(_glob(pattern).match(path) for pattern in patterns if pattern.strip("/"))


def is_test(path: str) -> bool:
    """Whether this path is a test or what tests read."""
    pure = PurePosixPath(path)
    return bool(TEST_FOLDERS.intersection(pure.parts[:-1])) or bool(TEST_FILE.match(pure.name))


def is_steering(path: str, command: str = "", *, new: bool = False) -> bool:
    """Whether this path steers the test tool: configuration, hooks, a script the command names.

    A *new* module that shadows the runner or the standard library counts when it stands where
    imports look first: at the top, or beside tests.
    """
    pure = PurePosixPath(path)
    if (
        pure.name in STEERING_NAMES
        or STEERING_PATTERN.match(pure.name)
        or path.startswith(STEERING_PATHS)
    ):
        return True
    if path in _paths_named(command):
        return True
    return new and _shadows(pure)


def _shadows(path: PurePosixPath) -> bool:
    top = path.parts[0]
    beside_tests = len(path.parts) > 1 and top in TEST_FOLDERS
    first = path.parts[1] if beside_tests else top
    return first.removesuffix(".py") in RUNNER_MODULES and (
        first.endswith(".py") or len(path.parts) > (2 if beside_tests else 1)
    )


@lru_cache(maxsize=32)
def _paths_named(command: str) -> frozenset[str]:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return frozenset(word.removeprefix("./") for word in words if not word.startswith("-"))


def is_executable_config(path: str) -> bool:
    """Whether tools on the user's machine run this file later without being asked (T2).

    Embedded `.git` folders that a worker made count as well.
    """
    return matches(path, EXECUTABLE_CONFIG) or ".git" in PurePosixPath(path).parts
