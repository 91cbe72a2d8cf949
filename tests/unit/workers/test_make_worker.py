from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.config.spec import RunnerSection
from agentrunner.errors import UsageError
from agentrunner.registry import canonical_worker_type
from agentrunner.workers.member import make_worker
from tests.kit.files import write
from tests.kit.task_specs import task_spec_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("codex", "codex-cli"),
        ("CODEX_CLI", "codex-cli"),
        ("claude_code", "claude-code"),
        ("claude-code-cli", "claude-code"),
        ("Claude", "claude-code"),
        ("cursor", "cursor-cli"),
        ("cursor_agent", "cursor-cli"),
        ("Gemini", "gemini-cli"),
        ("qwen", "qwen-code"),
        ("GitHub_Copilot", "copilot-cli"),
        ("opencode-cli", "opencode"),
        ("aider_chat", "aider"),
        ("mini", "mini-swe-agent"),
        (" mock ", "mock"),
        ("Else_What", "else-what"),
    ],
)
def test_kinds_have_one_spelling(name: str, kind: str) -> None:
    assert canonical_worker_type(name) == kind


@pytest.mark.parametrize("name", ["codex", "qwen", "mini", "command", "mock"])
def test_a_kind_becomes_its_adapter(name: str) -> None:
    command = ["/bin/cat"] if name != "mock" else None
    assert make_worker(WorkerSpec(kind=name, command=command)).kind == canonical_worker_type(name)


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="codex-cli, claude-code") as refusal:
        make_worker(WorkerSpec(kind="codex-clj"))
    assert "codex-cli" in refusal.value.remedy


def test_a_probe_needs_no_task() -> None:
    assert make_worker(WorkerSpec(kind="mock")).probe().problem == ""


def test_a_task_takes_no_program_from_its_repository(tmp_path: Path) -> None:
    program = write(tmp_path, {"codex": "#!/bin/sh\n"}) / "codex"
    worker = WorkerSpec(command=str(program))
    task = task_spec_of(runner=RunnerSection(worker=worker), repo=tmp_path)
    assert make_worker(worker).program() == str(program)
    assert make_worker(task).program() == "codex"
    assert "outside the repository" in make_worker(task).probe().problem
