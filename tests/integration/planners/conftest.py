"""A planner that is a real CLI."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.planner_desk import Desk, desk_of


@pytest.fixture(params=[("codex-cli", "bwrap"), ("claude-code", "bwrap")], ids="-".join)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    kind, box = request.param
    return desk_of(kind, box, tmp_path)
