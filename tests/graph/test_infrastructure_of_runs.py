"""What a suite needs around it is said before a worker is paid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import EnvironmentNotReady
from tests.kit.metas import finish, plan, work
from tests.kit.project import PYTEST, Project
from tests.kit.runs import FIX, SMALL, TEST, Run

CI = "env:\n  TZ: Asia/Tokyo\n  LANG: C\njobs:\n  a:\n    steps:\n      - run: make test\n"
AT_ONCE = {"meta": {"max_loops": 0}}


def test_what_ci_sets_is_in_the_header_and_what_the_task_sets_reaches_the_tests(
    tmp_path: Path,
) -> None:
    run = Run(Project.make(tmp_path, {**SMALL, ".github/workflows/ci.yml": CI}))
    test = f'{TEST} && test "$LANG" = C'
    script = [plan(), work(), finish()]
    run.start(script, FIX, test=test, env={"LANG": "C"}, runner=AT_ONCE)
    assert run.result["test"]["exit_code"] == 0
    (started,) = run.project.told("run_started")
    assert started["header"]["env"] == {"LANG": "C"}
    (notice,) = [one for one in started["header"]["notices"] if "task.env" in one]
    assert "ci.yml sets" in notice and 'task.env: {TZ: "Asia/Tokyo"}' in notice


def test_a_red_suite_that_wants_a_server_is_told_of_in_one_sentence(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    test = f"{TEST} || (echo could not connect to server: no route; exit 1)"
    run.start([plan(), work(), finish()], FIX, test=test, runner=AT_ONCE)
    (needs,) = [one for one in run.project.told("warning") if one["code"] == "suite-needs"]
    assert "it wants a database or another server" in needs["message"]
    events = [one["event"] for one in run.project.events]
    assert run.project.events.index(needs) < events.index("worker_started")


def test_a_green_suite_needs_nothing_whatever_the_files_say(tmp_path: Path) -> None:
    services = f"{CI}    services:\n      db:\n        image: postgres\n"
    run = Run(Project.make(tmp_path, {**SMALL, ".github/workflows/ci.yml": services}))
    run.start([plan(), work(), finish()], "true", test="true", runner=AT_ONCE)
    assert "suite-needs" not in [one["code"] for one in run.project.told("warning")]


UNITTEST = (
    "import unittest\nimport {module}\n\n\nclass Test(unittest.TestCase):\n"
    "    def test_total(self):\n        self.assertEqual({module}.total(), 1)\n"
)
PYPROJECT = '[project]\nname = "shop"\nversion = "1"\ndependencies = ["nosuchpkg>=1"]\n'
PACKAGE = '{"name": "shop", "dependencies": {"nosuchpkg": "1"}}'
NODE_TEST = (
    "const test = require('node:test');\nconst {{ total }} = require('{module}');\n"
    "test('total', () => total());\n"
)
LACKING = pytest.mark.parametrize(
    ("manifest", "text", "file", "test", "own", "command"),
    [
        ("pyproject.toml", PYPROJECT, "tests/test_total.py", UNITTEST, "shop", PYTEST),
        ("pyproject.toml", PYPROJECT, "test_total.py", UNITTEST, "shop", "python3 -m unittest"),
        ("package.json", PACKAGE, "total.test.js", NODE_TEST, "./shop", "node --test"),
    ],
    ids=["pytest", "unittest", "node"],
)


@LACKING
def test_a_package_that_is_declared_and_not_installed_is_told_before_anybody_is_paid(
    tmp_path: Path, manifest: str, text: str, file: str, test: str, own: str, command: str
) -> None:
    run = Run(Project.make(tmp_path, {manifest: text, file: test.format(module="nosuchpkg")}))
    script = [plan(), work(), finish()]
    with pytest.raises(EnvironmentNotReady) as raised:
        run.start(script, "true", test=command, title="Mend it.", runner=AT_ONCE)
    assert f"the package nosuchpkg is named in {manifest}" in str(raised.value.details)
    assert (raised.value.exit_code, raised.value.nothing_spent) == (5, True)
    assert run.project.told("worker_started") == []


@pytest.mark.series(3)
@LACKING
def test_a_module_that_is_still_to_be_written_is_red(
    tmp_path: Path, manifest: str, text: str, file: str, test: str, own: str, command: str
) -> None:
    run = Run(Project.make(tmp_path, {manifest: text, file: test.format(module=own)}))
    run.start([plan(), work(), finish()], "true", test=command, title="Mend it.", runner=AT_ONCE)
    assert run.result["worker_runs"] == 1
    title = "Write nosuchpkg."
    files = {manifest: text, file: test.format(module="nosuchpkg")}
    run = Run(Project.make(tmp_path / "asked", files))
    run.start([plan(), work(), finish()], "true", test=command, title=title, runner=AT_ONCE)
    assert run.result["worker_runs"] == 1


COMPOSER = '{"require-dev": {"%s": "*"}, "scripts": {"test": "tool"}}'
MADE_BY = '{"packages-dev": [{"name": "acme/kit", "bin": ["bin/tool"]}]}'


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (".venv/bin/python -m unittest", {}),
        ("vendor/bin/tool -q", {}),
        ("env A=1 ./vendor/bin/tool", {"composer.json": COMPOSER % "acme/tool"}),
        ("vendor/bin/tool", {"composer.json": COMPOSER % "acme/kit", "composer.lock": MADE_BY}),
    ],
    ids=["a test tool", "no manifest", "named", "of a named package"],
)
def test_a_test_tool_or_what_git_ignores_has_to_be_installed_and_no_worker_can_write_it(
    tmp_path: Path, command: str, files: dict[str, str]
) -> None:
    script = [plan(), work(), finish()]
    run = Run(Project.make(tmp_path, {**SMALL, **files, ".gitignore": "vendor/\n"}))
    with pytest.raises(EnvironmentNotReady) as raised:
        run.start(script, FIX, test=command, title="Fix the Python.", runner=AT_ONCE)
    why = "it runs the tests" if "unittest" in command else "git ignores it"
    assert f"not found, and {why}" in str(raised.value.details)
    assert run.project.told("worker_started") == []


@pytest.mark.parametrize(
    ("ignored", "command", "title", "more"),
    [
        ("", "vendor/bin/tool", "Fix it.", {}),
        ("vendor/", "vendor/bin/tool", "Use Tool for the tests.", {}),
        ("vendor/", "true; vendor/bin/tool", "Fix it.", {}),
        ("vendor/", "vendor/bin/tool", "Fix it.", {"setup": {"command": "true"}}),
        ("vendor/", "vendor/bin/tool", "Add tests.", {}),
    ],
    ids=["not ignored", "asked for", "built by the command", "set up", "not in the manifest"],
)
def test_a_program_that_may_be_written_or_built_is_red(
    tmp_path: Path, ignored: str, command: str, title: str, more: dict[str, Any]
) -> None:
    manifest = {"composer.json": COMPOSER % "acme/kit"} if title == "Add tests." else {}
    run = Run(Project.make(tmp_path, {**SMALL, **manifest, ".gitignore": ignored}))
    script = [plan(), work(), finish()]
    run.start(script, FIX, test=command, title=title, runner=AT_ONCE, **more)
    assert run.result["worker_runs"] == 1
