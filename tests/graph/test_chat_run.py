"""A chat that carries the plan out while it goes on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agentrunner.planning.store import PlanStore
from agentrunner.runs.plan_folder import plan_folder
from tests.kit.project import Project
from tests.kit.terminals import Terminal

SETTINGS = ("runner.worker.kind=mock", "runner.sandbox.kind=none", "runner.meta.kind=mock")


def test_a_plan_is_made_and_carried_out_in_one_conversation(tmp_path: Path) -> None:
    project = Project.make(tmp_path, {"a.txt": "one\n"})
    unset = ("CI", "NO_COLOR")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    own = {"TERM": "dumb", "HOME": str(tmp_path), "AGENTRUNNER_STATE_DIR": str(project.state_dir)}
    argv = [sys.executable, "-m", "agentrunner", "chat"]
    for setting in SETTINGS:
        argv += ["--set", setting]
    with Terminal(argv, project.repo, {**inherited, **own}) as chat:
        chat.until("> ")
        chat.type("make a page\r")
        chat.until("[y/N] ")
        chat.type("y\r")
        chat.until("version 1: 2 tasks")
        chat.type("go on\r")  # a control word
        chat.until("The plan is under way.")
        chat.until("TASK-0002 is part of the plan's branch.")
        chat.until("The plan has come to a rest: 2 COMPLETE. Branch agentrunner/")
        chat.type("/status\r")
        chat.until("2 of 2 tasks complete")
        chat.type("/quit\r")
        assert chat.end() == 0
    assert {t.status for t in PlanStore(plan_folder(project.state_dir, project.repo).plan).load()
            .tasks.values()} == {"COMPLETE"}  # fmt: skip
    assert project.git("status", "--porcelain") == "?? .agent-runner/\n"  # the note
