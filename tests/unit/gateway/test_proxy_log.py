"""The record of decisions: a JSON object per line, bounded, and read back whatever is in it."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentrunner.gateway.egress_log import (
    MOST_KINDS,
    SINGLE,
    EgressLog,
    Entry,
    HostUse,
    read_egress,
)

NOW = "2026-01-02T03:04:05.678Z"


def open_log(path: Path) -> EgressLog:
    return EgressLog(path, "worker-1", lambda: NOW)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_decision_is_a_line_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "egress.jsonl"
    before = os.umask(0)
    try:
        log = open_log(path)
    finally:
        os.umask(before)
    log.add(Entry("refused", "evil.test", 443, "not_listed"))
    log.add(Entry("allowed", "good.test", 443, address="8.8.8.8"))
    log.add(Entry("closed", "good.test", 443, address="8.8.8.8"), up=3, down=4, seconds=1.23456)
    log.close()
    about = {"ts": NOW, "label": "worker-1", "port": 443}
    good = about | {"host": "good.test", "address": "8.8.8.8"}
    assert lines(path) == [
        about | {"decision": "refused", "host": "evil.test", "reason": "not_listed"},
        good | {"decision": "allowed"},
        good | {"decision": "closed", "up": 3, "down": 4, "seconds": 1.235},
    ]
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_egress(path) == [
        HostUse("evil.test", 443, allowed=0, refused=1, reason="not_listed", bytes=0),
        HostUse("good.test", 443, 1, 0, "", 7, "8.8.8.8"),
    ]


def test_a_flood_of_one_refusal_is_folded_and_counted(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    for _ in range(100_000):
        log.add(Entry("refused", "evil.test", 443, "not_listed"))
    log.close()
    assert len(lines(tmp_path / "log")) == SINGLE + 13 + 1
    assert read_egress(tmp_path / "log")[0].refused == 100_000


def test_a_flood_of_many_names_fills_no_disk(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    for number in range(10_000):
        log.add(Entry("refused", f"{number}.{'x' * 240}.test", 443, "not_listed"))
    log.close()
    assert (tmp_path / "log").stat().st_size < MOST_KINDS * 512
    found = read_egress(tmp_path / "log")
    assert sum(use.refused for use in found) == 10_000
    assert found[-1] == HostUse("*", 0, 0, 10_000 - MOST_KINDS, "not_listed", 0)


def test_folded_tunnels_keep_their_bytes(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    for _ in range(1000):
        log.add(Entry("closed", "a.test", 443, address="8.8.8.8"), up=1, down=2, seconds=0.5)
    log.close()
    assert read_egress(tmp_path / "log") == [HostUse("a.test", 443, 0, 0, "", 3000, "8.8.8.8")]


def test_what_is_counted_at_a_crash_is_at_least_half(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    for _ in range(1000):
        log.add(Entry("refused", "evil.test", 443, "not_listed"))
    assert read_egress(tmp_path / "log")[0].refused == 512


def test_a_line_that_a_crash_cut_takes_none_with_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"host": "a.te')
    log = open_log(path)
    log.add(Entry("refused", "b.test", 443, "not_listed"))
    log.close()
    assert [use.host for use in read_egress(path)] == ["b.test"]


def test_a_failure_is_neither_reached_nor_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    log.add(Entry("failed", "gone.test", 443, "unresolved"))
    log.close()
    assert read_egress(tmp_path / "log") == [HostUse("gone.test", 443, 0, 0, "unresolved", 0)]


def test_without_a_file_nobody_was_asked_for(tmp_path: Path) -> None:
    assert read_egress(tmp_path / "none") == []
    assert read_egress(tmp_path) == []


def test_a_log_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none"):
        open_log(tmp_path / "none/log")


TEXT = st.text(max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXT, st.integers(0, 65535), TEXT), max_size=30))
def test_each_physical_line_is_an_object_and_nothing_is_lost(
    tmp_path: Path, asked: list[tuple[str, int, str]]
) -> None:
    path = tmp_path / "log"
    path.unlink(missing_ok=True)
    log = open_log(path)
    for host, port, reason in asked:
        log.add(Entry("refused", host, port, reason))
    log.close()
    assert len(lines(path)) == path.read_bytes().count(b"\n")
    found = {(use.host, use.port): use.refused for use in read_egress(path)}
    assert found == Counter((host, port) for host, port, _ in asked)


@given(st.lists(st.binary(max_size=40) | st.sampled_from(
    [b"[]", b"1", b'{"host": 1}', b'{"host": "a", "port": "x", "decision": "refused"}',
     b'{"host": "a", "port": 1, "decision": [], "count": 2}', b'{"host":"a","port":NaN}']
)))  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reading_never_fails(tmp_path: Path, content: list[bytes]) -> None:
    (tmp_path / "log").write_bytes(b"\n".join(content))
    read_egress(tmp_path / "log")
