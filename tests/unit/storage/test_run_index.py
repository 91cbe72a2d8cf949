from __future__ import annotations

import dataclasses
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import UsageError
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.run_folder import RunFolder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    return tmp_path / "state"


def add(home: Path, run_id: str, minute: int, repo: str = "repo", **fields: Any) -> RunRow:
    RunFolder.create(home, run_id)
    row = RunRow(
        run_id=run_id,
        task_id=run_id.rpartition("-")[0],
        title="'; DROP TABLE runs; --",
        repo=str((home.parent / repo).resolve()),
        state="RUNNING",
        started_at=f"2026-01-01T00:{minute:02}:00Z",
    )
    row = dataclasses.replace(row, **fields)
    RunIndex(home).record(row)
    return row


def test_an_empty_state_has_no_runs_and_stays_empty(state: Path) -> None:
    assert RunIndex(state).runs() == []
    with pytest.raises(UsageError) as caught:
        RunIndex(state).newest(state.parent / "repo")
    assert caught.value.code == "unknown-run"
    assert not state.exists()


def test_a_run_that_goes_on_is_as_its_folder_says(state: Path) -> None:
    row = add(state, "api-aaaa", 1)
    now = dataclasses.replace(row, state="VALIDATING")
    RunIndex(state).note(now)
    assert RunIndex(state).runs() == [now]
    ended = dataclasses.replace(row, state="FAILED", finished_at="2026-01-01T00:02:00Z")
    RunIndex(state).record(ended)
    RunFolder.open(state, "api-aaaa").index_file.unlink()
    assert RunIndex(state).runs() == [ended]


def test_runs_are_found_by_id_task_and_prefix(state: Path) -> None:
    repo = state.parent / "repo"
    add(state, "api-aaaa", 1)
    add(state, "api-bbbb", 2)
    add(state, "api-cccc", 3, repo="elsewhere")
    add(state, "docs-dddd", 4)
    index = RunIndex(state)
    assert index.find("api-aaaa", repo) == "api-aaaa"
    assert index.find("api", repo) == "api-bbbb"
    assert index.find("docs-d", repo) == "docs-dddd"
    assert index.newest(repo) == "docs-dddd"
    assert [row.run_id for row in index.runs(repo)] == ["docs-dddd", "api-bbbb", "api-aaaa"]
    for wrong, code in (("api-", "ambiguous-run"), ("nope", "unknown-run"), ("", "unknown-run")):
        with pytest.raises(UsageError) as caught:
            index.find(wrong, repo)
        assert caught.value.code == code
    with pytest.raises(UsageError) as caught:
        index.find("api-", repo)
    assert [label for label, _ in caught.value.details] == ["api-cccc", "api-bbbb", "api-aaaa"]


def test_the_only_waiting_run_is_found(state: Path) -> None:
    repo = state.parent / "repo"
    add(state, "a-1111", 1)
    with pytest.raises(UsageError, match="waiting for you"):
        RunIndex(state).waiting(repo)
    add(state, "b-2222", 2, waiting="ask_human")
    assert RunIndex(state).waiting(repo) == "b-2222"
    add(state, "c-3333", 3, waiting="plan")
    with pytest.raises(UsageError) as caught:
        RunIndex(state).waiting(repo)
    assert caught.value.code == "ambiguous-run"


@pytest.mark.parametrize("damage", ["lost", "empty", "rubbish", "flipped", "older"])
def test_a_lost_or_damaged_index_is_rebuilt_from_the_folders(state: Path, damage: str) -> None:
    rows = [add(state, "a-1111", 1), add(state, "b-2222", 2, state="COMPLETE")]
    path = RunIndex(state).path
    if damage == "lost":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "rubbish":
        path.write_bytes(b"rubbish" * 1000)
    elif damage == "flipped":
        raw = bytearray(path.read_bytes())
        raw[100:140] = bytes(40)
        path.write_bytes(raw)
    else:
        path.unlink()
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE runs (run_id PRIMARY KEY, other)")
    assert RunIndex(state).runs() == rows[::-1]


def test_the_index_follows_the_folders(state: Path) -> None:
    add(state, "a-1111", 1)
    row = add(state, "b-2222", 2)
    shutil.rmtree(state / "runs" / "a-1111")
    (state / "runs" / "half-made").mkdir()
    assert RunIndex(state).runs() == [row]


def test_a_short_lock_by_another_process_is_waited_for(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = add(state, "a-1111", 1)
    monkeypatch.setattr("agentrunner.storage.index.BUSY_TIMEOUT_SEC", 0.1)
    with closing(sqlite3.connect(RunIndex(state).path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            RunIndex(state).record(row)
        other.rollback()
    RunIndex(state).record(row)
    assert not (state / "index.sqlite.damaged").exists()


def test_a_run_that_an_earlier_version_noted_is_still_read(state: Path) -> None:
    row = add(state, "api-aaaa", 1)
    file = RunFolder.open(state, "api-aaaa").index_file
    known = json.loads(file.read_bytes())
    del known["part_of"]
    file.write_text(json.dumps(known))
    (state / "index.sqlite").unlink()
    with closing(sqlite3.connect(state / "index.sqlite")) as database, database:
        database.execute(f"CREATE TABLE runs ({', '.join(known)}, PRIMARY KEY (run_id))")
        database.execute(
            f"INSERT INTO runs VALUES ({', '.join('?' * len(known))})", tuple(known.values())
        )
    assert RunIndex(state).runs() == [row]
