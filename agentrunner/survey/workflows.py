"""The test command that a repository's CI runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentrunner.errors import UsageError
from agentrunner.survey.reading import names_inside, read_inside
from agentrunner.task.yaml_text import Path as KeyPath
from agentrunner.task.yaml_text import Tree, read_yaml

_LINE = 300
_COMMAND = re.compile(
    r"""(?:[A-Z_][A-Z0-9_]*=[\w./:-]*\s+)*                # variables set for it
    (?:(?:uv|poetry|pdm|pipenv|hatch|rye)\s+run\s+(?:--?[\w-]+\s+)*|npx\s+|bundle\s+exec\s+)?
    (?:python3?\s+-m\s+(?:pytest|unittest)|pytest|tox|nox|hatch\s+test
      |(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?test|vitest|jest|deno\s+test
      |cargo\s+(?:test|nextest\s+run)|go\s+test|make\s+(?:test|check)|just\s+test
      |rspec|rake\s+test|mix\s+test|dotnet\s+test|ctest|composer\s+test|(?:\./)?vendor/bin/phpunit
      |(?:\./)?(?:gradlew|mvnw)\s+test|gradle\s+test|mvn\s+test)
    (?=$|[\s:])[^|&;<>`$\\]*""",
    re.VERBOSE,
)
"""A plain command: nothing that only means something in CI, and no second command."""


def ci_test_command(repo: Path) -> tuple[str, str] | None:
    """The first test command of the CI files and where it stands, or None."""
    files = names_inside(repo, ".github/workflows", (".yml", ".yaml"))
    # A workflow called test or ci rather than one that releases and also tests.
    files.sort(key=lambda name: re.search(r"test|ci\b", name.rsplit("/", 1)[-1]) is None)
    for name in [*files, ".gitlab-ci.yml"]:
        try:
            tree = read_yaml(read_inside(repo, name), name)
        except UsageError:
            continue
        scripts = _gitlab(tree.value) if name == ".gitlab-ci.yml" else _github(tree.value)
        for path, text in scripts:
            for offset, line in enumerate(text.split("\n")):
                if len(line) < _LINE and _COMMAND.fullmatch(line.strip()):
                    return line.strip(), f"{name}, line {_line(tree, path, text, offset)}"
    return None


def _line(tree: Tree, path: KeyPath, text: str, offset: int) -> int:
    """A block's text begins in the line after its key."""
    place = tree.place(path)
    block = "\n" in text or bool(re.search(r":\s*[|>][+-]?\d?\s*(?:#.*)?$", place.source_line))
    return (place.line or 0) + offset + (1 if block else 0)


def _github(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """`run:` texts of steps that run in the repository's root."""
    for job, content in _mapping(_mapping(value).get("jobs")).items():
        if "defaults" in _mapping(content):
            continue
        steps = _mapping(content).get("steps")
        for index, step in enumerate(steps if isinstance(steps, list) else ()):
            run = _mapping(step).get("run")
            if isinstance(run, str) and "working-directory" not in step:
                yield ("jobs", job, "steps", index, "run"), run


def _gitlab(value: Any) -> Iterator[tuple[KeyPath, str]]:
    """`script:` lines of all jobs."""
    for job, content in _mapping(value).items():
        script = _mapping(content).get("script")
        if isinstance(script, str):
            yield (job, "script"), script
        for index, line in enumerate(script if isinstance(script, list) else ()):
            if isinstance(line, str):
                yield (job, "script", index), line


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
