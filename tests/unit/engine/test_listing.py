"""Lists of runs, of which one is damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentrunner.engine.queries import listed_runs
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.locks import run_lock
from agentrunner.storage.run_folder import RunFolder


def without_log(run: RunFolder) -> None:
    run.log_file.mkdir()


def with_another_log(run: RunFolder) -> None:
    run.log_file.write_text(
        '{"kind": "state", "key": "1", "attempt": 1, "loop": 0, "at": "", "data": {"to": []}}\n'
    )


def without_lock(run: RunFolder) -> None:
    run_lock(run).path.symlink_to("nowhere")


def without_folder(run: RunFolder) -> None:
    run.root.rename(run.root.with_name("elsewhere"))
    run.root.write_text("")


@pytest.mark.parametrize("damage", [without_log, with_another_log, without_lock, without_folder])
def test_a_run_that_cannot_be_read_hides_no_other(
    tmp_path: Path, damage: Callable[[RunFolder], None]
) -> None:
    index = RunIndex(tmp_path)
    for name in ("t-7f3a", "t-c21e"):
        run = RunFolder.create(tmp_path, name)
        index.record(RunRow(name, "t", "T", "/src/shop", "RUNNING"))
    damage(run)
    assert {row.run_id for row in listed_runs(tmp_path)} == {"t-7f3a", "t-c21e"}
    assert all(row.latest_at == "" for row in listed_runs(tmp_path))
