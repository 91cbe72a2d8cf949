from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import CommandRun, Ended, EventReader, WorkerReading
from agentrunner.workers.codex import CodexWorker
from agentrunner.workers.streams import MAX_LINE_BYTES
from tests.kit.readings import STREAMS

ALL = sorted(STREAMS.iterdir())
CODEX = CodexWorker(WorkerSpec())
GOOD = ["codex-exec-apply_patch.jsonl", "codex-exec-output-schema.jsonl", "codex-exec.jsonl"]


def read(
    path: Path, exit_code: int | None = 0, booked: tuple[int, int] = (0, 0), **changes: Any
) -> WorkerReading:
    fields = {"outcome": "exited", "stderr": path.with_name("no-stderr"), **changes}
    return CODEX.read(Ended(exit_code, stdout=path, session_tokens=booked, **fields))


def read_lines(tmp_path: Path, *records: object, exit_code: int = 0) -> WorkerReading:
    path = tmp_path / "stdout"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return read(path, exit_code)


def events() -> EventReader:
    return CODEX.events()


def item(
    kind: str = "agent_message", state: str = "completed", **fields: object
) -> dict[str, object]:
    return {"type": f"item.{state}", "item": {"id": "item_0", "type": kind, **fields}}


TURN_DONE = {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 2}}


def test_a_whole_run() -> None:
    reading = read(STREAMS / "codex-exec.jsonl")
    assert reading.completed
    assert reading.session_id == "01a1fc18-da9f-7b21-b79f-e188b737819c"
    assert reading.summary == "DONE: hello.py created and run."
    assert reading.commands[1:] == (
        CommandRun("python3 hello.py && git status --short", 0, "completed"),
        CommandRun("echo oops >&2; exit 3", 3, "failed"),
    )
    assert (reading.input_tokens, reading.output_tokens) == (4800, 136)
    assert reading.error == ""


def test_what_is_booked_for_the_session_is_subtracted() -> None:
    reading = read(STREAMS / "codex-exec.jsonl", booked=(4000, 200))
    assert (reading.input_tokens, reading.output_tokens) == (800, 0)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_only_a_clean_stream_of_codex_is_completed(path: Path) -> None:
    assert read(path).completed == (path.name in GOOD)


@pytest.mark.parametrize("name", GOOD)
def test_a_clean_stream_alone_is_not_enough(name: str) -> None:
    failed = read(STREAMS / name, exit_code=1)
    assert not failed.completed and failed.error == "exit code 1 after the turn was completed"
    stopped = read(STREAMS / name, outcome="interrupted")
    assert not stopped.completed and stopped.error == "stopped together with the run"


@pytest.mark.parametrize("name", GOOD)
def test_a_stream_without_its_last_line_is_not_completed(name: str, tmp_path: Path) -> None:
    lines = (STREAMS / name).read_text().splitlines(keepends=True)
    cut = tmp_path / "stdout"
    cut.write_text("".join(lines[:-1]))
    assert not read(cut).completed


@pytest.mark.parametrize(
    ("name", "kind", "error"),
    [
        ("codex-exec-401.jsonl", "auth", "unexpected status 401 Unauthorized"),
        ("codex-exec-429.jsonl", "rate_limit", "exceeded retry limit"),
        ("codex-exec-500.jsonl", "server", "We’re currently experiencing high demand"),
    ],
)
def test_errors_are_told_with_what_they_are_about(name: str, kind: str, error: str) -> None:
    reading = read(STREAMS / name, exit_code=1)
    assert reading.failure is not None and reading.failure.kind == kind
    assert reading.error.startswith(error)
    assert reading.error.endswith("(after 5 retries)") == ("429" not in name)


def test_a_turn_that_began_again_is_not_completed(tmp_path: Path) -> None:
    assert read_lines(tmp_path, TURN_DONE).completed
    assert not read_lines(tmp_path, TURN_DONE, {"type": "turn.started"}).completed
    failed = {"type": "turn.failed", "error": {"message": "no"}}
    assert not read_lines(tmp_path, TURN_DONE, failed).completed


def test_waiting_for_the_network_is_a_retry_and_what_it_was_stopped_for(tmp_path: Path) -> None:
    waits = "Reconnecting... waiting for network (Connection failed: error sending request)"
    before = {"type": "error", "message": "unexpected status 500"}
    lines = [before] + [{"type": "error", "message": waits}] * 8
    (tmp_path / "stdout").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    reading = read(tmp_path / "stdout", None, outcome="retry_storm")
    assert reading.failure is not None and reading.failure.kind == "network"


def test_a_remark_is_not_what_a_run_ended_for(tmp_path: Path) -> None:
    remark = item("error", message="Model metadata for `x` not found.")
    reading = read_lines(tmp_path, remark, {"type": "turn.failed"}, exit_code=1)
    assert reading.failure is None and "metadata" not in reading.error


def test_every_tool_is_an_action(tmp_path: Path) -> None:
    change = item("file_change", status="completed", changes=[{"path": "a", "kind": "add"}])
    running = item("command_execution", "started", command="ls", status="in_progress")
    ended = item("command_execution", command="ls", exit_code=0, status="completed")
    other = {"type": "item.completed", "item": {"id": "item_9", "type": "web_search"}}
    reading = read_lines(tmp_path, running, ended, change, other, TURN_DONE)
    assert reading.actions == 3


def test_a_command_that_did_not_end_has_no_exit_code(tmp_path: Path) -> None:
    running = item("command_execution", "started", command="sleep 9", status="in_progress")
    assert read_lines(tmp_path, running).commands == (CommandRun("sleep 9", None, "in_progress"),)


def test_claims_of_the_final_text_stand_behind_what_the_stream_shows(tmp_path: Path) -> None:
    claims = {"commands": [{"cmd": "npm test", "status": "passed"}, {"cmd": "ls"}]}
    reading = read_lines(
        tmp_path,
        item("command_execution", command="/bin/bash -lc 'npm test'", exit_code=1, status="failed"),
        item(text=f"Done.\n```json\n{json.dumps(claims)}\n```"),
        TURN_DONE,
    )
    assert reading.commands == (CommandRun("npm test", 1, "failed"), CommandRun("ls"))
    assert reading.summary == "Done."


def test_stderr_explains_where_the_stream_is_empty(tmp_path: Path) -> None:
    (tmp_path / "stdout").touch()
    (tmp_path / "stderr").write_text("Error: no rollout found\n")
    reading = read(tmp_path / "stdout", 1, stderr=tmp_path / "stderr")
    assert reading.error == "exit code 1 without the end of the turn: Error: no rollout found"


def test_hostile_values_are_no_numbers_and_no_surrogates(tmp_path: Path) -> None:
    usage = {"input_tokens": 1 << 70, "output_tokens": -5}
    reading = read_lines(
        tmp_path,
        {"type": "thread.started", "thread_id": 7},
        item("command_execution", command="x", exit_code=1 << 40),
        {"type": "item.completed", "item": {"type": "agent_message", "text": "a\ud800" * 999}},
        {"type": "turn.completed", "usage": usage},
    )
    assert (reading.input_tokens, reading.output_tokens) == (0, 0)
    assert reading.session_id is None
    assert reading.commands[0].exit_code is None
    assert len(reading.summary) == 600
    reading.summary.encode()


def test_an_endless_line_is_dropped_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    path.write_bytes(b"x" * (MAX_LINE_BYTES + 1) + b"\n" + json.dumps(TURN_DONE).encode())
    assert read(path).completed


def test_events_of_a_whole_run() -> None:
    told = events().feed((STREAMS / "codex-exec.jsonl").read_bytes())
    assert [event.kind for event in told] == [
        *("text", "command_started", "command_finished") * 3,
        *("text", "usage"),
    ]
    assert told[8].fields == {"command": "echo oops >&2; exit 3", "exit_code": 3}
    assert told[-1].fields == {"input_tokens": 4800, "output_tokens": 136}


def test_events_of_a_patch_name_the_files() -> None:
    told = events().feed((STREAMS / "codex-exec-apply_patch.jsonl").read_bytes())
    changed = [event.fields for event in told if event.kind == "file_changed"]
    assert changed == [
        {"path": "/task/repo/README.md", "change": "update"},
        {"path": "/task/repo/hello.py", "change": "add"},
    ]


def test_a_repeated_error_is_told_once() -> None:
    told = events().feed((STREAMS / "codex-exec-429.jsonl").read_bytes())
    messages = [event.fields["message"] for event in told]
    assert len(messages) == 2
    assert messages[1] == "exceeded retry limit, last status: 429 Too Many Requests"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_events_do_not_depend_on_how_the_stream_is_cut(path: Path) -> None:
    data = path.read_bytes()
    reader = events()
    pieces = [event for at in range(0, len(data), 7) for event in reader.feed(data[at : at + 7])]
    assert pieces == events().feed(data)


NAMES = st.sampled_from(
    ["type", "item", "message", "error", "usage", "changes", "command", "id", "text", "path"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(
        [
            "",
            "'",
            "a\ud800",
            "x" * 5_000,
            "command_execution",
            "file_change",
            "agent_message",
            "error",
        ]
    )
)
OBJECTS = st.dictionaries(NAMES, SCALARS, max_size=4)
RECORDS = st.dictionaries(NAMES, SCALARS | OBJECTS | st.lists(OBJECTS, max_size=2), max_size=4)
TYPES = st.sampled_from(
    ["item.started", "item.completed", "turn.completed", "turn.failed", "error", "thread.started"]
)


@given(st.lists(st.tuples(TYPES, RECORDS), max_size=4))
def test_nothing_that_is_printed_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, dict[str, Any]]]
) -> None:
    stdout = tmp_path_factory.mktemp("run") / "stdout"
    stdout.write_text("".join(json.dumps({**rest, "type": kind}) + "\n" for kind, rest in records))
    facts = [event.fields for event in events().feed(stdout.read_bytes())]
    for fact in (*facts, asdict(read(stdout))):
        json.dumps(fact, ensure_ascii=False).encode()
