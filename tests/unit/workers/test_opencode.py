"""opencode: its command line, its settings in a variable, and a stream without a last event."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agentrunner.workers.base import CommandRun
from tests.kit.readings import HOME, STREAMS, adapter, command, read

KIND = "opencode"


def settings(**call: Any) -> Any:
    return json.loads(command(KIND, **call).env["OPENCODE_CONFIG_CONTENT"])


def test_the_command_line() -> None:
    made = command(KIND)
    assert made.argv[1:] == (
        *("run", "--format", "json", "-m", "ar/some-model"),
        *("--print-logs", "--log-level", "ERROR", "--auto"),
    )
    assert made.stdin == b"do it"
    homes = {made.env[name] for name in made.env if name.endswith("HOME")}
    assert all(Path(home).is_relative_to(HOME / "opencode") for home in homes)
    assert command(KIND, mode="resume", session_id="ses_1").argv[-2:] == ("--session", "ses_1")


def test_the_settings_name_the_gateway_and_no_key() -> None:
    options = settings()["provider"]["ar"]["options"]
    assert options == {"baseURL": "http://127.0.0.1:8787", "apiKey": "{env:AR_MODEL_KEY}"}
    assert command(KIND).key_env == "AR_MODEL_KEY"
    assert settings()["permission"] == {"*": "allow"}
    assert settings()["autoupdate"] is False and settings()["share"] == "disabled"


def test_without_a_sandbox_it_may_edit_and_run_nothing() -> None:
    assert "--auto" not in command(KIND, sandboxed=False).argv
    assert settings(sandboxed=False)["permission"]["bash"] == "deny"


def test_a_run_that_ends_well() -> None:
    reading, came = read(KIND, "opencode-stream.jsonl", changed=1)
    assert reading.completed and came.outcome == "completed"
    assert reading.summary == "DONE: hello.py created and run."
    assert reading.session_id == "ses_e03d0a9b0ffeu409e92QyW9Qbz"
    assert reading.actions == 3
    assert [run.exit_code for run in reading.commands] == [0, 3]
    assert reading.commands[-1] == CommandRun("echo oops >&2; exit 3", 3, "failed")
    assert (reading.input_tokens, reading.output_tokens) == (4800, 136)


def test_the_live_view() -> None:
    events = adapter(KIND).events().feed((STREAMS / "opencode-stream.jsonl").read_bytes())
    kinds = [event.kind for event in events]
    assert kinds.count("command_finished") == 2 and "file_changed" in kinds
    assert events[-1].fields == {"input_tokens": 4800, "output_tokens": 136}


def test_a_run_that_failed_has_its_session() -> None:
    assert read(KIND, "opencode-401.jsonl", 1)[0].session_id


def test_an_answer_that_was_cut_off_is_no_end(tmp_path: Path) -> None:
    stream = tmp_path / "stdout"
    whole = (STREAMS / "opencode-stream.jsonl").read_text()
    stream.write_text(whole.replace('"reason":"stop"', '"reason":"length"'))
    reading, came = read(KIND, str(stream), 0, changed=1)
    assert not reading.completed and came.outcome != "completed"


def test_a_denied_tool_is_told() -> None:
    reading, _ = read(KIND, "opencode-denied.jsonl")
    assert reading.denied == ("bash",)


def test_a_storm_is_seen_in_its_log() -> None:
    watch = command(KIND).watch
    assert re.search(watch.retry, (STREAMS / "opencode-429.err").read_text())
    _, came = read(KIND, "none", None, stderr="opencode-429.err", outcome="retry_storm")
    assert came.outcome == "rate_limit"
