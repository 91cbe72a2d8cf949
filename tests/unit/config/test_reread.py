"""A run's files, read again: what changed in them is taken, what options set stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.config.reread import reread
from tests.kit.task_files import Load

HEAD = "version: 1\ntask: {prd: {text: x}}\n"
FIRST = HEAD + (
    "runner:\n"
    "  meta: {kind: mock, max_loops: 2}\n"
    "  worker: {kind: command, command: [sh, a.sh]}\n"
    "  budget: {usd: 1}\n"
)


def test_what_the_file_says_anew_is_taken(load: Load, repo: Path) -> None:
    spec = load(FIRST)
    text = FIRST.replace("a.sh", "b.sh").replace("usd: 1", "usd: 2")
    (repo / "task.yaml").write_text(text + "  sandbox: {read_paths: [a.sh]}\n")
    runner = reread(spec, {}).runner
    assert runner.worker.command == ["sh", "b.sh"]
    assert runner.sandbox.read_paths == ["a.sh"]
    assert (runner.budget.usd, runner.meta.max_loops) == (2, 2)
    assert reread(spec, {}).places["runner.sandbox.read_paths"].endswith("task.yaml:7")


def test_what_options_set_stays(load: Load, repo: Path) -> None:
    spec = load(
        FIRST, options={"max_loops": 5, "worker": "mock"}, overrides=["runner.budget.usd=7"]
    )
    text = FIRST.replace("max_loops: 2", "max_loops: 9").replace("usd: 1", "usd: 2, worker_runs: 3")
    (repo / "task.yaml").write_text(
        text.replace("kind: command, command: [sh, a.sh]", "kind: codex")
    )
    runner = reread(spec, {}).runner
    assert (runner.meta.max_loops, runner.worker.kind) == (5, "mock")
    assert (runner.budget.usd, runner.budget.worker_runs) == (7, 3)


def test_what_was_set_since_and_the_file_does_not_change_stays(load: Load, repo: Path) -> None:
    spec = load(FIRST)
    meta = spec.runner.meta.model_copy(update={"kind": "checklist"})
    spec = spec.model_copy(update={"runner": spec.runner.model_copy(update={"meta": meta})})
    (repo / "task.yaml").write_text(FIRST.replace("max_loops: 2", "max_loops: 3"))
    runner = reread(spec, {}).runner
    assert (runner.meta.kind, runner.meta.max_loops) == ("checklist", 3)


@pytest.mark.parametrize(
    "after", ["workers: [{kind: codex}, {kind: mock}]", "worker: {kind: mock}"]
)
def test_another_kind_keeps_nothing_of_the_former(load: Load, repo: Path, after: str) -> None:
    spec = load(FIRST)
    old = "worker: {kind: command, command: [sh, a.sh]}"
    (repo / "task.yaml").write_text(FIRST.replace(old, after))
    again = reread(spec, {})
    assert again.runner.worker.command is None
    assert again.runner.worker == again.candidates[0][1].runner.worker


def test_a_file_that_settings_name_is_read_again(load: Load, repo: Path) -> None:
    text = FIRST.replace("kind: mock, ", "kind: script, script: replies.yaml, ")
    (repo / "replies.yaml").write_text("[]")
    spec = load(text)
    (repo / "replies.yaml").write_text("[{reply: x}]")
    assert (spec.script_text, reread(spec, {}).script_text) == ("[]", "[{reply: x}]")


def test_the_front_matter_of_a_prd_is_read_again(load: Load, repo: Path) -> None:
    front = "---\nrunner: {worker: {kind: command, command: [sh, a.sh]}}\n---\n# Do\n\nDo it.\n"
    spec = load(front, name="prd.md")
    (repo / "prd.md").write_text(front.replace("a.sh", "b.sh"))
    assert reread(spec, {}).runner.worker.command == ["sh", "b.sh"]
