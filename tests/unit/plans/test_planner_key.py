"""The key of the markers in a plan's prompts is the same for all processes that talk about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.plans import planner
from agentrunner.storage.run_folder import write_private


def test_a_key_that_another_process_has_drawn_meanwhile_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "salt"

    def write(path: Path, data: bytes) -> None:
        write_private(path, data)
        key.write_text("of the other process")

    monkeypatch.setattr(planner, "write_private", write)
    assert planner._salt(key) == "of the other process"
    assert [path.name for path in tmp_path.iterdir()] == ["salt"]


def test_a_key_is_drawn_once(tmp_path: Path) -> None:
    first = planner._salt(tmp_path / "salt")
    assert len(first) == 32
    assert planner._salt(tmp_path / "salt") == first
