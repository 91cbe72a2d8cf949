from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import WorkerCommand, WorkerRequest
from agentrunner.workers.claude import ClaudeWorker

HOME = Path("/state/box")
URL = "http://127.0.0.1:9"
CHOSEN = "5a2f9a30-5a5c-4c7e-9a39-0a5a1a9d7b11"


def command(spec: dict[str, Any] | None = None, **changes: Any) -> WorkerCommand:
    fields: dict[str, Any] = {
        "worker_run_id": "w1",
        "prompt": "do it",
        "workdir": Path("/src/repo"),
        "home": HOME,
        "prompt_file": HOME / "prompt.md",
    }
    worker = ClaudeWorker(WorkerSpec.model_validate({"kind": "claude-code", **(spec or {})}))
    return worker.command(WorkerRequest(**fields | changes))


def test_the_whole_command() -> None:
    made = command({"model": "opus"}, new_session_id=CHOSEN, base_url=URL)
    assert made.argv[1:] == (
        *("-p", "--output-format", "stream-json", "--verbose", "--model", "opus"),
        *("--session-id", CHOSEN, "--dangerously-skip-permissions"),
        *("--settings", json.dumps({"env": {"ANTHROPIC_BASE_URL": URL}})),
    )
    assert made.env == {
        "CLAUDE_CONFIG_DIR": "/state/box/claude",
        "CLAUDE_CODE_TMPDIR": "/state/box/tmp",
        "TMPDIR": "/state/box/tmp",
        "ANTHROPIC_BASE_URL": URL,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "IS_SANDBOX": "1",
    }
    assert made.stdin == b"do it"
    assert (made.key_env, made.stop_signal) == ("ANTHROPIC_API_KEY", "INT")
    assert set(made.folders) == {HOME / "claude", HOME / "tmp"}


def test_without_our_sandbox_the_bypass_flag_is_not_used() -> None:
    made = command(sandboxed=False)
    assert "--dangerously-skip-permissions" not in made.argv
    assert "IS_SANDBOX" not in made.env
    at = made.argv.index("--permission-mode")
    assert made.argv[at + 1 : at + 3] == ("dontAsk", "--allowedTools")
    assert {"Bash", "Edit", "Write", "Read"} <= set(made.argv[at + 3].split(","))


def test_a_session_is_resumed_by_its_own_id() -> None:
    argv = command(mode="resume", session_id="abc", new_session_id=CHOSEN).argv
    assert argv[argv.index("--resume") + 1] == "abc"
    assert "--session-id" not in argv
    fresh = command(mode="resume", new_session_id=CHOSEN).argv
    assert fresh[fresh.index("--session-id") + 1] == CHOSEN


def test_with_a_login_there_is_no_key_beside_it() -> None:
    made = command(login=True)
    assert made.key_env == ""
    assert "--bare" not in made.argv


def test_settings_and_flags_come_last_the_tasks_own_behind_the_models() -> None:
    spec = {"flags": ["--effort", "high"]}
    argv = command(spec, flags=("--effort", "low"), tool_specific={"max-turns": "9"}).argv
    assert argv[-6:] == ("--max-turns", "9", "--effort", "low", "--effort", "high")


def test_without_a_model_its_own_is_used_from_its_own_provider() -> None:
    made = command()
    assert "--model" not in made.argv
    assert made.env["ANTHROPIC_BASE_URL"] == "https://api.anthropic.com"
