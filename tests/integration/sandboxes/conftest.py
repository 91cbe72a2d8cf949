from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.bwrap import require_bwrap
from tests.kit.repository import committed
from tests.kit.sandbox_place import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    require_bwrap()
    repo, home, user = tmp_path / "repo", tmp_path / "state/runs/1/box", tmp_path / "user"
    for folder in (home, user):
        folder.mkdir(parents=True)
    committed(repo, {"file.txt": "hello\n"}, "first")
    yield Place(tmp_path, repo, home, user)
    held = [
        line for line in Path("/proc/self/mounts").read_text().splitlines() if str(repo) in line
    ]
    assert not held, "a mount is left on the host"
