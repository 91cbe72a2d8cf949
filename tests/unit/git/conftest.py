"""Snapshots of the folder that a test calls its tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.git.snapshots import Snapshots


@pytest.fixture
def snapshots(tmp_path: Path, tree: Path) -> Snapshots:
    return Snapshots(tmp_path / "store", tree)
