from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from agentrunner.storage.events import Event, EventLog, read_events, read_from

NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=9)))


def log(path: Path) -> EventLog:
    return EventLog(path, "t-0000", lambda: NOON, lambda text: text.replace("hunter2", "***"))


def test_numbers_rise_over_the_whole_life_of_the_run(tmp_path: Path) -> None:
    first = log(tmp_path / "events")
    first.emit("run_started")
    first.emit("decision", action="run_worker", reason="use hunter2")
    with first.path.open("ab") as file:
        file.write(b'{"seq": 99, "eve')
    second = log(tmp_path / "events")
    second.emit("run_resumed", attempt=2)
    assert read_events(first.path) == second.read()
    assert second.read() == [
        {"ts": "2026-01-02T03:00:00.123Z", "seq": 1, "run_id": "t-0000", "event": "run_started"},
        {
            "ts": "2026-01-02T03:00:00.123Z",
            "seq": 2,
            "run_id": "t-0000",
            "event": "decision",
            "action": "run_worker",
            "reason": "use ***",
        },
        {
            "ts": "2026-01-02T03:00:00.123Z",
            "seq": 3,
            "run_id": "t-0000",
            "event": "run_resumed",
            "attempt": 2,
        },
    ]


def test_listeners_hear_what_is_written(tmp_path: Path) -> None:
    events = EventLog(tmp_path / "events", "t-0000", lambda: datetime.now(UTC))
    heard: list[Event] = []
    events.listeners.append(heard.append)
    said = events.emit("warning", code="x", message="line\nbreak")
    assert heard == [said] == events.read()


def test_a_line_break_in_a_value_forges_no_event(tmp_path: Path) -> None:
    events = log(tmp_path / "events")
    events.emit("warning", message='x\n{"event": "result"}\u2028')
    assert len(events.path.read_bytes().splitlines()) == 1


def test_a_damaged_line_is_left_out_and_the_rest_of_a_growing_file_is_read_on(
    tmp_path: Path,
) -> None:
    file = tmp_path / "events"
    file.write_bytes(b'{"seq": 1}\n{"se\xff\n{"seq": 2}\n{"seq"')
    events, offset = read_from(file, 0)
    assert events == [{"seq": 1}, {"seq": 2}]
    with file.open("ab") as more:
        more.write(b": 3}\n")
    assert read_from(file, offset)[0] == [{"seq": 3}]
