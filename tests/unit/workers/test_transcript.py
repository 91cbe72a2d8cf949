"""The engine behind every adapter: facts to a reading, and to live events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentrunner.workers.base import CommandRun, Ended, ProcessOutcome, WorkerEvent, WorkerReading
from agentrunner.workers.fact import (
    Cost,
    Fact,
    FileChanged,
    Finished,
    Model,
    Retrying,
    Session,
    Tokens,
    ToolBegan,
    ToolDenied,
    ToolEnded,
    ToolUse,
    Trouble,
    TurnBegan,
    WorkerMessage,
)
from agentrunner.workers.transcript import (
    MAX_MESSAGE_CHARS,
    TranscriptEvents,
    facts_in,
    reading_of,
)

DONE = Finished(clean=True)
LS = ToolUse("shell", command="ls")


class Stream:
    """A stream whose every record stands for one fact."""

    def __init__(self, place: Path, *facts: Fact) -> None:
        self._facts = facts
        self.stdout, self.stderr = place / "stdout", place / "stderr"
        self.stdout.write_text("".join(f"{json.dumps({'n': n})}\n" for n in range(len(facts))))

    def translate(self, record: Mapping[str, object]) -> Iterator[Fact]:
        if "n" in record:
            yield self._facts[int(str(record["n"]))]

    def read(
        self,
        exit_code: int | None = 0,
        outcome: ProcessOutcome = "exited",
        booked: tuple[int, int] = (0, 0),
        **how: Any,
    ) -> WorkerReading:
        ended = Ended(exit_code, outcome, self.stdout, self.stderr, session_tokens=booked)
        return reading_of(ended, facts_in(ended.stdout, self.translate), **how)

    def events(self) -> list[WorkerEvent]:
        return TranscriptEvents(self.translate).feed(self.stdout.read_bytes())


@pytest.mark.parametrize(
    ("facts", "exit_code", "outcome", "completed"),
    [
        ([DONE], 0, "exited", True),
        ([DONE], None, "lingered", True),
        ([DONE], -15, "lingered", True),
        ([DONE], 1, "exited", False),
        ([DONE], 0, "interrupted", False),
        ([DONE], 0, "retry_storm", False),
        ([Finished(clean=False)], 0, "exited", False),
        ([DONE, TurnBegan()], 0, "exited", False),
        ([], 0, "exited", False),
        ([], None, "lingered", False),
    ],
)
def test_completed_is_a_clean_last_word_and_an_end_by_itself(
    tmp_path: Path,
    facts: list[Fact],
    exit_code: int | None,
    outcome: ProcessOutcome,
    completed: bool,
) -> None:
    reading = Stream(tmp_path, *facts).read(exit_code, outcome)
    assert reading.completed == completed
    assert bool(reading.error) == (not completed)
    assert reading.cut_off == (not facts or facts[-1] == TurnBegan())


def test_what_came_last_is_what_it_was_about(tmp_path: Path) -> None:
    old, new = Trouble("unexpected status 500"), Retrying("fetch failed")
    failure = Stream(tmp_path, old, new).read(1).failure
    assert failure is not None and failure.kind == "network"
    failure = Stream(tmp_path, new, old).read(1).failure
    assert failure is not None and failure.kind == "server"
    passing = Trouble("429 Too Many Requests", fatal=False)
    failure = Stream(tmp_path, old, passing).read(1).failure
    assert failure is not None and failure.kind == "server"


def test_trouble_before_a_clean_end_is_none(tmp_path: Path) -> None:
    reading = Stream(tmp_path, Trouble("401"), Retrying("429"), DONE).read()
    assert (reading.completed, reading.failure, reading.error) == (True, None, "")


def test_the_end_of_stderr_tells_where_the_stream_does_not(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.stderr.write_text("starting\nError: invalid API key\n")
    reading = stream.read(1)
    assert reading.failure is not None and reading.failure.kind == "auth"
    assert "invalid API key" in reading.error


def test_a_reset_counts_from_when_it_was_said(tmp_path: Path) -> None:
    failure = Stream(tmp_path, Trouble("429: try again in 5s")).read(1).failure
    assert failure is not None and failure.reset_at.startswith("20")


def test_steps_are_added_and_totals_replace(tmp_path: Path) -> None:
    step = Tokens(10, 1, "step")
    reading = Stream(tmp_path, step, step, DONE).read(booked=(5, 5))
    assert (reading.input_tokens, reading.output_tokens) == (20, 2)
    run = Stream(tmp_path, Tokens(10, 1), Tokens(30, 3), Cost(0.1), Cost(0.3), DONE)
    assert (run.read(booked=(5, 5)).input_tokens, run.read().usd) == (30, 0.3)
    session = Stream(tmp_path, Tokens(30, 3, "session"), DONE).read(booked=(20, 5))
    assert (session.input_tokens, session.output_tokens) == (10, 0)


def test_pieces_are_joined_until_something_else_comes(tmp_path: Path) -> None:
    pieces = WorkerMessage("I ", joins=True), WorkerMessage("go.", joins=True)
    stream = Stream(tmp_path, *pieces, ToolBegan("1", LS), *pieces[1:], WorkerMessage("All."), DONE)
    texts = [event.fields["text"] for event in stream.events() if event.kind == "text"]
    assert texts == ["I go.", "go.", "All."]
    assert stream.read().summary == "All."
    assert Stream(tmp_path, ToolBegan("1", LS), *pieces, DONE).read().summary == "I go."


def test_endless_pieces_stay_small(tmp_path: Path) -> None:
    stream = Stream(tmp_path, *[WorkerMessage("x" * 1_000, joins=True)] * 500, DONE)
    assert len(stream.read().summary) == 600
    assert MAX_MESSAGE_CHARS < 500 * 1_000
    assert [len(event.fields["text"]) for event in stream.events()] == [4_000]


def test_a_tool_is_one_action_however_often_it_is_told(tmp_path: Path) -> None:
    write = ToolUse("write", path="a.py", change="add")
    stream = Stream(
        tmp_path,
        ToolBegan("1", LS), ToolEnded("1", exit_code=2, status="failed"),
        ToolEnded("2", tool=write), ToolEnded("3", failed=True, tool=write),
        ToolEnded("", tool=LS), ToolEnded("", tool=LS),
        ToolEnded("unknown"), FileChanged("b.py"), ToolDenied("web"), ToolDenied("web"), DONE,
    )  # fmt: skip
    reading = stream.read()
    assert reading.actions == 6
    assert reading.commands == (CommandRun("ls", 2, "failed"), CommandRun("ls"), CommandRun("ls"))
    assert reading.denied == ("web",)
    assert [event.kind for event in stream.events()] == [
        *("command_started", "command_finished", "file_changed"),
        *("command_finished", "command_finished", "file_changed"),
    ]
    assert stream.read(counts_actions=False).actions is None


def test_a_lost_session_is_told_by_the_clis_words(tmp_path: Path) -> None:
    told = Stream(tmp_path, Session("s1"), Trouble("gone: 404"), Finished(False))
    reading = told.read(1, lost_session="gone")
    assert (reading.session_lost, reading.session_id, reading.failure) == (True, None, None)
    assert reading.error == "gone: 404"
    silent = Stream(tmp_path)
    silent.stderr.write_text("no such session: s1\n")
    assert silent.read(1, lost_session="no such session").session_lost
    assert not silent.read(1, lost_session="not this").session_lost


def test_a_worker_that_is_done_may_speak_of_lost_sessions(tmp_path: Path) -> None:
    stream = Stream(tmp_path, Session("s1"), Model("m"), WorkerMessage("no such session"), DONE)
    reading = stream.read(lost_session="no such session")
    assert (reading.session_lost, reading.session_id, reading.model) == (False, "s1", "m")


def test_a_repeated_error_is_told_once(tmp_path: Path) -> None:
    stream = Stream(tmp_path, Retrying("a"), Trouble("a"), Trouble("b", fatal=False), Retrying("a"))
    assert [event.fields["message"] for event in stream.events()] == ["a", "b", "a"]
