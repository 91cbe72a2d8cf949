"""What a Python project says about its tests: runner, dependency groups, environments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentrunner.discovery.found import line_of
from agentrunner.discovery.reading import exists, names_inside, read_inside
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.files import ini_of, table, texts, toml_of

_NAME = lazy_regex(r"^\s*([A-Za-z0-9][\w.-]*)")
_PREFIXES = (
    ("uv.lock", "uv run "),
    ("poetry.lock", "poetry run "),
    ("pdm.lock", "pdm run "),
    ("Pipfile.lock", "pipenv run "),
)


class PythonProject(Struct, frozen=True):
    """A Python project's own files, read as data."""

    repo: Path
    text: str = ""
    """The content of pyproject.toml."""
    tables: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, repo: Path) -> PythonProject:
        """Read the project of this folder; it is empty where there is none."""
        text = read_inside(repo, "pyproject.toml")
        return cls(repo, text, toml_of(text))

    @property
    def tools(self) -> dict[str, object]:
        """The table `tool`."""
        return table(self.tables, "tool")

    @property
    def prefix(self) -> str:
        """The prefix that runs a program in the environment of the lock file's tool: "uv run "."""
        found = next((text for lock, text in _PREFIXES if exists(self.repo, lock)), "")
        return found or ("uv run " if "uv" in self.tools and not self.environments else "")

    def runner(self, program: str) -> str:
        """The prefix for a test program, with the group that installs it if one is needed."""
        option = self.group_option(program) if self.prefix == "uv run " else ""
        return self.prefix + (f"{option} " if option else "")

    def group_option(self, program: str = "pytest") -> str:
        """Return `--group tests` if only that group installs the program; "" if a default does.

        The group that tox runs the tests with is named in any case: it holds what they need.
        """
        groups = table(self.tables, "dependency-groups")
        holding = [name for name in groups if program in _group(groups, name)]
        if named := [name for name in self._groups_of_tox() if name in holding]:
            return f"--group {named[0]}"
        default = self.default_groups
        own = texts(table(self.tables, "project").get("dependencies"))
        dev = texts(table(self.tools, "uv").get("dev-dependencies"))
        if program in _names([*own, *dev]):
            return ""
        if holding:
            if any(name in default for name in holding):
                return ""
            return f"--group {min(holding, key=_group_preference)}"
        extra = self._extra(program)
        return f"--extra {extra}" if extra else ""

    def _groups_of_tox(self) -> list[str]:
        """The dependency groups of the environments that tox runs by default."""
        base = table(self.tools, "tox", "env_run_base")
        old = self._ini("tox.ini").get("testenv", "dependency_groups", fallback="")
        return [*texts(base.get("dependency_groups")), *re.split(r"[\s,]+", old)]

    @property
    def default_groups(self) -> list[str]:
        """The groups that `uv sync` installs by default."""
        chosen = table(self.tools, "uv").get("default-groups")
        groups = list(table(self.tables, "dependency-groups"))
        return groups if chosen == "all" else texts(chosen) if chosen is not None else ["dev"]

    @property
    def test_extra(self) -> str:
        """The extra that installs pytest, "" for none."""
        return self._extra("pytest")

    def _extra(self, program: str) -> str:
        extras = table(self.tables, "project", "optional-dependencies")
        holding = [name for name, needs in extras.items() if program in _names(texts(needs))]
        return min(holding, key=_group_preference) if holding else ""

    @property
    def requirement_files(self) -> list[str]:
        """Requirement files that install pytest."""
        names = [
            name.removeprefix("./")
            for folder in (".", "requirements")
            for name in names_inside(self.repo, folder, (".txt",))
            if "requirements" in name
        ]
        return [
            name for name in names if "pytest" in _names(read_inside(self.repo, name).split("\n"))
        ]

    def configured_by(self) -> str:
        """Return where pytest is configured, with the line; "" if it is not."""
        if "pytest" in self.tools:
            line = line_of(self.text, r"\s*\[\s*tool\s*\.\s*pytest\b")
            return f"pyproject.toml, line {line}"
        for name, section in (
            ("pytest.ini", "pytest"),
            ("setup.cfg", "tool:pytest"),
            ("tox.ini", "pytest"),
        ):
            if self._ini(name).has_section(section):
                return name
        return ""

    def _ini(self, name: str) -> RawConfigParser:
        return ini_of(read_inside(self.repo, name))

    def scripts(self) -> list[tuple[str, str]]:
        """Return commands called `test` in a table of the project's own tool."""
        tables = (
            ("pdm run ", ("pdm", "scripts")),
            ("poe ", ("poe", "tasks")),
            ("task ", ("taskipy", "tasks")),
            ("hatch run ", ("hatch", "envs", "default", "scripts")),
        )
        found = []
        for start, place in tables:
            if "test" in table(self.tools, *place):
                line = line_of(self.text, r"\s*test\s*=|.*\.test\]")
                where = f"pyproject.toml, line {line}" if line else "pyproject.toml"
                before = "" if start in ("pdm run ", "hatch run ") else self.prefix
                found.append((f"{before}{start}test", where))
        return found

    @property
    def environments(self) -> list[str]:
        """Existing virtual environments at the top of the repository."""
        return [name for name in (".venv", "venv") if exists(self.repo, f"{name}/pyvenv.cfg")]

    def has(self, program: str) -> bool:
        """Whether an environment of the project has this program."""
        return any(exists(self.repo, f"{name}/bin/{program}") for name in self.environments)


def _group_preference(name: str) -> tuple[bool, int, str]:
    """Sort key of groups: names that start with "test" first, then the shortest."""
    return (not name.lower().startswith("test"), len(name), name)


def _group(groups: Mapping[str, Any], name: str, depth: int = 0) -> set[str]:
    """Return the package names of a group, including those of groups it includes."""
    content = groups.get(name)
    found = set(_names(texts(content)))
    for item in content if isinstance(content, list) and depth < 10 else ():
        included = table(item).get("include-group")
        if isinstance(included, str):
            found |= _group(groups, included, depth + 1)
    return found


def _names(requirements: Iterable[str]) -> set[str]:
    hits = (_NAME.match(text) for text in requirements)
    return {hit[1].lower().replace("_", "-") for hit in hits if hit}
