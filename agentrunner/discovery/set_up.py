"""Find the set-up command of a repository: it installs what the lock file pins."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.python_project import PythonProject
from agentrunner.discovery.reading import exists, names_inside, read_inside
from agentrunner.git.ignored_content import PACKAGE_FOLDERS
from agentrunner.registry import GRADLE_FILES
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.rooms.registries import asked_for, registries_of

_FILTER = lazy_regex(r"(?m)^[^#\n]*\sfilter=(\S+)")

_SETUPS = (
    ("poetry.lock", "poetry install --no-interaction"),
    ("pdm.lock", "pdm sync"),
    ("Pipfile.lock", "pipenv sync --dev"),
    ("package-lock.json", "npm ci"),
    ("npm-shrinkwrap.json", "npm ci"),
    ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
    ("yarn.lock", "yarn install --frozen-lockfile"),
    ("bun.lock", "bun install --frozen-lockfile"),
    ("bun.lockb", "bun install --frozen-lockfile"),
    ("Cargo.lock", "cargo fetch --locked"),
    ("go.sum", "go mod download"),
    ("Gemfile.lock", "bundle install"),
    ("composer.lock", "composer install --no-interaction"),
    ("mix.lock", "mix deps.get"),
)
LOCKED = frozenset({"uv.lock", *(name for name, _ in _SETUPS)})
"""Files that pin what is installed, so that the set-up command is certain."""
_WITHOUT_LOCK = (
    ("package.json", "npm install"),
    ("Gemfile", "bundle install"),
    ("composer.json", "composer install --no-interaction"),
    # Maven's test plug-in fetches what it needs for this project's kind of tests when it runs them.
    ("pom.xml", "mvn -B -q test -Dmaven.test.failure.ignore"),
    ("Cargo.toml", "cargo fetch"),
)


def detect_setup(repo: Path) -> FoundCommand | None:
    """Return the command that installs the dependencies of a lock file."""
    if exists(repo, "uv.lock"):
        option = PythonProject.read(repo).group_option()
        return FoundCommand("uv sync --frozen" + f" {option}" * bool(option), "uv.lock")
    for name, command in _SETUPS:
        if exists(repo, name):
            if name == "yarn.lock" and exists(repo, ".yarnrc.yml"):
                command = "yarn install --immutable"  # Yarn 2 and later have no --frozen-lockfile
            return FoundCommand(command, name)
    return None


def setup_for(repo: Path, part: str) -> FoundCommand | None:
    """Like `propose_setup`, for the tests of a part of `repo`; the command runs at the root.

    A lock file is preferred to a manifest, and the part's own file to that of the root.
    """
    if part == ".":
        return propose_setup(repo)
    for find in (detect_setup, propose_setup):
        if found := find(repo / part):
            command = f"cd {shlex.quote(part)} && {found.command}"
            return replace(found, command=command)
        if found := find(repo):
            return found
    return None


def set_up_line(repo: Path, part: str, environ: Mapping[str, str], output: str) -> str:
    """Return the line for the task file that sets up the tests of a part, with its hosts.

    `output` is what the test command printed. "" if no command is known. Asks
    tools of this machine for the hosts, and so blocks.
    """
    found = setup_for(repo, part)
    if found is None:
        return ""
    hosts = ", ".join(dict.fromkeys([*registries_of(repo, environ), *asked_for(output)]))
    command = found.command
    if re.search(r"[,:#\"'\[\]{}]", command):
        command = json.dumps(command, ensure_ascii=False)
    return f"setup: {{command: {command}{f', network: [{hosts}]' if hosts else ''}}}"


def propose_setup(repo: Path) -> FoundCommand | None:
    """Like `detect_setup`; without a lock file use the manifest, whose versions may differ."""
    if found := detect_setup(repo):
        return found
    if found := _by_requirements(repo):
        return found
    for name, command in _WITHOUT_LOCK:
        if exists(repo, name):
            return FoundCommand(command, name)
    if name := next((name for name in GRADLE_FILES if exists(repo, name)), ""):
        # As Maven: running the tests fetches what they need; red ones are no failed set-up.
        gradle = "./gradlew" if exists(repo, "gradlew") else "gradle"
        command = f"{gradle} --no-daemon test --continue || {gradle} --no-daemon testClasses"
        return FoundCommand(command, name)
    if sln := names_inside(repo, ".", (".sln", ".csproj", ".slnx")):
        return FoundCommand("dotnet restore", sln[0].removeprefix("./"))
    return None


def _by_requirements(repo: Path) -> FoundCommand | None:
    """Return a command that installs into a project environment, which the sandbox then finds."""
    project = PythonProject.read(repo)
    make = "python3 -m venv .venv && .venv/bin/pip install "
    if project.test_extra:
        return FoundCommand(f"{make}-e '.[{project.test_extra}]'", "pyproject.toml")
    if option := project.group_option():
        return FoundCommand(f"{make}-e . {option}", "pyproject.toml")
    for name in project.requirement_files:
        return FoundCommand(f"{make}-r {name}", name)
    return None


def not_taken_along(checkout: Path, there: Collection[str], setting: str) -> list[str]:
    """Return a sentence if installed packages of a checkout are missing elsewhere, as a list.

    `there` are the names at the top of the other place. `setting` is the way to give a set-up
    command, with `{}` for the quoted command.
    """
    names = sorted(name for name in PACKAGE_FOLDERS.difference(there) if (checkout / name).is_dir())
    if not names:
        return []
    found = detect_setup(checkout)
    command = shlex.quote(found.command) if found else "CMD"
    message = (
        f"{', '.join(names)} of your checkout {'is' if len(names) == 1 else 'are'} not taken along"
    )
    return [f"{message}, and no set-up is given: {setting.format(command)}"]


def filters_of(repo: Path) -> list[str]:
    """Return filters in the top-level attributes, such as `lfs`: git runs a program for each."""
    return sorted(set(_FILTER.findall(read_inside(repo, ".gitattributes"))))
