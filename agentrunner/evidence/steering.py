"""Which paths are tests, which steer the test tool, and which can run code on the host later.

The tamper guard puts the first two kinds back as they were; T2 watches the third.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import PurePosixPath

TEST_FOLDERS = frozenset(
    {"__tests__", "__snapshots__", "__mocks__", "cypress", "spec", "specs", "t", "testing"}
)
TEST_FOLDER_WORDS = frozenset({"test", "tests", "testdata", "e2e"})
TEST_FILE = re.compile(
    r"^(tests?[._-].*|tests?\.[^.]+|.*[._-]tests?\.[^.]+|.*[._-]spec\.[cm]?[jt]sx?|.*_spec\.rb"
    r"|.*\.(snap|bats|feature|t))$",
    re.IGNORECASE,
)
TEST_CLASS = re.compile(r"^(.*Tests?|Test[A-Z].*)\.(java|kt|kts|groovy|scala|cs|fs|php|swift)$")
STEERING_NAMES = frozenset(
    """conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini tox.toml setup.cfg
    setup.py pyproject.toml .coveragerc noxfile.py manage.py sitecustomize.py usercustomize.py
    package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .mocharc.js .mocharc.cjs .mocharc.json
    .mocharc.yml .mocharc.yaml .taprc .nycrc .c8rc.json .swcrc nx.json turbo.json lerna.json
    deno.json deno.jsonc bunfig.toml Makefile makefile GNUmakefile justfile Justfile .justfile
    Taskfile.yml Cargo.toml build.rs go.mod go.work Rakefile .rspec phpunit.xml phpunit.xml.dist
    CMakeLists.txt meson.build build.gradle build.gradle.kts settings.gradle settings.gradle.kts
    gradle.properties pom.xml Directory.Build.props Directory.Build.targets .runsettings .env .envrc
    .python-version .nvmrc .node-version .tool-versions mise.toml""".split()
)
STEERING_PATTERN = re.compile(
    r"^((jest|vitest|vite|playwright|karma|cypress|babel|ava|tap|wdio)\.(config|setup|workspace)\..*"
    r"|(tsconfig|jsconfig).*\.json|\.babelrc.*|.*\.pth|.*\.egg-link)$"
)
STEERING_PATHS = (".cargo/config.toml", ".cargo/config", ".mocharc", ".config/nextest.toml")
METADATA = (".egg-info", ".dist-info")
"""Folders that announce plugins to whatever imports from the folder they stand in."""

RUNNER_MODULES = frozenset(
    """pytest _pytest pluggy iniconfig packaging exceptiongroup tomli pygments py coverage xdist
    hypothesis nose nose2 mock tox django flask hamcrest assertpy expects numpy pandas
    freezegun""".split()
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
    "**/.husky/**",
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
    return (
        any(_holds_tests(folder.lower()) for folder in pure.parts[:-1])
        or bool(TEST_FILE.match(pure.name))
        or bool(TEST_CLASS.match(pure.name))
    )


def _holds_tests(folder: str) -> bool:
    """`tests`, and also `api_tests`, `Shop.Tests`, `test-data`."""
    return folder in TEST_FOLDERS or not TEST_FOLDER_WORDS.isdisjoint(re.split(r"[._-]", folder))


def is_steering(path: str, named: Collection[str] = (), *, new: bool = False) -> bool:
    """Whether this path steers the test tool: configuration, hooks, a path of `named`.

    `named` are the scripts that the test command runs. A *new* module that shadows the runner
    or the standard library counts when it stands where imports look first: at the top, or
    beside tests.
    """
    pure = PurePosixPath(path)
    if (
        path in named
        or pure.name in STEERING_NAMES
        or STEERING_PATTERN.match(pure.name)
        or path.startswith(STEERING_PATHS)
        or any(part.endswith(METADATA) for part in pure.parts)
    ):
        return True
    return new and _shadows(pure)


def _shadows(path: PurePosixPath) -> bool:
    top = path.parts[0]
    beside_tests = len(path.parts) > 1 and _holds_tests(top.lower())
    first = path.parts[1] if beside_tests else top
    return first.removesuffix(".py") in RUNNER_MODULES and (
        first.endswith(".py") or len(path.parts) > (2 if beside_tests else 1)
    )


def is_executable_config(path: str) -> bool:
    """Whether tools on the user's machine run this file later without being asked (T2).

    A folder with a HEAD is a repository to git, also without the name `.git`.
    """
    parts = PurePosixPath(path).parts
    return matches(path, EXECUTABLE_CONFIG) or ".git" in parts or parts[-1:] == ("HEAD",)
