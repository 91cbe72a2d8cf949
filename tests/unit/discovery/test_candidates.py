"""Shapes of real repositories, in small: which commands are proposed, in which order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentrunner.discovery.candidates import candidates_of
from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.services import likely_lacking
from agentrunner.discovery.set_up import propose_setup, set_up_line
from tests.kit.files import write

UV = {"uv.lock": ""}
GROUPS = """\
[project]
name = "x"
[dependency-groups]
dev = ["ruff", "tox"]
tests = ["pytest"]
tests-random = ["pytest", "pytest-xdist"]
[tool.pytest.ini_options]
"""


def workflow(*steps: str, env: str = "", extra: str = "") -> str:
    lines = "".join(f"      - run: {step}\n" for step in steps)
    return f"{env}jobs:\n  test:\n    runs-on: x\n{extra}    steps:\n{lines}"


CI = ".github/workflows/ci.yml"
SHAPES: dict[str, tuple[dict[str, str], list[str]]] = {
    "a group that is no default": (
        {"pyproject.toml": GROUPS, **UV},
        ["uv run --group tests pytest -q"],
    ),
    "a group that is a default": (
        {"pyproject.toml": GROUPS + '[tool.uv]\ndefault-groups = ["dev", "tests"]\n', **UV},
        ["uv run pytest -q"],
    ),
    "all groups are defaults": (
        {"pyproject.toml": GROUPS + '[tool.uv]\ndefault-groups = "all"\n', **UV},
        ["uv run pytest -q"],
    ),
    "a group that includes another": (
        {
            "pyproject.toml": '[dependency-groups]\na = ["pytest"]\n'
            'dev = [{include-group = "a"}]\n[tool.pytest.ini_options]\n',
            **UV,
        },
        ["uv run pytest -q"],
    ),
    "groups that include each other": (
        {
            "pyproject.toml": '[dependency-groups]\na = [{include-group = "b"}]\n'
            'b = [{include-group = "a"}, "pytest"]\n[tool.pytest.ini_options]\n',
            **UV,
        },
        ["uv run --group a pytest -q"],
    ),
    "an extra": (
        {
            "pyproject.toml": '[project.optional-dependencies]\ntest = ["pytest>=8"]\n'
            "[tool.pytest.ini_options]\n",
            **UV,
        },
        ["uv run --extra test pytest -q"],
    ),
    "an environment that is there": (
        {"pyproject.toml": GROUPS, ".venv/pyvenv.cfg": "", **UV},
        ["uv run --group tests pytest -q", "pytest -q"],
    ),
    "uv in CI without the group that has pytest": (
        {
            CI: workflow("uv run pytest -n auto --cov=x --cov-report xml"),
            "pyproject.toml": GROUPS,
            **UV,
        },
        ["uv run --group tests pytest", "uv run --group tests pytest -q"],
    ),
    "groups without a lock file, for uv": (
        {"pyproject.toml": GROUPS + "[tool.uv]\npackage = true\n"},
        ["uv run --group tests pytest -q"],
    ),
    "options for the machines of CI": (
        {
            CI: workflow("python -m pytest -n4 --dist loadfile -ra --junitxml=out.xml tests"),
            "pytest.ini": "[pytest]\n",
        },
        ["python -m pytest -ra tests", "pytest -q"],
    ),
    "tox beside pytest": (
        {"tox.ini": "[tox]\n[pytest]\n", "tests/conftest.py": ""},
        ["pytest -q", "tox"],
    ),
    "only some environments of tox in CI": (
        {CI: workflow("tox run -e docs", "tox run -f lint"), "pytest.ini": "[pytest]\n"},
        ["pytest -q"],
    ),
    "scripts of pdm": (
        {"pyproject.toml": '[tool.pdm.scripts]\ntest = "pytest"\n', "pdm.lock": ""},
        ["pdm run test"],
    ),
    "a script of the project in CI": (
        {
            CI: workflow('"scripts/install"', '"scripts/test"'),
            "scripts/test": "#!/bin/sh\npytest\n",
            "pyproject.toml": "[tool.pytest.ini_options]\n",
        },
        ["scripts/test", "pytest -q"],
    ),
    "a script that nobody can start": (
        {"scripts/test": "pytest\n", "pytest.ini": "[pytest]\n"},
        ["pytest -q"],
    ),
    "many jobs: the shortest runs the most": (
        {
            CI: workflow(
                "uv run pytest tests/core", "uv run --no-sync pytest tests/a", "uv run pytest"
            )
        },
        ["uv run pytest", "uv run --no-sync pytest tests/a"],
    ),
    "a job of another repository": (
        {
            CI: "jobs:\n  a:\n    steps:\n      - uses: actions/checkout@v4\n"
            "        with: {repository: other/one}\n      - run: pytest tests/\n",
            "pytest.ini": "[pytest]\n",
        },
        ["pytest -q"],
    ),
    "a variable that the workflow sets": (
        {
            CI: workflow(
                "${{ env.CARGO }} test --workspace ${{ env.FLAGS }}",
                'cargo test --locked "${FEATURES}" --lib',
                env="env:\n  CARGO: cargo\n  FLAGS:\n  FEATURES: --all-features\n",
            ),
            "Cargo.toml": "[workspace]\n[package]\n",
        },
        ["cargo test --workspace", "cargo test"],
    ),
    "a workspace that CI names in words of its own": (
        {
            CI: workflow("$TOOL test --workspace"),
            "Cargo.toml": '[workspace]\nmembers = ["a"]\n[package]\nname = "x"\n',
        },
        ["cargo test --workspace", "cargo test"],
    ),
    "a target that fetches first": (
        {"Makefile": "deps:\n\tgo get ./...\ntest: deps\n\tgo test -v ./...\n", "go.mod": ""},
        ["go test ./...", "make test"],
    ),
    "a target that only tests": (
        {"Makefile": "test:\n\tgo test -race ./...\n", "go.mod": ""},
        ["make test", "go test ./..."],
    ),
    "a makefile that is to be made": (
        {CI: workflow("perl Makefile.PL", "make", "make test"), "Makefile.PL": "", "t/a.t": ""},
        ["perl Makefile.PL && make test", "prove -lr t"],
    ),
    "a package manager by name": (
        {
            "package.json": json.dumps(
                {"packageManager": "yarn@4.1", "scripts": {"test": "jest", "test:dev": "x"}}
            )
        },
        ["yarn test"],
    ),
    "a script that installs a package first": (
        {
            CI: workflow("yarn test:dev-package", "yarn test", "yarn test:production"),
            "package.json": '{"scripts": {"test": "jest"}}',
            "yarn.lock": "",
        },
        ["yarn test"],
    ),
    "node's own runner, which needs no script": (
        {"package.json": "{}", "test/a.js": "const test = require('node:test');\n"},
        ["node --test"],
    ),
    "node's own runner, in a module beside the code": (
        {"a.js": "", "a.test.mjs": 'import test from "node:test";\n'},
        ["node --test"],
    ),
    "files that node would not find, or that another tool runs": (
        {"tests/a.js": "require('node:test')\n", "b.test.js": "import { it } from 'vitest';\n"},
        [],
    ),
    "wrappers": ({"pom.xml": "", "mvnw": ""}, ["./mvnw test"]),
    "gradle": ({"build.gradle.kts": "", "gradlew": ""}, ["./gradlew test"]),
    "gradle, of modules alone": ({"settings.gradle": ""}, ["gradle test"]),
    "maven without a wrapper": ({"pom.xml": ""}, ["mvn test"]),
    "cmake": (
        {"CMakeLists.txt": ""},
        [
            "cmake -S . -B build && cmake --build build"
            " && ctest --test-dir build --output-on-failure"
        ],
    ),
    "cmake, built already": (
        {"CMakeLists.txt": "", "build/CMakeCache.txt": ""},
        ["cmake --build build && ctest --test-dir build --output-on-failure"],
    ),
    "cmake whose tests are off, and CI's ctest": (
        {
            CI: workflow("cmake -B out", "cmake --build out", "ctest --test-dir out -j4"),
            "CMakeLists.txt": 'option(SHOP_BUILD_TESTS "Build them" OFF)\noption(LTO "x" OFF)\n',
        },
        [
            "cmake -S . -B out -DSHOP_BUILD_TESTS=ON && cmake --build out"
            " && ctest --test-dir out -j4",
            "cmake -S . -B build -DSHOP_BUILD_TESTS=ON && cmake --build build"
            " && ctest --test-dir build --output-on-failure",
        ],
    ),
    "ruby": (
        {"Rakefile": "Rake::TestTask.new(:test)\n", "Gemfile": "", ".rspec": ""},
        ["bundle exec rspec", "bundle exec rake test"],
    ),
    "php": (
        {"composer.json": '{"scripts": {"test": "phpunit"}}', "phpunit.xml.dist": ""},
        ["composer test", "vendor/bin/phpunit"],
    ),
    "php with libraries of a distribution": (
        {"composer.json": "{}", "phpunit.xml.dist": "", "vendor/autoload.php": "<?php\n"},
        ["phpunit", "vendor/bin/phpunit"],
    ),
    "dotnet below its sources": ({"src/App.sln": ""}, ["dotnet test src/App.sln"]),
    "meson": ({"meson.build": ""}, ["meson setup build && meson test -C build"]),
    "autotools": ({"configure": "#!/bin/sh\n"}, ["./configure && make check"]),
}


PYTEST_INI = "[tool.pytest.ini_options]\ntestpaths = ['tests']\n"
FIRST: dict[str, tuple[dict[str, str], str]] = {
    "click": (
        {
            "pyproject.toml": GROUPS
            + "[tool.uv]\ndefault-groups = ['dev', 'tests']\n"
            + "[tool.tox]\nenv_list = ['py3.13', 'py3.12']\n"
            + "[tool.tox.env_run_base]\ndependency_groups = ['tests']\n",
            CI: workflow("uv run --locked --no-default-groups --group dev tox run"),
            ".tox/py3.13/pyvenv.cfg": "",
            **UV,
        },
        "uv run --group tests pytest -q",
    ),
    "httpx": (
        {
            "scripts/test": "#!/bin/sh -e\nexport PREFIX=venv/bin/\n${PREFIX}pytest\n",
            "scripts/install": "#!/bin/sh -e\npip install -r requirements.txt\n",
            CI: workflow('"scripts/install"', '"scripts/check"', '"scripts/test"'),
            "pyproject.toml": PYTEST_INI,
            "requirements.txt": "-e .[brotli]\npytest==8.3.4\n",
            "venv/pyvenv.cfg": "",
        },
        "scripts/test",
    ),
    "pydantic": (
        {
            CI: workflow(
                "make test",
                "uv run coverage run -m pytest --durations=10",
                "uv run --no-sync pytest tests/pydantic_core",
                "make test-mypy",
            ),
            "Makefile": "install: .uv\n\tuv sync\ntest: .uv\n\tuv run pytest -n auto\n",
            "pyproject.toml": "[dependency-groups]\ndev = ['pytest']\n" + PYTEST_INI,
            **UV,
        },
        "make test",
    ),
    "prettier": (
        {
            "package.json": json.dumps(
                {
                    "packageManager": "yarn@4.5.0",
                    "scripts": {"test": "jest", "test:dev-package": "INSTALL=1 jest"},
                }
            ),
            "yarn.lock": "",
            CI: workflow("yarn test:dev-package --coverage", "yarn test"),
        },
        "yarn test",
    ),
    "cobra": (
        {
            "Makefile": "test: install_deps\n\tgo test -v ./...\n"
            "richtest: install_deps\n\trichgo test -v ./...\n"
            "install_deps:\n\tgo get -v ./...\n",
            "go.mod": "module example.test/cobra\n",
            CI: workflow("make richtest", "make test"),
        },
        "go test ./...",
    ),
    "mux": (
        {
            "go.mod": "module example.test/mux\n",
            "Makefile": "test:\n\tgo test -race -coverprofile=coverage.out ./...\n",
            CI: workflow("go test -race -cover -coverprofile=coverage -covermode=atomic -v ./..."),
        },
        "go test ./...",
    ),
    "ripgrep": (
        {
            "Cargo.toml": "[package]\nname = 'rg'\n[workspace]\nmembers = ['crates/a']\n",
            CI: workflow(
                "${{ env.CARGO }} test --verbose --workspace ${{ env.TARGET_FLAGS }}",
                env="env:\n  CARGO: cargo\n  TARGET_FLAGS:\n",
            ),
        },
        "cargo test --verbose --workspace",
    ),
    "fd": (
        {
            "Cargo.toml": "[package]\nname = 'fd'\n",
            CI: workflow("cargo test --locked --workspace --all-features", "cargo clippy"),
        },
        "cargo test --locked --workspace --all-features",
    ),
    "sympy": (
        {
            "bin/test": "#!/usr/bin/env python\nimport sympy\nsympy.test()\n",
            "setup.cfg": "[options]\n",
            "pytest.ini": "[pytest]\n",
            CI: workflow("bin/test --split ${{ matrix.group }}/4 --slow", "bin/doctest"),
        },
        "bin/test",
    ),
    "express": (
        {
            "package.json": json.dumps(
                {"scripts": {"test": "mocha --require test/env test/", "test-ci": "nyc mocha"}}
            ),
            CI: workflow("npm install", "npm run test-ci"),
        },
        "npm test",
    ),
    "requests": (
        {
            "Makefile": "init:\n\tpython -m pip install -r requirements-dev.txt\n"
            "test:\n\ttox -p\nci:\n\tpython -m pytest tests --junitxml=report.xml\n",
            "tox.ini": "[tox]\nenvlist = py{39,310}\n[testenv]\ncommands = pytest\n",
            "pyproject.toml": PYTEST_INI,
            CI: workflow("make", "make ci"),
        },
        "pytest -q",
    ),
}
"""The manifests of ten well-known projects in their shape, and the command that fits each."""


@pytest.mark.parametrize("project", FIRST)
def test_the_first_proposal_for_projects_of_these_shapes(tmp_path: Path, project: str) -> None:
    files, expected = FIRST[project]
    assert candidates_of(write(tmp_path, files))[0].command == expected


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_proposed_in_which_order(tmp_path: Path, name: str) -> None:
    files, expected = SHAPES[name]
    assert [found.command for found in candidates_of(write(tmp_path, files))] == expected


@pytest.mark.parametrize(
    ("files", "command", "needs"),
    [
        ({"tox.ini": "[tox]\n"}, "tox", "tox first installs its environments, with the network"),
        ({"tox.ini": "[tox]\n", ".tox/a": ""}, "tox", ""),
        (
            {"Makefile": "test:\n\tpip install -e .\n\tpytest\n"},
            "make test",
            "it runs `pip install -e .` first",
        ),
        (
            {"package.json": '{"scripts": {"test": "x"}, "devDependencies": {"x": "1"}}'},
            "npm test",
            "node_modules is not there yet",
        ),
        (
            {
                "package.json": '{"scripts": {"test": "x"}, "devDependencies": {"x": "1"}}',
                "node_modules/x": "",
            },
            "npm test",
            "",
        ),
        ({CI: workflow("./vendor/bin/phpunit")}, "./vendor/bin/phpunit", "./vendor/bin/phpunit is"),
    ],
)
def test_what_a_set_up_must_come_before(
    tmp_path: Path, files: dict[str, str], command: str, needs: str
) -> None:
    found = candidates_of(write(tmp_path, files))[0]
    assert found.command == command
    assert found.needs.startswith(needs) and bool(found.needs) == bool(needs)


def test_the_set_up_reaches_the_hosts_that_the_test_command_could_not(tmp_path: Path) -> None:
    write(tmp_path, {"pom.xml": ""})
    said = "Cannot access central (https://repo.example.org/maven2) in offline mode"
    line = set_up_line(tmp_path, ".", {}, said)
    assert line.endswith(", network: [repo.example.org:443]}")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": GROUPS, **UV}, "uv sync --frozen --group tests"),
        ({"yarn.lock": "", ".yarnrc.yml": ""}, "yarn install --immutable"),
        (
            {"requirements-dev.txt": "pytest==8\n"},
            "python3 -m venv .venv && .venv/bin/pip install -r requirements-dev.txt",
        ),
        ({"requirements.txt": "flask\n"}, None),
        ({"Gemfile": ""}, "bundle install"),
        ({"pom.xml": ""}, "mvn -B -q test -Dmaven.test.failure.ignore"),
        (
            {"build.gradle.kts": ""},
            "gradle --no-daemon test --continue || gradle --no-daemon testClasses",
        ),
        (
            {"settings.gradle": "", "gradlew": ""},
            "./gradlew --no-daemon test --continue || ./gradlew --no-daemon testClasses",
        ),
    ],
)
def test_what_installs_the_packages(
    tmp_path: Path, files: dict[str, str], expected: str | None
) -> None:
    found = propose_setup(write(tmp_path, files))
    assert (found.command if found else None) == expected


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {CI: workflow("x", extra="    services:\n      db: {image: 'postgres:16'}\n")},
            [f"{CI} starts postgres:16: it wants a database"],
        ),
        ({".gitlab-ci.yml": "t:\n  services: [redis]\n"}, [".gitlab-ci.yml starts redis"]),
        ({"package.json": '{"devDependencies": {"puppeteer": "1"}}'}, ["package.json names pup"]),
        ({"go.mod": "require github.com/testcontainers/testcontainers-go v1"}, ["go.mod names"]),
        ({"pyproject.toml": '[project]\ndependencies = ["click"]\n'}, []),
    ],
)
def test_what_the_files_say_that_a_box_lacks(
    tmp_path: Path, files: dict[str, str], said: list[str]
) -> None:
    found = likely_lacking(write(tmp_path, files))
    assert len(found) == len(said)
    assert all(text.startswith(start) for text, start in zip(found, said, strict=True))


def test_a_command_is_proposed_once_and_where_it_stands_first(tmp_path: Path) -> None:
    repo = write(tmp_path, {CI: workflow("make test"), "Makefile": "test:\n\ttrue\n"})
    assert candidates_of(repo) == [FoundCommand("make test", f"{CI}, line 5")]


def test_hostile_files_give_nothing(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/test").symlink_to("/bin/sh")
    write(tmp_path, {"package.json": "[" * 99_999, "composer.json": "{", CI: "jobs: [[["})
    assert candidates_of(tmp_path) == []
