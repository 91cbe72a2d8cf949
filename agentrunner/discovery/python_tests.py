"""Find the test commands of a Python project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.python_project import PythonProject
from agentrunner.discovery.reading import exists, names_inside, read_inside

_ENVIRONMENTS = (("tox", ".tox"), ("nox", ".nox"))
"""Tools that create environments of their own, and the folders of these."""


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
