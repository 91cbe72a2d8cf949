"""A chat that carries the plan out while it goes on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agentrunner.plans.store import PlanStore
from agentrunner.storage.plan_folder import plan_folder
from tests.kit.process import until
from tests.kit.project import Project
from tests.kit.terminals import Terminal

SETTINGS = ("runner.worker.kind=mock", "runner.sandbox.kind=none", "runner.meta.kind=mock")


WORKER = "echo $$ > ../../pid; until [ -e ../../go ]; do sleep 0.02; done; echo > $$.txt\n"


def chatting(project: Project, *settings: str) -> Terminal:
    """A chat about the plan of this project."""
    unset = ("CI", "NO_COLOR")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    own = {
        "TERM": "dumb",
        "HOME": str(project.repo.parent),
        "AGENTRUNNER_STATE_DIR": str(project.state_dir),
    }
    argv = [sys.executable, "-m", "agentrunner", "chat"]
    for setting in (*SETTINGS, *settings):
        argv += ["--set", setting]
    return Terminal(argv, project.repo, {**inherited, **own})


def test_work_is_paused_gone_on_with_and_stopped_by_what_is_typed(tmp_path: Path) -> None:
    project = Project.make(tmp_path, {"work.sh": WORKER})
    work = plan_folder(project.state_dir, project.repo).work
    how = ("runner.worker.kind=command", "runner.worker.command=sh work.sh")
    with chatting(project, *how) as chat:
        chat.until("> ")
        for said, told in (
            ("make a page", "[y/N] "),
            ("y", "version 1: 2 tasks"),
            ("/run", "TASK-0001 running"),
            ("/run", "The plan is under way already."),
            ("pause", "No further task is begun"),
            ("状況", "Paused: no further task is begun."),
        ):
            chat.type(f"{said}\r")
            chat.until(told)
        (work / "go").touch()
        chat.until("TASK-0001 is part of the plan's branch.")
        chat.until("is paused: /resume begins what is left.")
        for name in ("go", "pid"):
            (work / name).unlink()
        chat.type("再開\r")
        until(lambda: (work / "pid").exists() and (work / "pid").read_text(), "the second works")
        chat.type("ストップ\r")
        chat.until("TASK-0002 stopped")
        chat.until("Stopped. /run resumes the tasks.")
        assert not Path(f"/proc/{(work / 'pid').read_text().strip()}").exists()
        chat.type("/quit\r")
        assert chat.end() == 0


def test_a_plan_is_made_and_carried_out_in_one_conversation(tmp_path: Path) -> None:
    project = Project.make(tmp_path, {"a.txt": "one\n"})
    with chatting(project) as chat:
        chat.until("> ")
        chat.type("make a page\r")
        chat.until("[y/N] ")
        chat.type("y\r")
        chat.until("version 1: 2 tasks")
        chat.type("go on\r")  # a control word
        chat.until("The plan is under way.")
        chat.until("TASK-0002 is part of the plan's branch.")
        chat.until("The plan run has ended: 2 complete. Branch agentrunner/")
        chat.type("/status\r")
        chat.until("2 of 2 tasks complete")
        chat.type("/quit\r")
        assert chat.end() == 0
    assert {t.status for t in PlanStore(plan_folder(project.state_dir, project.repo).plan).load()
            .tasks.values()} == {"COMPLETE"}  # fmt: skip
    assert project.git("status", "--porcelain") == "?? .agent-runner/\n"  # the note
