"""Which repository a run of the served graph works in."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from agentrunner.engine.studio import _task
from agentrunner.state.run_state import TaskContext


def test_a_prd_is_about_the_repository_that_it_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("server", "shop"):
        (tmp_path / name / ".git").mkdir(parents=True)
    (tmp_path / "shop/prd.md").write_text("# Add\n\nIt adds.\n")
    monkeypatch.chdir(tmp_path / "server")
    for named in (str(tmp_path / "shop/prd.md"), "../shop/prd.md"):
        spec = _task(cast("TaskContext", {"task_file": named}))
        assert Path(spec.repo) == tmp_path / "shop"
