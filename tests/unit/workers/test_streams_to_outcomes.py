"""The traps: what each captured stream came to, whatever its CLI called it and exited with."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.state.worker_runs import Outcome
from tests.kit.readings import cut, read

WHOLE = [
    ("codex-cli", "codex-exec.jsonl"),
    ("claude-code", "claude-stream.jsonl"),
    ("gemini-cli", "gemini-stream.jsonl"),
    ("qwen-code", "qwen-stream.jsonl"),
    ("opencode", "opencode-stream.jsonl"),
    ("copilot-cli", "copilot-stream.jsonl"),
]


@pytest.mark.parametrize(
    ("kind", "name", "exit_code", "changed", "expected"),
    [
        *((kind, name, 0, 1, "completed") for kind, name in WHOLE),
        ("codex-cli", "codex-exec-apply_patch.jsonl", 0, 2, "completed"),
        # It could use no tool, as in a sandbox within ours, and exits with 0.
        ("codex-cli", "codex-exec-output-schema.jsonl", 0, 0, "no_op"),
        ("codex-cli", "codex-exec-401.jsonl", 1, 0, "auth"),
        ("codex-cli", "codex-exec-429.jsonl", 1, 0, "rate_limit"),
        ("codex-cli", "codex-exec-500.jsonl", 1, 0, "server"),
        ("claude-code", "claude-404.jsonl", 1, 0, "model"),  # "success"
        ("claude-code", "claude-denied.json", 0, 0, "denied"),  # "success", exit 0
        ("claude-code", "claude-sigint.jsonl", 0, 0, "failed"),
        ("gemini-cli", "gemini-401.jsonl", 145, 0, "auth"),
        ("gemini-cli", "gemini-404.jsonl", 1, 0, "model"),
        ("gemini-cli", "gemini-context.jsonl", 144, 0, "context"),
        ("gemini-cli", "gemini-cut.jsonl", 1, 0, "network"),
        ("gemini-cli", "gemini-garbage.jsonl", 1, 0, "protocol"),
        ("qwen-code", "qwen-401.jsonl", 0, 0, "auth"),  # each of its errors: "success", exit 0
        ("qwen-code", "qwen-404.jsonl", 0, 0, "model"),
        ("qwen-code", "qwen-context.jsonl", 0, 0, "context"),
        ("qwen-code", "qwen-cut.jsonl", 0, 0, "network"),
        ("qwen-code", "qwen-garbage.jsonl", 0, 0, "protocol"),
        ("opencode", "opencode-401.jsonl", 1, 0, "auth"),
        ("opencode", "opencode-404.jsonl", 1, 0, "model"),
        ("opencode", "opencode-context.jsonl", 1, 0, "context"),
        ("copilot-cli", "copilot-401.jsonl", 1, 0, "auth"),
        ("copilot-cli", "copilot-404.jsonl", 1, 0, "model"),
        ("copilot-cli", "copilot-context.jsonl", 1, 0, "context"),
        ("copilot-cli", "copilot-500.jsonl", 1, 0, "server"),
        ("copilot-cli", "copilot-garbage.jsonl", 1, 0, "protocol"),
        ("aider", "aider.txt", 0, 1, "completed"),
        ("aider", "aider-401.txt", 0, 0, "auth"),  # exit 0
        ("aider", "aider-404.txt", 0, 0, "model"),
        ("aider", "aider-context.txt", 0, 0, "context"),
    ],
)
def test_a_captured_stream_is_what_it_came_to(
    kind: str, name: str, exit_code: int, changed: int, expected: Outcome
) -> None:
    reading, came = read(kind, name, exit_code, changed=changed)
    assert came.outcome == expected, came.error
    assert reading.completed == (expected in ("completed", "no_op", "denied"))
    # Whom we have signalled is interrupted, even with a clean last word and exit 0.
    reading, came = read(kind, name, changed=changed, outcome="interrupted")
    assert (came.outcome, reading.completed) == ("interrupted", False)


@pytest.mark.parametrize(("kind", "name"), WHOLE)
def test_exit_0_without_the_last_word_is_an_interrupt(kind: str, name: str, tmp_path: Path) -> None:
    """As Gemini, Copilot and Codex exit where somebody else than we has stopped them."""
    for lines in (1, 5):
        came = read(kind, cut(tmp_path, name, lines), changed=3)[1]
        assert came.outcome == "interrupted", lines


@pytest.mark.parametrize(
    ("kind", "exit_code", "words"),
    [
        ("gemini-cli", 42, 'Error resuming session: Invalid session identifier "s-1".'),
        ("qwen-code", 1, "No saved session found with ID c5cf9c1a. Run `qwen --resume` without."),
        ("opencode", 1, "Error: Session not found"),
        ("copilot-cli", 1, "Error: No session, task, or name matched 'bb250360'."),
    ],
)
def test_a_lost_session(kind: str, exit_code: int, words: str, tmp_path: Path) -> None:
    said = tmp_path / "stderr"
    said.write_text(f"{words}\n")
    assert read(kind, "none", exit_code, stderr=str(said))[0].session_lost
