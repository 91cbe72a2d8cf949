"""`agentrunner plan TEXT` in a terminal: what is asked, and how a person leaves."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agentrunner.storage.locks import me
from agentrunner.storage.plan_folder import plan_folder
from agentrunner.storage.run_log import append_line
from tests.kit.plan_project import AT, Work, plan_of
from tests.kit.talks import Talks, decompose, phase, task
from tests.kit.terminals import Terminal


def says(talks: Talks, *words: str) -> Terminal:
    unset = ("CI", "NO_COLOR", "OPENAI_API_KEY")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    own = {"TERM": "dumb", "HOME": str(talks.place), "AGENTRUNNER_STATE_DIR": str(talks.state_dir)}
    script = ("--planner", "script", "--set", "runner.meta.script=replies.yaml")
    words = words or ("a list", *script)
    argv = [sys.executable, "-m", "agentrunner", "plan", *words]
    return Terminal(argv, talks.repo, {**inherited, **own})


@pytest.mark.parametrize(
    ("keys", "code", "version"), [("\x03", 4, 0), ("\x04", 4, 0), ("n\r", 0, 0), ("y\r", 0, 1)]
)
def test_a_proposal_is_applied_refused_or_kept(
    keys: str, code: int, version: int, tmp_path: Path
) -> None:
    talks = Talks(tmp_path)
    (talks.repo / ".git").mkdir(parents=True)
    talks.script([decompose(phase("Build", task("t1", "List")))])
    with says(talks) as terminal:
        terminal.until("[y/N] ")
        terminal.type(keys)
        if code:
            terminal.until("agentrunner plan accept --id")
        assert terminal.end() == code
    assert talks.store.load().version == version


@pytest.mark.parametrize("word", ["2", "task-0001"])
def test_one_of_several_open_questions_is_picked(word: str, tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    (talks.repo / ".git").mkdir(parents=True)
    talks.store.save(plan_of([Work()]), at=AT, kind="decompose", author="hana", message="make it")
    talks.store.ask("Net or gross?", AT)
    talks.store.ask("Which tests?", AT, "TASK-0001")
    with says(talks, "answer") as terminal:
        assert "2  TASK-0001: Which tests?" in terminal.until("leave them > ")
        terminal.type("7\r")
        terminal.until("1, 2, or [q] leave them > ")
        terminal.type(f"{word}\r")
        terminal.until("empty leaves it waiting) > ")
        terminal.type("all of them\r")
        assert terminal.end() == 0
    assert [one.answer for one in talks.store.questions()] == [None, "all of them"]
    talks.store.ask("And now?", AT)
    with says(talks, "answer") as terminal:
        terminal.until("leave them > ")
        terminal.type("q\r")
        assert terminal.end() == 4


def test_who_watches_waits_for_the_terminal_that_asks_once_another_has_answered(
    tmp_path: Path,
) -> None:
    """Between an answer from elsewhere and its going on, the plan is executed by nobody."""
    talks = Talks(tmp_path)
    (talks.repo / ".git").mkdir(parents=True)
    talks.store.save(plan_of([Work()]), at=AT, kind="decompose", author="hana", message="make it")
    number = talks.store.ask("Net or gross?", AT, "TASK-0001")
    folder = plan_folder(talks.state_dir, talks.repo)
    asking = folder.attending()
    asking.acquire(me("", AT))
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")
    }
    own = {"TERM": "dumb", "HOME": str(talks.place), "AGENTRUNNER_STATE_DIR": str(talks.state_dir)}
    argv = [sys.executable, "-m", "agentrunner", "watch", "--plan"]
    with Terminal(argv, talks.repo, {**inherited, **own}) as terminal:
        terminal.until("empty leaves it waiting) > ")
        talks.store.answer(number, "net", AT)
        terminal.until("Answered in another terminal")
        append_line(folder.log, {"event": "warning", "message": "it goes on"}, sync=False)
        terminal.until("it goes on")
        asking.close()
        assert terminal.end() == 0
