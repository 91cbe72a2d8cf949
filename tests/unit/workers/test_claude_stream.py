from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import CommandRun, Ended, FailureKind, WorkerReading
from agentrunner.workers.claude import ClaudeWorker
from tests.kit.readings import STREAMS

OTHERS = sorted(path for path in STREAMS.iterdir() if not path.name.startswith("qwen"))
"""Qwen's streams are alike, and its adapter knows better than to believe their last word."""
CLAUDE = ClaudeWorker(WorkerSpec(kind="claude-code"))
CLEAN = ["claude-denied.json", "claude-json-schema.json", "claude-stream.jsonl"]
"""Each ends with a clean result; what was denied is told apart."""


def read(path: Path, exit_code: int = 0, outcome: Any = "exited") -> WorkerReading:
    return CLAUDE.read(Ended(exit_code, outcome, path, path.with_name("no-stderr")))


def read_lines(tmp_path: Path, *records: object, exit_code: int = 0) -> WorkerReading:
    path = tmp_path / "stdout"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return read(path, exit_code)


def result(**fields: object) -> dict[str, object]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "Done."} | fields


def use(name: str, number: int = 1, **given: object) -> dict[str, object]:
    block = {"type": "tool_use", "id": f"t{number}", "name": name, "input": given}
    return {"type": "assistant", "message": {"model": "m", "content": [block]}}


def answer(content: object, number: int = 1, **fields: object) -> dict[str, object]:
    block = {"type": "tool_result", "tool_use_id": f"t{number}", "content": content, **fields}
    return {"type": "user", "message": {"content": [block]}}


def test_a_whole_run() -> None:
    reading = read(STREAMS / "claude-stream.jsonl")
    assert reading.completed
    assert reading.session_id == "16e0b0e5-1e62-45a7-b13e-ab12f5627daa"
    assert reading.model == "claude-sonnet-4-5"
    assert reading.summary == "DONE: hello.py created and run."
    assert reading.commands == (
        CommandRun("python3 hello.py && git status --short", None, "completed"),
        CommandRun("echo oops >&2; exit 3", 3, "failed"),
    )
    assert reading.actions == 3
    assert (reading.input_tokens, reading.output_tokens) == (4800, 136)  # what was cached, too
    assert reading.usd == pytest.approx(0.01428)
    assert (reading.denied, reading.failure, reading.error) == ((), None, "")


def test_events_of_a_whole_run() -> None:
    told = CLAUDE.events().feed((STREAMS / "claude-stream.jsonl").read_bytes())
    assert [event.kind for event in told] == [
        *("text", "file_changed"),
        *("text", "command_started", "command_finished") * 2,
        *("text", "usage"),
    ]
    assert told[1].fields == {"path": "/task/repo/hello.py", "change": "update"}


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_only_a_clean_result_is_completed(path: Path) -> None:
    assert read(path).completed == (path.name in CLEAN)
    assert not read(path, exit_code=1).completed
    assert not read(path, outcome="interrupted").completed


def test_what_was_denied_is_told_by_name() -> None:
    assert read(STREAMS / "claude-denied.json").denied == ("Write", "Bash")


def test_an_error_of_the_api_is_called_a_success_by_it() -> None:
    reading = read(STREAMS / "claude-404.jsonl", exit_code=1)
    assert reading.failure is not None and reading.failure.kind == "model"
    assert reading.error.startswith("There's an issue with the selected model")
    assert reading.summary == ""  # its own words about it are not the worker's
    assert read(STREAMS / "claude-404.jsonl").completed is False


def test_an_interrupted_run_is_none_whatever_its_exit_code() -> None:
    for exit_code in (0, 1):
        reading = read(STREAMS / "claude-sigint.jsonl", exit_code)
        assert not reading.completed and not reading.cut_off
        assert reading.commands == (CommandRun("sleep 9; echo late > late.txt", None, "failed"),)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"is_error": True, "api_error_status": 401, "result": "Failed"}, "auth"),
        ({"is_error": True, "api_error_status": 429, "result": "No"}, "rate_limit"),
        ({"is_error": True, "api_error_status": 529, "result": "No"}, "rate_limit"),
        ({"is_error": True, "api_error_status": 500, "result": "No"}, "server"),
        ({"is_error": True, "api_error_status": 400, "result": "No"}, "protocol"),
        ({"is_error": True, "api_error_status": 400, "result": "Prompt is too long"}, "context"),
        ({"is_error": True, "result": "Not logged in · Please run /login"}, "auth"),
        ({"is_error": True, "result": "Unable to connect (ConnectionRefused)"}, "network"),
        ({"subtype": "error_max_turns", "is_error": True, "errors": ["Reached 3"]}, None),
        ({"subtype": "error_max_budget_usd", "is_error": True}, None),
        ({"is_error": "false"}, None),
    ],
)
def test_ends_that_are_no_completion(
    tmp_path: Path, fields: dict[str, object], kind: FailureKind | None
) -> None:
    reading = read_lines(tmp_path, result(**fields))
    assert not reading.completed and reading.error
    assert (reading.failure.kind if reading.failure else None) == kind


def test_a_retry_tells_what_a_stopped_run_was_about(tmp_path: Path) -> None:
    retry = {"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"}
    read_lines(tmp_path, retry, retry)
    reading = read(tmp_path / "stdout", outcome="retry_storm")
    assert reading.failure is not None and reading.failure.kind == "rate_limit"
    assert reading.cut_off


def test_a_reset_in_its_words_is_told(tmp_path: Path) -> None:
    said = "Claude AI usage limit reached|4102444800"
    reading = read_lines(tmp_path, result(is_error=True, api_error_status=429, result=said))
    assert reading.failure is not None and reading.failure.kind == "rate_limit"
    assert reading.failure.reset_at == ""  # no quota takes so many years
    soon = read_lines(tmp_path, result(is_error=True, result="429: try again in 5s")).failure
    assert soon is not None and soon.reset_at


def test_files_are_told_when_they_were_written(tmp_path: Path) -> None:
    lines = (
        use("Edit", 1, file_path="a.py"), answer("ok", 1),
        use("Write", 2, file_path="b.py"), answer("no", 2, is_error=True),
        use("NotebookEdit", 3, notebook_path="c.ipynb"), answer([{"text": "ok"}], 3),
        use("Grep", 4, pattern="x"), answer("ok", 4),
    )  # fmt: skip
    reading = read_lines(tmp_path, *lines, result())
    told = CLAUDE.events().feed((tmp_path / "stdout").read_bytes())
    changed = [event.fields["path"] for event in told if event.kind == "file_changed"]
    assert changed == ["a.py", "c.ipynb"]
    assert (reading.actions, reading.commands) == (4, ())


def test_tokens_and_cost_are_the_last_words(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 1}
    reading = read_lines(tmp_path, result(usage=usage, total_cost_usd=0.5))
    assert (reading.input_tokens, reading.output_tokens, reading.usd) == (12, 1, 0.5)
    hostile = read_lines(tmp_path, result(usage={"input_tokens": -1}, total_cost_usd=-3))
    assert (hostile.input_tokens, hostile.usd) == (0, None)


def test_a_session_that_is_not_known_is_not_gone_on_with(tmp_path: Path) -> None:
    said = "No conversation found with session ID: 1"
    lost = result(
        subtype="error_during_execution", is_error=True, errors=[said], session_id="1", result=None
    )
    reading = read_lines(tmp_path, lost, exit_code=1)
    assert (reading.session_lost, reading.session_id, reading.error) == (True, None, said)
