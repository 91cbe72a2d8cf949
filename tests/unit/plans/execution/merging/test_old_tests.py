"""Commits with the tests, and what steers them, as they were before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from agentrunner.git.private_clone import CloneStore
from agentrunner.plans.execution.merging.merge_checks import with_old_tests
from agentrunner.verification.evidence.target import Target
from tests.kit.files import write
from tests.kit.project import Project
from tests.kit.repository import AT, WHO

START = {
    "app.py": "one\n",
    "tests/test_app.py": "assert one\n",
    "pyproject.toml": '[project]\nname = "x"\n\n[tool.pytest.ini_options]\naddopts = "-x"\n',
}


class Trees:
    """A clone with one commit."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.clone = CloneStore(place / "clone.git", Project.make(place, START).repo)
        self.base = self.clone.fetch()

    def commit(self, files: Mapping[str, str | None]) -> str:
        """With these files changed; None for one that is deleted."""
        there = {name: text for name, text in files.items() if text is not None}
        folder, parents = write(self.place / "files", there), (self.base,)
        return self.clone.commit(folder, files, parents=parents, message="m", author=WHO, at=AT)


TARGETS = [Target("test", "python -m pytest -q")]


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    return Trees(tmp_path)


@pytest.mark.parametrize("text", ["pass\n", None])
def test_a_test_that_was_changed_or_deleted_is_as_it_was_and_the_product_as_it_is(
    trees: Trees, text: str | None
) -> None:
    commit = trees.commit({"app.py": "two\n", "tests/test_app.py": text, "tests/test_b.py": "b"})
    found = with_old_tests(trees.clone, TARGETS, trees.base, commit)
    assert found is not None
    made, touched = found
    assert touched == ["tests/test_app.py"]
    assert trees.clone.read(made, "tests/test_app.py") == b"assert one\n"
    assert trees.clone.read(made, "app.py") == b"two\n"
    assert trees.clone.changed(commit, made) == ("tests/test_app.py", "tests/test_b.py")


def test_what_newly_steers_the_tests_is_gone(trees: Trees) -> None:
    commit = trees.commit({"conftest.py": "collect_ignore = ['tests']\n"})
    found = with_old_tests(trees.clone, TARGETS, trees.base, commit)
    assert found is not None and found[1] == ["conftest.py"]
    assert trees.clone.changed(trees.base, found[0]) == ()


@pytest.mark.parametrize(
    "files",
    [
        {"app.py": "two\n"},
        {"tests/test_new.py": "assert two\n"},
        {"pyproject.toml": START["pyproject.toml"].replace('"x"\n', '"x"\nversion = "2"\n', 1)},
    ],
    ids=["the product", "a new test", "configuration that steers no test"],
)
def test_where_nothing_that_proves_was_touched_there_is_nothing_to_look_at(
    trees: Trees, files: dict[str, str | None]
) -> None:
    assert with_old_tests(trees.clone, TARGETS, trees.base, trees.commit(files)) is None
