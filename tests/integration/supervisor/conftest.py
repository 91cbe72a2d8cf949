"""A run with a repository, and workers that are shell scripts under a real supervisor."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, f"agentrunner-test-{uuid.uuid4().hex}")
    yield stage
    for pid in stage.left():
        os.kill(pid, 9)
    for process in stage.processes:
        process.kill()
        process.wait()
