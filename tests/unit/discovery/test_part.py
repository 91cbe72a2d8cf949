"""The part of a repository that somebody stands in."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.discovery.candidates import first_part, part_of
from agentrunner.discovery.set_up import setup_for
from tests.kit.files import write

FILES = {
    "package.json": '{"workspaces": ["packages/*"]}',
    "package-lock.json": "{}",
    "packages/api/package.json": '{"scripts": {"test": "node --test"}}',
    "packages/api/src/sum.js": "",
    "services/py/calc.py": "",
    "services/py/tests/test_calc.py": "import unittest\n",
    "services/py/tests/deep/x.txt": "",
    "services/rust/Cargo.toml": "[package]\n",
    "services/rust/Cargo.lock": "",
    "tools/test_tools.py": "import unittest\n",
    "docs/a.md": "",
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return write(tmp_path, FILES)


@pytest.mark.parametrize(
    ("folder", "part"),
    [
        (".", "."),
        ("packages/api", "packages/api"),
        ("packages/api/src", "packages/api"),
        ("packages", "."),
        ("services/py", "services/py"),
        ("services/py/tests/deep", "services/py"),
        ("services/rust", "services/rust"),
        ("tools", "."),  # a folder of tests is no project that has tests
        ("docs", "."),
        ("..", "."),
    ],
)
def test_it_is_the_nearest_folder_that_says_how_it_is_tested(
    repo: Path, folder: str, part: str
) -> None:
    assert part_of(repo, (repo / folder).resolve()) == part


def test_a_root_without_tests_has_parts_that_are_told(repo: Path) -> None:
    assert first_part(repo) == "packages/api"
    assert first_part(repo / "docs") == ""
    for number in range(250):
        (repo / f"node_modules/m{number}").mkdir(parents=True)
    assert first_part(repo) == "packages/api"


def test_a_lock_file_makes_it_ready_the_nearer_one_first(repo: Path) -> None:
    def command(part: str) -> str:
        found = setup_for(repo, part)
        return found.command if found else ""

    assert command(".") == "npm ci"
    assert command("packages/api") == "npm ci"  # of the workspace
    assert command("services/rust") == "cd services/rust && cargo fetch --locked"
