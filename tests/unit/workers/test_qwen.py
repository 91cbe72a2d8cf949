"""Qwen Code: its command line, its stream, and errors that call themselves a success."""

from __future__ import annotations

import json
from pathlib import Path

from agentrunner.workers.base import CommandRun
from tests.kit.readings import HOME, command, read

KIND = "qwen-code"


def test_the_command_line() -> None:
    made = command(KIND)
    assert made.argv[1:] == (
        *("-o", "stream-json", "--auth-type", "openai", "-m", "some-model"),
        *("--approval-mode", "yolo"),
        *("--session-id", "00000000-0000-4000-8000-000000000001"),
    )
    assert made.stdin == b"do it"
    assert made.env["OPENAI_BASE_URL"] == "http://127.0.0.1:8787"
    assert made.env["HOME"] == str(HOME / "qwen")


def test_its_calls_go_past_the_proxy_of_the_box() -> None:
    settings = json.loads(command(KIND).files[HOME / "qwen" / ".qwen" / "settings.json"])
    assert settings["proxy"] and not settings["proxy"].strip()


def test_a_session_is_resumed_and_its_total_is_not_booked_twice() -> None:
    argv = command(KIND, mode="resume", session_id="s-1").argv
    assert argv[-2:] == ("--resume", "s-1") and "--session-id" not in argv
    reading, _ = read(KIND, "qwen-stream.jsonl", booked=(3600, 102))
    assert (reading.input_tokens, reading.output_tokens) == (1200, 34)


def test_a_run_that_ends_well() -> None:
    reading, came = read(KIND, "qwen-stream.jsonl", changed=1)
    assert reading.completed and came.outcome == "completed"
    assert reading.summary == "DONE: hello.py created and run."
    assert reading.session_id == "d72fb50d-98c6-42d7-bcf5-c9af8a5d7ca7"
    assert reading.actions == 3
    assert (reading.input_tokens, reading.output_tokens) == (4800, 136)
    assert reading.commands[-1] == CommandRun("echo oops >&2; exit 3", None, "completed")


def test_a_text_that_tells_of_such_an_error_is_none(tmp_path: Path) -> None:
    text = "The log says `[API Error: 401 bad key]`, which I repaired."
    end = {"type": "result", "subtype": "success", "is_error": False, "result": text}
    stream = tmp_path / "stdout"
    stream.write_text(json.dumps(end) + "\n")
    assert read(KIND, str(stream), changed=1)[1].outcome == "completed"


def test_a_command_that_it_would_not_run_has_failed() -> None:
    reading, _ = read(KIND, "qwen-refused-command.jsonl")
    assert reading.commands == (CommandRun("sleep 33; touch late.txt", None, "failed"),)


def test_denied_tools_are_told(tmp_path: Path) -> None:
    end = {
        "type": "result", "subtype": "success", "is_error": False, "result": "Done.",
        "permission_denials": [{"tool_name": "run_shell_command"}],
    }  # fmt: skip
    stream = tmp_path / "stdout"
    stream.write_text(json.dumps(end) + "\n")
    assert read(KIND, str(stream))[1].outcome == "denied"
