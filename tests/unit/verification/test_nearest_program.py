"""A test command whose program is not there: the nearest one on PATH is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.verification.rooms.decision_sandbox import nearest_program


@pytest.mark.parametrize(
    ("why", "near"),
    [
        ("sh: 1: pytset: not found", "pytest"),
        ("bash: line 1: pytset: command not found", "pytest"),
        ("sh: 1: nmp: not found", "npm"),
        ("sh: 1: pytst: not found", "pytest"),
        ("sh: 1: pyttest: not found", "pytest"),
        ("sh: 1: zig: not found", ""),
        ("sh: 1: pytest: not found", ""),  # it is there, and the sandbox lacks it
        ("sh: 1: tests: not found", ""),
        ("sh: 1: jest: not found", ""),  # `test` is no test tool
        ("sh: 1: ./pytset: not found", ""),
        ("exit 3", ""),
    ],
)
def test_the_nearest_program_is_named(tmp_path: Path, why: str, near: str) -> None:
    for name in ("nm", "npm", "pytest", "test", "yes", "zip"):
        (tmp_path / name).touch()
    assert nearest_program(why, f"/nowhere:{tmp_path}") == near
