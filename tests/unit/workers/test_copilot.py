"""The Copilot CLI: its command line, its stream, its masked secrets, its native program."""

from __future__ import annotations

import platform
from pathlib import Path

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import CommandRun
from agentrunner.workers.copilot import CopilotWorker
from tests.kit.readings import HOME, STREAMS, adapter, command, read

KIND = "copilot-cli"


def test_the_command_line() -> None:
    made = command(KIND, tool_specific={"reasoning-effort": "low"})
    assert made.argv[1:] == (
        *("--output-format", "json", "--disable-client-telemetry", "--disable-builtin-mcps"),
        *("--allow-all-tools", "--allow-all-paths"),
        *("--session-id", "00000000-0000-4000-8000-000000000001"),
        *("--reasoning-effort", "low"),
    )
    assert made.stdin == b"do it"
    assert made.env["COPILOT_PROVIDER_BASE_URL"] == "http://127.0.0.1:8787"
    assert made.env["COPILOT_MODEL"] == "some-model"
    assert made.env["COPILOT_OFFLINE"] == "true"
    assert made.env["HOME"] == made.env["COPILOT_HOME"] == str(HOME / "copilot")
    assert made.key_env == "COPILOT_PROVIDER_API_KEY"


def test_a_session_is_resumed_by_its_id() -> None:
    argv = command(KIND, mode="resume", session_id="s-1").argv
    assert "--resume=s-1" in argv and "--session-id" not in argv


def test_the_native_program_is_started_and_not_the_loader(tmp_path: Path) -> None:
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    packages = tmp_path / "node_modules" / "@github"
    loader = packages / "copilot" / "npm-loader.js"
    native = packages / f"copilot-linux-{machine}" / "copilot"
    for path in (loader, native):
        path.parent.mkdir(parents=True)
        path.touch(0o755)
    worker = CopilotWorker(WorkerSpec(kind=KIND, command=[str(loader)]))
    assert worker.program() == str(native)


def test_a_run_that_ends_well() -> None:
    reading, came = read(KIND, "copilot-stream.jsonl", changed=1)
    assert reading.completed and came.outcome == "completed"
    assert reading.summary == "DONE: hello.py created and run."
    assert reading.session_id == "71bdd8fb-5e80-464b-b92d-7a0f105fa1cd"
    assert reading.model == "fake-model"
    assert reading.actions == 3
    assert reading.commands == (
        CommandRun("python3 hello.py && git status --short", 0, "completed"),
        CommandRun("echo oops >&2; exit 3", 3, "failed"),
    )
    assert (reading.input_tokens, reading.output_tokens) == (0, 0)


def test_the_live_view() -> None:
    events = adapter(KIND).events().feed((STREAMS / "copilot-stream.jsonl").read_bytes())
    assert [event.kind for event in events] == [
        *("text", "file_changed", "text", "command_started", "command_finished"),
        *("text", "command_started", "command_finished", "text"),
    ]
    assert events[1].fields == {"path": "/task/repo/hello.py", "change": "add"}


def test_a_spent_quota_that_it_sleeps_for() -> None:
    reading, came = read(KIND, "copilot-429.jsonl", None, outcome="retry_storm")
    assert came.outcome == "rate_limit"
    assert reading.failure is not None and "try again in 20s" in reading.failure.message


def test_denied_tools_end_with_exit_0_and_are_no_success() -> None:
    reading, came = read(KIND, "copilot-denied.jsonl", 0)
    assert reading.denied == ("create", "bash")
    assert came.outcome == "denied"
