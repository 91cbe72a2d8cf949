"""A task and the policies that it is held against."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.policies import Desk
from tests.kit.task_files import Load, load, repo

__all__ = ["desk", "load", "repo"]


@pytest.fixture
def desk(load: Load, tmp_path: Path) -> Desk:
    return Desk(load, tmp_path)
