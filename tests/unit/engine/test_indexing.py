"""The row of a run that goes on, as lists show it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.engine.indexing import Indexer
from agentrunner.errors import EnvironmentNotReady, InfraError
from agentrunner.screens.run_table import worked_of
from agentrunner.state.lifecycle import state_word
from agentrunner.storage.index import RunIndex
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from tests.kit.project import Project
from tests.kit.waits import VirtualClock, at


def test_a_wait_is_no_work_while_it_lasts_and_after_it(tmp_path: Path) -> None:
    project, clock = Project.make(tmp_path, {"a.txt": ""}), VirtualClock()
    run = RunFolder.create(project.state_dir, "t-7f3a")
    spec = project.spec(runner={"meta": {"kind": "mock"}})
    indexer = Indexer(spec, run, replace(project.options(), clock=clock))
    listed: list[tuple[str, float]] = []

    def after(seconds: float, event: str, **fields: Any) -> None:
        clock.seconds += seconds
        indexer({"event": event, **fields})
        (row,) = RunIndex(project.state_dir).runs()
        facts = {**vars(row), "running": True}
        listed.append((state_word(facts), worked_of(facts, clock.now())))

    after(0, "run_started", header={"limits": {"rounds_at_most": 6}})
    after(20, "waiting", until=at(60))
    after(30, "warning", code="outside-edit", message="edited while running")
    after(10, "awaiting", who="planner", what="next_action")
    after(4, "waiting", until=at(124))
    after(60, "decision", action="run_worker")
    assert listed == [
        ("running", 0), ("waiting", 20), ("waiting", 20), ("running", 20), ("waiting", 24),
        ("running", 24),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "spent", "noted"),
    [
        (EnvironmentNotReady("No tests.", nothing_spent=True), "", "No tests."),
        (EnvironmentNotReady("No tests.", nothing_spent=True), "meta_call", ""),
        (EnvironmentNotReady("No tests.", nothing_spent=True), "worker_run", ""),
        (InfraError("The server is away."), "", ""),
    ],
)
def test_a_run_has_not_started_only_where_nothing_was_spent(
    tmp_path: Path, error: InfraError, spent: str, noted: str
) -> None:
    project = Project.make(tmp_path, {"a.txt": ""})
    run = RunFolder.create(project.state_dir, "t-7f3a")
    spec = project.spec(runner={"meta": {"kind": "mock"}})
    indexer = Indexer(spec, run, project.options())
    indexer.begin()
    if spent:
        RunLog(run.log_file).append(spent, "1", {}, attempt=1, loop=0, at="")
    indexer.fail(error, error.message)
    (row,) = RunIndex(project.state_dir).runs()
    assert row.start_error == noted


def test_a_log_that_cannot_be_read_does_not_hide_why_the_run_failed(tmp_path: Path) -> None:
    project = Project.make(tmp_path, {"a.txt": ""})
    run = RunFolder.create(project.state_dir, "t-7f3a")
    indexer = Indexer(project.spec(runner={"meta": {"kind": "mock"}}), run, project.options())
    indexer.begin()
    run.log_file.mkdir()
    indexer.fail(EnvironmentNotReady("No tests.", nothing_spent=True), "No tests.")
    (row,) = RunIndex(project.state_dir).runs()
    assert row.start_error == ""
