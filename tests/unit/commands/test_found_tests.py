"""What a run is held to where a sentence or a file says what is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from agentrunner.commands.start import load_to_run
from agentrunner.config.load import TaskSource


def test_a_sentence_is_held_to_the_tests_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go.mod").write_text("module example.org/thing\n")
    (tmp_path / "thing_test.go").write_text("package thing\n")
    (tmp_path / "prd.md").write_text("---\ntest: make check\n---\n# A thing\n\nIt adds.\n")
    monkeypatch.chdir(tmp_path)

    def tests_of(kind: Literal["goal", "file"], name: str, test: str | None) -> str | None:
        ran = load_to_run(TaskSource(kind, name), [], {"test": test}).task.test
        return ran.command if ran else None

    assert tests_of("goal", "fix the test", None) == "go test ./..."
    assert tests_of("goal", "fix the test", "make") == "make"
    assert tests_of("goal", "fix the test", "none") is None
    assert tests_of("file", "prd.md", None) == "make check"
    assert tests_of("file", "prd.md", "none") is None
