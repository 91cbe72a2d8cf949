"""A planner that is a real CLI."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.planner_host import PlannerHost, host_of


@pytest.fixture(params=[("codex-cli", "bwrap"), ("claude-code", "bwrap")], ids="-".join)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> PlannerHost:
    kind, box = request.param
    return host_of(kind, box, tmp_path)
