"""List every command that may test a repository, the most likely first, for trials."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.language_tests import language_tests, node_tests
from agentrunner.discovery.python_project import PythonProject
from agentrunner.discovery.reading import exists, names_inside, read_inside
from agentrunner.discovery.targets import by_script, by_target, recipes
from agentrunner.discovery.workflows import ci_tests, runs_each_environment
from agentrunner.text.lazy_regex import lazy_regex

_TEST_FILE = lazy_regex(r"(?:conftest|(?:run[-_]?)?(?:all[-_]?)?tests?)[^/]*")
"""A test file shows that its folder holds tests, not that it is a project with tests."""
MOST_FOLDERS = 200
"""Folders in which parts are looked for; listing further ones would take longer than it helps."""

_ENVIRONMENTS = (("tox", ".tox"), ("nox", ".nox"))
"""Tools that create environments of their own, and the folders of these."""

MOST = 12
"""Most candidates per repository."""


def candidates_of(repo: Path) -> list[FoundCommand]:
    """Return the commands of CI, then the repository's own test scripts, then those of build files.

    Commands that must install something come after all others, and so do tools that run the tests
    once in each of their environments.
    """
    by_command: dict[str, FoundCommand] = {}
    for found in _find_all(repo):
        by_command.setdefault(found.command, found)
    ranked = sorted(by_command.values(), key=partial(_is_later, repo))
    return ranked[:MOST]


def _is_later(repo: Path, found: FoundCommand) -> bool:
    lines = [line for text in recipes(repo, found.command) for line in text.splitlines()]
    return bool(found.needs) or any(map(runs_each_environment, lines))


def _find_all(repo: Path) -> Iterator[FoundCommand]:
    yield from ci_tests(repo)
    yield from by_script(repo)
    yield from by_target(repo)
    yield from node_tests(repo)
    yield from python_tests(repo)
    yield from language_tests(repo)


def python_tests(repo: Path) -> Iterator[FoundCommand]:
    """Yield test commands of a Python project, the most likely first."""
    project = PythonProject.read(repo)
    for command, where in project.scripts():
        yield FoundCommand(command, where)
    plain = _direct_command(project)
    if plain is not None:
        yield plain
        if project.prefix and plain.command.startswith(project.prefix) and project.environments:
            # Without the tool, which would first check whether everything is up to date.
            bare = re.sub(r"^.*?\brun (?:--\w+ \S+ )*", "", plain.command)
            yield FoundCommand(bare, f"{project.environments[0]}/")
    yield from environment_makers(project, bool(plain))


def environment_makers(project: PythonProject, tests_known: bool) -> Iterator[FoundCommand]:
    """Yield commands of tox, nox and hatch, which install into their own environments first."""
    repo, prefix = project.repo, project.prefix
    places = {
        "tox": "tox.ini" if exists(repo, "tox.ini") else "pyproject.toml",
        "nox": "noxfile.py",
    }
    for tool, folder in _ENVIRONMENTS:
        where = places[tool]
        there = exists(repo, where) and (where != "pyproject.toml" or tool in project.tools)
        if there:
            made = exists(repo, folder)
            needs = "" if made else f"{tool} first installs its environments, with the network"
            yield FoundCommand(f"{prefix}{tool}", where, needs)
    if not tests_known and "hatch" in project.tools and exists(repo, "tests"):
        yield FoundCommand("hatch test", "pyproject.toml", "hatch first installs, with the network")


def _direct_command(project: PythonProject) -> FoundCommand | None:
    """Return the command that runs the test tool itself."""
    repo = project.repo
    where = project.configured_by()
    if where:
        return FoundCommand(f"{project.runner('pytest')}pytest -q", where)
    for name in ("conftest.py", "tests/conftest.py", "test/conftest.py"):
        if exists(repo, name):
            return FoundCommand(f"{project.runner('pytest')}pytest -q", name)
    return _by_files(project)


def _by_files(project: PythonProject) -> FoundCommand | None:
    """Guess the runner of unconfigured tests by the imports of the first test file."""
    repo = project.repo
    for folder in ("tests", "test", "."):
        names = [n for n in names_inside(repo, folder, (".py",)) if Path(n).name.startswith("test")]
        if not names:
            continue
        name = names[0].removeprefix("./")
        if not re.search(r"^\s*(import|from) unittest\b", read_inside(repo, name), re.MULTILINE):
            return FoundCommand(f"{project.runner('pytest')}pytest -q", name)
        packaged = folder == "." or exists(repo, f"{folder}/__init__.py")
        command = "python3 -m unittest" + ("" if packaged else f" discover -s {folder}")
        return FoundCommand(project.prefix + command, name)
    return None


def detect_tests(repo: Path) -> FoundCommand | None:
    """Return how the repository is tested: by CI, else by its build files, else None.

    Nothing is tried: a command that was seen to run is better (`commands/trying.py`).
    """
    return next(iter(candidates_of(repo)), None)


def detect_test(repo: Path) -> str | None:
    """Return the command alone, for `test: auto`."""
    found = detect_tests(repo)
    return found.command if found else None


def first_part(repo: Path) -> str:
    """Return a folder, at most two below the root, that says how it is tested; "" for none."""

    def is_shown(folder: Path) -> bool:
        names = folder.relative_to(repo).parts
        return not any(name[0] == "." or name == "node_modules" for name in names)

    found = (one for depth in ("*", "*/*") for one in sorted(repo.glob(depth)))
    folders = (one for one in found if is_shown(one) and one.is_dir())
    for folder in islice(folders, MOST_FOLDERS):
        if part_of(repo, folder) != ".":
            return str(folder.relative_to(repo))
    return ""


def part_of(repo: Path, folder: Path) -> str:
    """Return the nearest folder at or above `folder` with a test command, relative to `repo`.

    "." for the root: the search ends there in any case.
    """
    if not folder.is_relative_to(repo):
        return "."
    for place in (folder, *folder.parents):
        if place == repo:
            break
        places = (found.where.partition(",")[0] for found in candidates_of(place))
        if not all(map(_TEST_FILE.fullmatch, places)):
            return os.path.relpath(place, repo)
    return "."
