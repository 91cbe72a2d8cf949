"""A run that is watched, answered and told of from elsewhere, and one that needs no terminal."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrunner.events import Detached, checked_event
from agentrunner.plans.execution.plan_settings import save_settings
from agentrunner.storage.index import RunIndex
from tests.kit.metas import Item, assess, consult, finish, plan, work
from tests.kit.plan_project import PlanProject, Work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST
from tests.kit.terminals import Terminal
from tests.kit.warm import warm_run

ENDS = [work(), finish(), assess()]
PROMPT = "leaves it waiting) > "


@dataclass
class Shell:
    """Terminals and commands around one repository."""

    project: Project

    @property
    def environ(self) -> dict[str, str]:
        """Without what would keep a person from being asked."""
        inherited = {name: value for name, value in os.environ.items() if name != "CI"}
        own = {"TERM": "xterm", "NO_COLOR": "1", "HOME": str(self.project.repo.parent)}
        own |= {"DOCKER_HOST": "unix:///nowhere/docker.sock"}
        return {**inherited, **own, "AGENTRUNNER_STATE_DIR": str(self.project.state_dir)}

    def terminal(self, *words: str) -> Terminal:
        """A terminal in which a command runs."""
        argv = [sys.executable, "-m", "agentrunner", *words]
        return Terminal(argv, self.project.repo, self.environ)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command without a terminal, to its end."""
        argv = [sys.executable, "-m", "agentrunner", *words]
        return warm_run(argv, cwd=self.project.repo, env=self.environ)

    def task(self, *script: Item) -> str:
        """A task file whose planner plays this."""
        place = self.project.repo.parent
        (place / "replies.yaml").write_text(json.dumps([*script]))
        runner = {
            "meta": {"kind": "script", "script": str(place / "replies.yaml"), "max_loops": 2},
            "worker": {"kind": "command", "command": FIX},
            "sandbox": {"kind": "none"},
        }
        task = {"id": "add", "title": "It adds", "prd": {"text": "Make it add."}, "test": TEST}
        repo = {"repo": str(self.project.repo)}
        (place / "add.yaml").write_text(
            json.dumps({"version": 1, "task": task | repo, "runner": runner})
        )
        return str(place / "add.yaml")

    @property
    def run_id(self) -> str:
        return RunIndex(self.project.state_dir).runs()[0].run_id


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(Project.make(tmp_path, SMALL))


def test_an_open_question_is_answered_from_elsewhere(shell: Shell, tmp_path: Path) -> None:
    task = shell.task(plan(), consult("Which?", "up", "down"), consult("Sure?"), *ENDS)
    told = tmp_path / "told"
    notify = shlex.join(["sh", "-c", f"cat >> {told}; echo >> {told}"])
    with shell.terminal("run", task, "--notify", notify) as asks:
        asks.until(PROMPT)
        wrong = shell.run("approve", "add", "--id", "x")
        assert (wrong.returncode, "not waiting for x" in wrong.stderr) == (2, True)
        done = shell.run("answer", "2")
        assert done.returncode == 0 and "continues in the other terminal" in done.stdout
        asks.until("Answered in another terminal, by ")
        with shell.terminal("watch") as watches:
            watches.until("Another process drives it. Ctrl-C ends this view, not the run.")
            watches.until("Sure?")
            asks.until(PROMPT)
            watches.until(PROMPT)
            watches.type("yes\r")
            watches.until("COMPLETE")
            assert watches.end() == 0
        asks.until("COMPLETE")
        assert asks.end() == 0
    events = [json.loads(line) for line in told.read_text().splitlines()]
    assert [one["event"] for one in events] == ["needs_you", "needs_you", "ended"]
    assert [one["text"] for one in events[:2]] == ["Which?", "Sure?"]
    assert events[2]["state"] == "COMPLETE" and events[2]["run_id"] == shell.run_id
    ended = shell.run("watch", "--json")
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert ended.returncode == 0 and lines[0]["event"] == "run_started"
    assert [line["event"] for line in lines].count("result") == 1
    assert lines[-1]["state"] == "COMPLETE" and lines[-1]["waited_sec"] > 0


def test_a_prompt_ends_where_another_terminal_settles_it(shell: Shell) -> None:
    """A run that waits is asked about in two terminals; nobody drives it meanwhile."""
    task = shell.task(plan(), consult("Which?"), consult("Sure?"), *ENDS)
    assert shell.run("run", task).returncode == 4
    with shell.terminal("answer") as asks:
        asks.until(PROMPT)
        assert shell.run("answer", "the second").returncode == 4
        asks.until("Answered in another terminal.")
        assert asks.end() == 0
    with shell.terminal("answer") as asks:
        asks.until("Sure?")
        asks.until(PROMPT)
        assert shell.run("cancel", "add").returncode == 0
        asks.until("The run was ended in another terminal: FAILED.")
        assert asks.end() == 0


def test_a_question_that_is_left_in_one_terminal_is_asked_in_the_other(shell: Shell) -> None:
    task = shell.task(plan(), consult("Which?"), *ENDS)
    with shell.terminal("run", task) as asks:
        asks.until(PROMPT)
        with shell.terminal("watch") as looks:
            looks.until(PROMPT)
            looks.type("\x03")  # as its first lines say, that ends the view
            looks.until("continues.  agentrunner watch")
            assert looks.end() == 130
        with shell.terminal("watch") as watches:
            watches.until(PROMPT)
            asks.type("\r")
            watches.until("The other terminal has left the question waiting.")
            watches.until(PROMPT)
            watches.type("the second\r")
            watches.until("COMPLETE")
            assert watches.end() == 0
        assert asks.end() == 4


def test_a_detached_run_needs_no_terminal(shell: Shell) -> None:
    task = shell.task(plan(), consult("Which?", "up", "down"), consult("Sure?"), *ENDS)
    assert shell.run("run", task, "--detach", "--sandbox", "docker").returncode == 5
    typo = shell.run("run", task, "--detach", "--notify", "no-such-program")
    assert (typo.returncode, typo.stderr[:18]) == (2, "error[bad-option]:")
    begun = json.loads(shell.run("run", task, "--detach", "--json").stdout)
    assert begun["event"] == "detached" and begun["run_id"] == shell.run_id
    assert isinstance(checked_event(begun), Detached)
    paused = shell.run("watch", "-q")
    assert paused.returncode == 4 and "WAITING FOR YOU" in paused.stdout
    left = shell.run("answer", "1", "--detach")
    assert "runs on its own; this terminal may be closed." in left.stdout
    assert f"agentrunner watch {shell.run_id}" in left.stdout
    with shell.terminal("watch") as watches:
        watches.until("Sure?")
        watches.until(PROMPT)
        watches.type("yes\r")
        watches.until("It continues by itself.")
        watches.until("COMPLETE")
        assert watches.end() == 0
    printed = Path(begun["output"])
    text = printed.read_text()
    assert '"event": "question"' in text and "COMPLETE  add · It adds" in text
    assert printed.stat().st_mode & 0o777 == 0o600 and "\x1b" not in text


def test_a_plan_is_drawn_and_asks_while_it_goes_on(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    made = PlanProject.make(
        tmp_path, [Work("true"), Work(f"cat {gate}; touch {{}}.done")], {"a.txt": "a\n"}
    )
    save_settings(made.folder, made.settings())
    shell = Shell(made.project)
    with shell.terminal("plan", "run", "-j", "2") as runs:
        runs.until("TASK-0001 asks (question 1):")
        runs.until(PROMPT)
        runs.type("touch it\r")
        runs.until("Question 1 is answered.")
        runs.until("TASK-0001 asks (question 2):")
        runs.until(PROMPT)
        answered = shell.run("plan", "answer", "2", "again")
        assert answered.returncode == 0
        runs.until("Answered in another terminal, or not asked any more.")
        runs.until("TASK-0001 asks (question 3):")
        runs.until(PROMPT)
        runs.type("\r")
        runs.until("It still waits:  agentrunner plan answer 3 TEXT")
        runs.until("TASK-0002")
        gate.open("w").close()
        runs.until("TASK-0002 is part of the plan's branch.")
        runs.until("1 of 2 tasks complete")
        assert runs.end() == 1
    log = [json.loads(line) for line in made.folder.log.read_text().splitlines()]
    assert [line["question"] for line in log if line["event"] == "plan_question"] == [1, 2, 3]
    # An answer from elsewhere begins it again, though nobody carries it out any more.
    with shell.terminal("watch", "--plan") as watching:
        watching.until("TASK-0001 asks (question 3):")
        watching.until(PROMPT)
        watching.type("again\r")
        watching.until("The plan continues by itself.")
        watching.until("TASK-0001 asks (question 4):")
        watching.until(PROMPT)
        watching.type("\r")
        watching.until("It still waits:")
        assert watching.end() == 1
    watched = shell.run("watch", "--plan", "--json")
    assert watched.returncode == 1
    assert json.loads(watched.stdout.splitlines()[-1])["event"] == "plan_result"
