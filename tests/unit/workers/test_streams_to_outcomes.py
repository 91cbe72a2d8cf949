"""The traps: what each captured stream came to, whatever its CLI called it and exited with."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.state.worker_runs import Outcome
from agentrunner.workers.base import Ended, ProcessOutcome
from agentrunner.workers.member import make_worker
from agentrunner.workers.outcome import outcome_of
from tests.kit.readings import STREAMS


def outcome(
    kind: str, name: str, exit_code: int, changed: int, process: ProcessOutcome = "exited"
) -> Outcome:
    worker = make_worker(WorkerSpec(kind=kind, model="fake-model"))
    ended = Ended(exit_code, process, STREAMS / name, STREAMS / "no-stderr")
    return outcome_of(
        ended,
        worker.read(ended),
        gateway_error=None,
        changed=changed,
        reports=worker.reports,
    ).outcome


@pytest.mark.parametrize(
    ("kind", "name", "exit_code", "changed", "expected"),
    [
        ("codex-cli", "codex-exec.jsonl", 0, 1, "completed"),
        ("codex-cli", "codex-exec-apply_patch.jsonl", 0, 2, "completed"),
        # It could use no tool, as in a sandbox within ours, and exits with 0.
        ("codex-cli", "codex-exec-output-schema.jsonl", 0, 0, "no_op"),
        ("codex-cli", "codex-exec-401.jsonl", 1, 0, "auth"),
        ("codex-cli", "codex-exec-429.jsonl", 1, 0, "rate_limit"),
        ("codex-cli", "codex-exec-500.jsonl", 1, 0, "server"),
        ("claude-code", "claude-stream.jsonl", 0, 1, "completed"),
        ("claude-code", "claude-404.jsonl", 1, 0, "model"),  # "success"
        ("claude-code", "claude-denied.json", 0, 0, "denied"),  # "success", exit 0
        ("claude-code", "claude-sigint.jsonl", 0, 0, "failed"),
        ("gemini-cli", "gemini-stream.jsonl", 0, 1, "completed"),
        ("gemini-cli", "gemini-401.jsonl", 145, 0, "auth"),
        ("qwen-code", "qwen-stream.jsonl", 0, 1, "completed"),
        ("qwen-code", "qwen-401.jsonl", 0, 0, "auth"),  # "success", no error, exit 0
        ("opencode", "opencode-stream.jsonl", 0, 1, "completed"),
        ("copilot-cli", "copilot-stream.jsonl", 0, 1, "completed"),
        ("aider", "aider.txt", 0, 1, "completed"),
    ],
)
def test_a_captured_stream_is_what_it_came_to(
    kind: str, name: str, exit_code: int, changed: int, expected: Outcome
) -> None:
    assert outcome(kind, name, exit_code, changed) == expected
    # Whom we have signalled is interrupted, even with a clean last word and exit 0.
    assert outcome(kind, name, 0, changed, "interrupted") == "interrupted"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("codex-cli", "codex-exec.jsonl"),
        ("claude-code", "claude-stream.jsonl"),
        ("gemini-cli", "gemini-stream.jsonl"),
        ("qwen-code", "qwen-stream.jsonl"),
        ("opencode", "opencode-stream.jsonl"),
        ("copilot-cli", "copilot-stream.jsonl"),
    ],
)
def test_exit_0_without_the_last_word_is_an_interrupt(kind: str, name: str, tmp_path: Path) -> None:
    """As Gemini, Copilot and Codex exit where somebody else than we has stopped them."""
    lines = (STREAMS / name).read_text().splitlines(keepends=True)
    cut = tmp_path / "stdout"
    cut.write_text("".join(lines[: len(lines) // 2]))
    worker = make_worker(WorkerSpec(kind=kind))
    ended = Ended(0, "exited", cut, tmp_path / "stderr")
    came = outcome_of(
        ended, worker.read(ended), gateway_error=None, changed=3, reports=worker.reports
    )
    assert came.outcome == "interrupted"
