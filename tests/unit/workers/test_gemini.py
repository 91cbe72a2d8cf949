"""The Gemini CLI: its command line, its stream, and what it hides."""

from __future__ import annotations

import json
import re

from agentrunner.workers.base import CommandRun
from tests.kit.readings import HOME, STREAMS, adapter, command, read

KIND = "gemini-cli"


def test_the_command_line() -> None:
    made = command(KIND)
    assert made.argv[1:] == (
        *("-o", "stream-json", "-m", "some-model", "--skip-trust", "--approval-mode", "yolo"),
        *("--session-id", "00000000-0000-4000-8000-000000000001"),
    )
    assert made.stdin == b"do it"
    assert made.key_env == "GEMINI_API_KEY"
    assert made.env["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:8787"
    assert made.env["GEMINI_CLI_HOME"] == str(HOME / "gemini")
    assert made.env["GEMINI_CLI_NO_RELAUNCH"]
    settings = json.loads(made.files[HOME / "gemini" / ".gemini" / "settings.json"])
    assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert settings["general"]["enableAutoUpdate"] is False


def test_a_session_is_resumed_by_its_id() -> None:
    argv = command(KIND, mode="resume", session_id="s-1").argv
    assert argv[-2:] == ("--resume", "s-1") and "--session-id" not in argv


def test_without_a_sandbox_it_may_edit_and_run_nothing() -> None:
    argv = command(KIND, sandboxed=False).argv
    assert argv[argv.index("--approval-mode") + 1] == "auto_edit"
    reading, came = read(KIND, "gemini-auto-edit.jsonl", 144)
    assert reading.actions == 1 and not reading.commands
    assert came.outcome == "protocol"


def test_a_run_that_ends_well() -> None:
    reading, came = read(KIND, "gemini-stream.jsonl", changed=1)
    assert reading.completed and came.outcome == "completed"
    assert reading.summary == "DONE: hello.py created and run."
    assert reading.session_id == "aa6446d8-3333-4c28-909d-c302cb158d5b"
    assert reading.model == "gemini-2.5-pro"
    assert reading.actions == 3
    assert (reading.input_tokens, reading.output_tokens) == (4800, 136)


def test_exit_codes_are_not_told_and_not_made_up() -> None:
    reading, _ = read(KIND, "gemini-stream.jsonl")
    assert reading.commands[-1] == CommandRun("echo oops >&2; exit 3", None, "completed")


def test_the_live_view() -> None:
    events = adapter(KIND).events().feed((STREAMS / "gemini-stream.jsonl").read_bytes())
    assert [event.kind for event in events] == [
        *("text", "file_changed", "text", "command_started", "command_finished"),
        *("text", "command_started", "command_finished", "text", "usage"),
    ]
    assert events[1].fields == {"path": "hello.py", "change": "update"}


def test_a_retry_storm_is_of_what_its_log_says() -> None:
    watch = command(KIND).watch
    lines = (STREAMS / "gemini-429.err").read_text().splitlines()
    assert [bool(re.search(watch.retry, line)) for line in lines] == [False, True, True, True, True]
    _, came = read(KIND, "gemini-429.jsonl", None, stderr="gemini-429.err", outcome="retry_storm")
    assert came.outcome == "rate_limit"
