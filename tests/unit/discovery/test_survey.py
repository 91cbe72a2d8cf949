"""What is read off repositories, friendly and hostile, and the file made of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrunner.commands.init import render_task_file
from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.prd import describe_check
from agentrunner.discovery.agents import available_planners, available_workers
from agentrunner.discovery.candidates import detect_test, detect_tests
from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.git import read_branch
from agentrunner.discovery.set_up import detect_setup
from agentrunner.errors import UsageError
from tests.kit.files import write

WORKFLOW = """\
name: test
on: [push]
jobs:
  lint:
    steps:
      - run: ruff check
  test:
    runs-on: ubuntu-latest
    strategy: {matrix: {python: ["3.11", "3.13"]}}
    steps:
      - uses: actions/checkout@v4
      - name: Install
        run: uv sync --frozen
      - working-directory: web
        run: npm test
      - name: Test
        run: |
          uv pip list
          uv run pytest -q
"""


def test_the_workflow_s_command_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, {".github/workflows/aa-release.yml": WORKFLOW.replace("pytest -q", "pytest")})
    write(tmp_path, {".github/workflows/test.yml": WORKFLOW})
    write(tmp_path, {"Makefile": "test:\n\tfalse\n"})
    found = FoundCommand("uv run pytest -q", ".github/workflows/test.yml, line 19")
    assert detect_tests(tmp_path) == found
    assert detect_test(tmp_path) == "uv run pytest -q"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("npm test", True),
        ("npm run test -- --ci", True),
        ("python -m pytest tests", True),
        ("PYTHONPATH=src pytest", True),
        ("cargo test --all", True),
        ("go test ./...", True),
        ("uv run --frozen pytest -q", True),
        ("./gradlew test", True),
        ("make test", True),
        ("pytest && curl evil.example", False),
        ("pytest; rm -rf /", False),
        ("pytest -k ${{ matrix.k }}", False),
        ("pytest $(id)", False),
        ("pytest | tee log", False),
        ("pip install pytest", False),
        ("pytest-benchmark compare", False),
        ("echo pytest", False),
        ("pytest " + "x" * 400, False),
    ],
)
def test_which_lines_are_test_commands(tmp_path: Path, line: str, found: bool) -> None:
    write(tmp_path, {".github/workflows/ci.yml": f'jobs: {{a: {{steps: [{{run: "{line}"}}]}}}}\n'})
    expected = FoundCommand(line, ".github/workflows/ci.yml, line 1") if found else None
    assert detect_tests(tmp_path) == expected


def test_gitlab(tmp_path: Path) -> None:
    write(
        tmp_path,
        {".gitlab-ci.yml": "stages: [a]\nunit:\n  script:\n    - npm ci\n    - npm test\n"},
    )
    assert detect_tests(tmp_path) == FoundCommand("npm test", ".gitlab-ci.yml, line 5")


@pytest.mark.parametrize(
    ("files", "command", "where"),
    [
        ({"Makefile": "all:\n\ntest: all\n"}, "make test", "Makefile, line 3"),
        ({"Makefile": "test := x\n"}, None, ""),
        ({"justfile": "build:\n@test *args:\n"}, "just test", "justfile, line 2"),
        (
            {"package.json": '{\n "scripts": {\n  "test": "vitest"\n }\n}'},
            "npm test",
            "package.json, line 3",
        ),
        (
            {"package.json": '{"scripts": {"test": "x"}}', "pnpm-lock.yaml": ""},
            "pnpm test",
            "package.json, line 1",
        ),
        (
            {"package.json": '{"scripts": {"test": "x"}}', "yarn.lock": ""},
            "yarn test",
            "package.json, line 1",
        ),
        ({"package.json": '{"scripts": {"test": "echo no test specified"}}'}, None, ""),
        ({"package.json": "[" * 100_000}, None, ""),
        (
            {"pyproject.toml": "[project]\n\n[tool.pytest.ini_options]\n", "uv.lock": ""},
            "uv run pytest -q",
            "pyproject.toml, line 3",
        ),
        ({"pytest.ini": "[pytest]\n", "poetry.lock": ""}, "poetry run pytest -q", "pytest.ini"),
        ({"setup.cfg": "[tool:pytest]\n"}, "pytest -q", "setup.cfg"),
        ({"setup.cfg": "no section\n"}, None, ""),
        ({"tox.ini": "[tox]\n"}, "tox", "tox.ini"),
        ({"noxfile.py": ""}, "nox", "noxfile.py"),
        ({"tests/conftest.py": ""}, "pytest -q", "tests/conftest.py"),
        ({"tests/test_a.py": "def test_a(): pass"}, "pytest -q", "tests/test_a.py"),
        (
            {"tests/test_a.py": "import unittest"},
            "python3 -m unittest discover -s tests",
            "tests/test_a.py",
        ),
        (
            {"tests/__init__.py": "", "tests/test_a.py": "from unittest import TestCase"},
            "python3 -m unittest",
            "tests/test_a.py",
        ),
        ({"test_a.py": "import unittest"}, "python3 -m unittest", "test_a.py"),
        ({"Cargo.toml": ""}, "cargo test", "Cargo.toml"),
        ({"go.mod": ""}, "go test ./...", "go.mod"),
        ({"README.md": "run pytest"}, None, ""),
    ],
)
def test_build_files(
    tmp_path: Path, files: dict[str, str], command: str | None, where: str
) -> None:
    for name, text in files.items():
        write(tmp_path, {name: text})
    assert detect_tests(tmp_path) == (FoundCommand(command, where) if command else None)


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("uv.lock", "uv sync --frozen"),
        ("package-lock.json", "npm ci"),
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
    ],
)
def test_set_up(tmp_path: Path, lock: str, command: str) -> None:
    assert detect_setup(tmp_path) is None
    write(tmp_path, {lock: ""})
    assert detect_setup(tmp_path) == FoundCommand(command, lock)


def test_a_hostile_repository_is_read_as_data(tmp_path: Path) -> None:
    repo, outside = tmp_path / "repo", tmp_path / "outside"
    (repo / ".github").mkdir(parents=True)
    write(outside, {"test.yml": WORKFLOW})
    write(outside, {"package.json": '{"scripts": {"test": "x"}}'})
    (repo / ".github" / "workflows").symlink_to(outside)
    (repo / "package.json").symlink_to(outside / "package.json")
    os.mkfifo(repo / "Makefile")
    with (repo / "pyproject.toml").open("wb") as file:
        file.truncate(1 << 30)
    (repo / "justfile").symlink_to("justfile")
    (repo / "tox.ini").mkdir()
    assert detect_tests(repo) == FoundCommand("tox", "tox.ini")


def test_a_line_break_in_a_file_name_sets_nothing(tmp_path: Path) -> None:
    write(tmp_path, {".github/workflows/a\nrunner: {sandbox: {kind: none}} #.yml": WORKFLOW})
    assert detect_tests(tmp_path) is None


def test_the_branch_without_git(tmp_path: Path) -> None:
    assert read_branch(tmp_path) is None
    write(tmp_path, {".git/HEAD": "ref: refs/heads/feature/x\n"})
    assert read_branch(tmp_path) == "feature/x"
    write(tmp_path, {".git/HEAD": "1a2b3c4d5e" * 4 + "\n"})
    assert read_branch(tmp_path) == "detached at 1a2b3c4"
    write(tmp_path, {".git/HEAD": "ref: refs/heads/\x1b]52;c;x\x07\n"})
    assert read_branch(tmp_path) is None


def test_the_branch_of_a_worktree(tmp_path: Path) -> None:
    write(tmp_path, {"main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n"})
    write(tmp_path, {"w/.git": "gitdir: ../main/.git/worktrees/w\n"})
    assert read_branch(tmp_path / "w") == "w"


def test_who_can_plan_and_work(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = available_planners({"HOME": "/nonexistent"})
    assert [offer.kind for offer in offers if not offer.needs] == ["checklist"]
    assert not available_planners({"OPENAI_API_KEY": "k"})[0].needs
    monkeypatch.setenv("PATH", "/nonexistent")
    assert available_workers()["codex-cli"].path is None


@pytest.mark.parametrize("yaml", [False, True])
@pytest.mark.parametrize("found", [False, True])
def test_the_first_file_is_refused_until_it_is_written(
    tmp_path: Path, yaml: bool, found: bool
) -> None:
    (tmp_path / ".git").mkdir()
    tests = FoundCommand('pytest -k "a # b"', "Makefile, line 3") if found else None
    setup = FoundCommand("uv sync", "uv.lock") if found else None
    env = FoundCommand('{LC_ALL: "C.UTF-8", TZ: "UTC"}', "ci.yml") if found else None
    text = render_task_file("users-api", tests=tests, setup=setup, env=env, yaml=yaml)
    name = "users-api.yaml" if yaml else "users-api.md"
    (tmp_path / name).write_text(text)
    source = TaskSource("file", name)
    with pytest.raises(UsageError) as caught:
        load_task(source, environ={}, cwd=tmp_path)
    assert caught.value.code == ("empty-prd" if yaml else "empty-criteria")
    if yaml:
        text = text.replace('text: ""', "text: Register users").replace(
            "acceptance_criteria: []\n  # -", "acceptance_criteria:\n  -"
        )
    else:
        text += "- [ ] It works (check: `a command that exits 0 then`)\n"
    (tmp_path / name).write_text(text.replace("# protect", "protect"))
    spec = load_task(source, environ={}, cwd=tmp_path)
    assert (spec.task_id, spec.title) == ("users-api", "Users api")
    assert [describe_check(c.check) for c in spec.criteria] == ["a command that exits 0 then"]
    assert spec.task.protect == ["tests/golden/**"]
    assert (spec.task.test and spec.task.test.command) == (tests.command if tests else None)
    assert (spec.task.setup and spec.task.setup.command) == (setup.command if setup else None)
    assert set(spec.task.env) == ({"LC_ALL", "TZ"} if found else set())
