from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.storage.run_log import Record, RunLog


def add(log: RunLog, kind: str, key: str, data: dict[str, Any], attempt: int = 1) -> None:
    log.append(kind, key, data, attempt=attempt, loop=0, at="2026-01-01T00:00:00Z")


def test_a_repeated_record_counts_once_where_it_first_stood_with_its_last_words(
    tmp_path: Path,
) -> None:
    log = RunLog(tmp_path / "log")
    add(log, "decision", "1", {"action": "run_worker"})
    add(log, "state", "1", {"from": "PENDING"})
    add(log, "decision", "1", {"action": "ask_human"})
    add(log, "decision", "1", {"action": "mark_complete"}, attempt=2)
    assert [(r.kind, r.attempt, r.data) for r in log.records()] == [
        ("decision", 1, {"action": "ask_human"}),
        ("state", 1, {"from": "PENDING"}),
        ("decision", 2, {"action": "mark_complete"}),
    ]
    assert [r.attempt for r in log.records("decision")] == [1, 2]
    assert [r.kind for r in log.records("state", "decision")] == ["decision", "state", "decision"]
    assert [r.data["action"] for r in log.history(2).decisions] == ["mark_complete"]
    assert log.history().of("state")[0].key == "1" and not log.history().warnings


def test_a_torn_last_line_is_passed_over_and_mended(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "log")
    add(log, "plan", "plan", {})
    with log.path.open("ab") as file:
        file.write(b'{"kind": "decision", "ke')
    assert [r.kind for r in log.records()] == ["plan"]
    add(log, "answer", "a", {})
    assert [r.kind for r in log.records()] == ["plan", "answer"]


def test_what_others_write_is_read_and_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    log, other = RunLog(tmp_path / "log"), RunLog(tmp_path / "log")
    add(log, "message", "1", {"text": "a"})
    assert len(log.records("message")) == 1
    add(other, "message", "2", {"text": "b"})
    add(other, "message", "1", {"text": "c"})
    assert [r.data["text"] for r in log.records("message")] == ["c", "b"]
    log.path.write_bytes(b"x" * log.path.stat().st_size)
    assert [r.data["text"] for r in log.records("message")] == ["c", "b"]


def test_what_a_log_wrote_it_knows_without_reading(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "log")
    data: dict[str, Any] = {"paths": ("a", "b"), "at": {"x": 1}}
    add(log, "plan", "1", data)
    log.path.write_bytes(b"x" * log.path.stat().st_size)
    data["at"]["x"] = 2
    assert [r.data for r in log.records()] == [{"paths": ["a", "b"], "at": {"x": 1}}]


STEPS = st.sampled_from(["one writes", "other writes", "one reads", "other reads", "torn"])


@given(st.lists(STEPS, max_size=12))
def test_who_writes_beside_others_knows_what_is_in_the_file(
    tmp_path_factory: Any, steps: list[str]
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    logs = {"one": RunLog(path), "other": RunLog(path)}
    for number, step in enumerate(steps):
        who, _, what = step.partition(" ")
        if what == "writes":
            add(logs[who], "message", str(number % 3), {"text": f"{who} {number}"})
        elif what == "reads":
            logs[who].records()
        else:
            with path.open("ab") as file:
                file.write(b'{"kind": "mess')
    fresh = RunLog(path)
    for log in logs.values():
        assert log.written() == fresh.written()
        assert log.records() == fresh.records()


def test_threads_that_write_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "log")
    numbers = range(200)

    def write(number: int) -> None:
        add(log, "message", str(number), {})
        log.records()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, numbers))
    assert len(log.written()) == len(log.records()) == len(numbers)


def test_no_log_is_no_records(tmp_path: Path) -> None:
    assert RunLog(tmp_path / "none").records() == []


def test_secrets_are_taken_out_of_every_string(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "log", lambda text: text.replace("hunter2", "***"))
    add(log, "warning", "w", {"hunter2": ["a hunter2", {"b": "hunter2"}], "n": 2})
    assert b"hunter2" not in log.path.read_bytes()
    assert log.records()[0].data == {"***": ["a ***", {"b": "***"}], "n": 2}


@given(st.text(st.characters(codec=None), max_size=40))
def test_any_text_comes_back(tmp_path_factory: Any, text: str) -> None:
    log = RunLog(tmp_path_factory.mktemp("log") / "log")
    add(log, "warning", "w", {"message": text})
    known = [Record("warning", "w", 1, 0, "2026-01-01T00:00:00Z", {"message": text})]
    assert log.records() == RunLog(log.path).records() == known
    assert log.path.read_bytes().count(b"\n") == 1


def test_records_without_sync_get_to_the_disk_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RunLog(tmp_path / "log.jsonl")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    where = {"attempt": 1, "loop": 0}
    log.append("state", "1", {}, at="", sync=False, **where)
    log.append("state", "2", {}, at="", sync=False, **where)
    assert not synced and len(RunLog(log.path).records()) == 2
    log.sync()
    log.sync()
    assert len(synced) == 1
    log.names(log.path)  # as a prompt that the state names
    log.sync()
    log.sync()
    assert len(synced) == 2
