"""Find the test commands that a repository's CI runs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentrunner.config.yaml_text import Path as KeyPath
from agentrunner.config.yaml_text import YamlTree, read_yaml
from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.language_tests import built_first, missing_packages
from agentrunner.discovery.python_project import PythonProject
from agentrunner.discovery.reading import exists, names_inside, read_inside
from agentrunner.discovery.targets import SCRIPT, installs
from agentrunner.errors import UsageError
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.files import table

_OF_GITLAB = ".gitlab-ci.yml"
_LINE = 300
_MOST = 3
"""Most commands taken from CI."""
_COMMAND = lazy_regex(
    r"""(?:[A-Z_][A-Z0-9_]*=[\w./:-]*\s+)*                # variables set for it
    (?:(?:uv|poetry|pdm|pipenv|hatch|rye)\s+run\s+(?:--?[\w-]+(?:[=\s][\w.-]+)?\s+)*
      |npx\s+|bundle\s+exec\s+)?
    (?:python3?\s+-m\s+(?:pytest|unittest)|pytest|tox|nox|hatch\s+test
      |(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?test|vitest|jest|deno\s+test
      |cargo\s+(?:test|nextest\s+run)|go\s+test|make\s+(?:test|check)|just\s+test|task\s+test
      |rspec|rake(?:\s+test|\s+spec)?(?!\S|\s+\w)|mix\s+test|dotnet\s+test|ctest|composer\s+test
      |(?:\./)?vendor/bin/phpunit|prove|swift\s+test|dart\s+test
      |(?:\./)?(?:gradlew|mvnw)\s+(?:-[\w-]+\s+)*test|gradle\s+test|mvn\s+(?:-[\w-]+\s+)*test
      |(?P<script>(?:\./)?(?:[\w.-]+/)*[\w.-]*test[\w.-]*)(?!\s+[^-\s]))
    (?=$|[\s:])[^|&;<>`$\\]*""",
    re.VERBOSE,
)
"""A plain command: nothing that only makes sense in CI, and no second command."""
_EXPRESSION = lazy_regex(r"\$\{\{\s*env\.(\w+)\s*\}\}|\$\{(\w+)\}|\$(\w+)")
_PLAIN_VALUE = lazy_regex(r"[\w./:= -]*")
_ENVIRONMENTS = lazy_regex(r"\b(tox|nox|hatch)\b")
_PYTEST_OPTIONS = lazy_regex(
    r"\s(?:(?:-n|--numprocesses|--dist|--maxprocesses)(?:=|\s+|(?<=-n))\w+"
    r"|--(?:cov-report|cov-config|junit-?xml|color|report-log)\s+[^\s-]\S*"
    r"|--(?:cov|cov-\w[\w-]*|junit-?xml|color|report-log)(?:=\S*|(?=\s|$)))(?=\s|$)"
)
"""Options of pytest for CI's machines and reports: many processes, coverage, files."""
_GO_OPTIONS = lazy_regex(
    r"\s--?(?:race|cover|v|count(?:=|\s+)\d+|(?:coverprofile|covermode|coverpkg)(?:=\S*|\s+\S+))"
    r"(?=\s|$)"
)
_COVERAGE = lazy_regex(r"\s(?:--\s+)?--coverage(?:-[\w-]+)?(?:=\S*)?(?=\s|$)")
_CI_OPTIONS = (
    (lazy_regex(r"\bpytest\b"), _PYTEST_OPTIONS),
    (lazy_regex(r"\bgo\s+test\b"), _GO_OPTIONS),
    (lazy_regex(r"\b(?:npm|pnpm|yarn|bun|jest|vitest|phpunit)\b"), _COVERAGE),
)
"""By tool, what only CI needs of it: a report in a file, coverage, a detector of races."""
_UV = lazy_regex(r"uv run (?=(?:python3? -m )?pytest\b)")
_SELECTION = lazy_regex(r"\s(?:-e|-f|-s|--session|--skip-env)\b")
"""Only some of the tool's environments: linters, documentation."""


class _Step(Struct, frozen=True):
    """A text that CI runs in the root of the repository."""

    path: KeyPath
    text: str
    env: Mapping[str, str]


def ci_tests(repo: Path) -> list[FoundCommand]:
    """Return the test commands of the CI files, the one that a contributor would type first.

    A file called test or ci comes before one that releases and also tests. The shortest of a file's
    commands runs the most. Tools that install environments of their own come last.
    """
    ranked: list[tuple[tuple[bool, bool, int, int, int], FoundCommand]] = []
    for name, tree, step in _steps(repo):
        for offset, line in _lines(step):
            maker = bool(_ENVIRONMENTS.search(line))
            if not _is_test(repo, line) or (maker and _SELECTION.search(line)):
                continue
            where = f"{name}, line {_line(tree, step.path, step.text, offset)}"
            found = FoundCommand(_runnable(repo, line), where, _needs(repo, line, maker))
            other = re.search(r"test|ci\b", name.rsplit("/", 1)[-1]) is None
            length = (len(line.split()), len(line), len(ranked))
            ranked.append(((maker, other, *length), found))
    return _shortest([found for _, found in sorted(ranked, key=lambda item: item[0])])


def runs_each_environment(command: str) -> bool:
    """Whether a command runs the tests in one environment after the other, as `tox run` does."""
    words = command.split()
    return ("tox" in words or "nox" in words) and not _SELECTION.search(command)


def test_steps(repo: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the file and CI's variables of each CI step that runs a test command."""
    for name, _, step in _steps(repo):
        if any(_is_test(repo, line) for _, line in _lines(step)):
            yield name, step.env


def _shortest(ranked: Sequence[FoundCommand]) -> list[FoundCommand]:
    """Keep each tool's first command, which runs the most; the others select some of its tests."""
    kept: dict[str, FoundCommand] = {}
    for found in ranked:
        tool = re.split(r"\s-|\s\S*/|:", found.command)[0]
        kept.setdefault(tool, found)
    return list(kept.values())[:_MOST]


def ci_services(repo: Path) -> list[tuple[str, str]]:
    """Return what CI starts besides the tests (image or name), each with its file."""
    found = []
    for name, tree in _workflows(repo):
        whole = table(tree.value)
        jobs = [whole, *whole.values()] if name == _OF_GITLAB else table(whole, "jobs").values()
        for services in (table(job).get("services") for job in jobs):
            if isinstance(services, dict):
                started = [table(one).get("image") or key for key, one in services.items()]
            else:
                listed = services if isinstance(services, list) else []
                started = [table(one).get("name") or one for one in listed]
            found += [(str(one), name) for one in started]
    return found


def _workflows(repo: Path) -> Iterator[tuple[str, YamlTree]]:
    """Yield the CI files that can be read, by their names."""
    for name in [*names_inside(repo, ".github/workflows", (".yml", ".yaml")), _OF_GITLAB]:
        with contextlib.suppress(UsageError):
            yield name, read_yaml(read_inside(repo, name), name)


def _steps(repo: Path) -> Iterator[tuple[str, YamlTree, _Step]]:
    for name, tree in _workflows(repo):
        for step in _gitlab(tree.value) if name == _OF_GITLAB else _github(tree.value):
            yield name, tree, step


def _lines(step: _Step) -> Iterator[tuple[int, str]]:
    """Yield the step's commands with the workflow's variables inserted, continued lines joined."""
    waiting, start = "", 0
    for offset, line in enumerate(step.text.split("\n")):
        start = start if waiting else offset
        waiting += line.strip()
        if waiting.endswith("\\"):
            waiting = waiting[:-1].rstrip() + " "
            continue
        if len(waiting) < _LINE:
            yield start, _resolve(waiting, step.env)
        waiting = ""


def _resolve(line: str, env: Mapping[str, str]) -> str:
    """Replace variables in the line by their values, except those without a plain value."""

    def value(hit: re.Match[str]) -> str:
        found = env.get(hit[1] or hit[2] or hit[3])
        return hit[0] if found is None or not _PLAIN_VALUE.fullmatch(found) else found

    quoted = re.compile(rf"\"(?:{_EXPRESSION.pattern})\"")
    line = quoted.sub(lambda hit: value(_EXPRESSION.search(hit[0]) or hit), line)
    return " ".join(_EXPRESSION.sub(value, line).split())


def _is_test(repo: Path, line: str) -> bool:
    hit = _COMMAND.fullmatch(line)
    if hit is None:
        return False
    script = hit["script"]
    named = script and "/" in script and SCRIPT.fullmatch(script.rsplit("/", 1)[-1])
    return not script or bool(named and (repo / script).is_file())


def _runnable(repo: Path, line: str) -> str:
    """Add what creates the Makefile or build first; adapt pytest commands for people."""
    if re.match(r"make (test|check)$", line) and not exists(repo, "Makefile"):
        for name, first in (("Makefile.PL", "perl Makefile.PL"), ("configure", "./configure")):
            if exists(repo, name):
                return f"{first} && {line}"
    if line.startswith("ctest"):
        return built_first(repo, line)
    return _without_ci_options(repo, line)


def _without_ci_options(repo: Path, line: str) -> str:
    """Return a command as a contributor types it; pytest's with the group that installs it."""
    for tool, options in _CI_OPTIONS:
        before = "" if tool.search(line) else line
        while before != line:
            before, line = line, options.sub("", line)
    if _UV.match(line) and (option := PythonProject.read(repo).group_option()):
        line = line.replace("uv run ", f"uv run {option} ", 1)
    return line


def _needs(repo: Path, line: str, maker: bool) -> str:
    if maker:
        tool = _ENVIRONMENTS.findall(line)[-1]
        if exists(repo, f".{tool}"):
            return ""
        return f"{tool} first installs its environments, with the network"
    if re.match(r"(npx|npm|pnpm|yarn|bun|vitest|jest)\b", line):
        return missing_packages(repo)
    first = line.split()[0]
    if "/" in first and not exists(repo, first):
        return f"{first} is not there yet"
    return installs(repo, line)


def _line(tree: YamlTree, path: KeyPath, text: str, offset: int) -> int:
    """Return the line number in the file; a block's text begins in the line after its key."""
    place = tree.place(path)
    block = "\n" in text or bool(re.search(r":\s*[|>][+-]?\d?\s*(?:#.*)?$", place.source_line))
    return (place.line or 0) + offset + (1 if block else 0)


def _github(value: Any) -> Iterator[_Step]:
    """Yield `run:` texts of steps that run in the repository's root."""
    for job, content in table(value, "jobs").items():
        steps = table(content).get("steps")
        steps = steps if isinstance(steps, list) else []
        # The tests of another repository that a step checks out would be run.
        if "defaults" in table(content) or any("repository" in table(s, "with") for s in steps):
            continue
        env = {**_env(value), **_env(content)}
        for index, step in enumerate(steps):
            run = table(step).get("run")
            if isinstance(run, str) and "working-directory" not in step:
                yield _Step(("jobs", job, "steps", index, "run"), run, {**env, **_env(step)})


def _env(content: object, key: str = "env") -> dict[str, str]:
    return {name: _text_of(value) for name, value in table(content, key).items()}


def _text_of(value: Any) -> str:
    """Format a value as CI passes it to a process: YAML's true becomes the text "true"."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _gitlab(value: Any) -> Iterator[_Step]:
    """Yield the `script:` lines of all jobs."""
    for job, content in table(value).items():
        script = table(content).get("script")
        env = {**_env(value, "variables"), **_env(content, "variables")}
        if isinstance(script, str):
            yield _Step((job, "script"), script, env)
        for index, line in enumerate(script if isinstance(script, list) else ()):
            if isinstance(line, str):
                yield _Step((job, "script", index), line, env)
