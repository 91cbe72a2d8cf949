"""A run whose worker was left to the machine goes on with the one it was started with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrunner.storage.run_folder import load_spec
from tests.kit.files import write
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

EVENTS = (
    '{"type":"thread.started","thread_id":"t-1"}',
    '{"type":"turn.started"}',
    '{"type":"item.completed","item":{"type":"command_execution","command":"sed","exit_code":0,'
    '"status":"completed","aggregated_output":""}}',
    '{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}',
    '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}',
)


def stand_in(folder: Path) -> None:
    """A program called codex that repairs the project and prints what Codex prints."""
    told = "\n".join(f"echo '{event}'" for event in EVENTS)
    folder.mkdir()
    program = folder / "codex"
    text = f'#!/bin/sh\n[ "$1" = --version ] && exec echo codex-cli 0.169.0\n{FIX}\n{told}\n'
    write(program.parent, {program.name: text})


def test_the_saved_task_names_who_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "tools")
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:{os.environ['PATH']}")
    monkeypatch.delenv("AGENTRUNNER_CODEX", raising=False)
    run = Run(Project.make(tmp_path / "place", SMALL))
    run.environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "CODEX_API_KEY": "k" * 40}
    open_ = {"meta": {"kind": "auto"}, "worker": {"kind": "auto", "command": None}}
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nmeta: {kinds: [checklist]}\nworker: {kinds: [codex-cli]}\n")
    policy.chmod(0o600)
    run.environ["AGENTRUNNER_POLICY"] = str(policy)
    run.start(None, runner=open_, test=TEST)
    assert run.result["state"] == "COMPLETE", run.result
    spec = load_spec(run.folder)
    assert (spec.runner.meta.kind, spec.runner.worker.kind) == ("checklist", "codex-cli")
    assert spec.chosen["worker"] == "CODEX_API_KEY is set"
    header = run.project.told("run_started")[0]["header"]
    assert header["worker"].endswith("(chosen: CODEX_API_KEY is set)")
    assert "; not codex-cli:" in header["planner"]
