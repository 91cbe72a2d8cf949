"""`agentrunner chat` in a real terminal, with the shipped `script` planner."""

from __future__ import annotations

import os
import re
import sys
import termios
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.commands.chat import COMMANDS
from agentrunner.storage.plan_folder import plan_folder
from agentrunner.text.terminal import cell_width
from tests.kit.screen_samples import EVIL
from tests.kit.talks import Talks, change, create, decompose, outline, patch, phase, task
from tests.kit.terminals import Terminal

SGR = re.compile(r"\x1b\[[0-9;?]*[mhl]")
"""Colours, and the marks of readline for pasted text."""


class Chat(Terminal):
    """A chat in a repository, and the plan that it is about."""

    def __init__(self, talks: Talks, *options: str, **environ: str) -> None:
        self.talks = talks
        unset = ("CI", "NO_COLOR", "OPENAI_API_KEY")
        inherited = {name: value for name, value in os.environ.items() if name not in unset}
        own = {"TERM": "xterm", "HOME": str(talks.place), "LC_ALL": "C.UTF-8",
               "AGENTRUNNER_STATE_DIR": str(talks.state_dir)}  # fmt: skip
        script = "runner.meta.script=replies.yaml"
        argv = [sys.executable, "-m", "agentrunner", "chat", "--planner", "script", "--set", script]
        super().__init__([*argv, *options], talks.repo, {**inherited, **own, **environ})
        self.until("> ")

    def say(self, text: str, until: str = "> ") -> str:
        """Type a line; what is shown after it up to the next prompt."""
        self.type(f"{text}\r")
        self.until("\n")
        return SGR.sub("", self.until(until))


@pytest.fixture
def talks(tmp_path: Path) -> Talks:
    made = Talks(tmp_path)
    (made.repo / ".git").mkdir(parents=True)
    return made


WISH = decompose(
    phase("実装", task("t1", "商品一覧"), task("t2", "検索欄", "t1")),
    understanding="商品一覧ページを作ります。",
    questions=["何件ずつ表示しますか？"],
)


def test_a_conversation_from_nothing_to_a_plan_and_back(talks: Talks) -> None:
    talks.script([WISH, patch(create("n1", "Basket")), patch(change("delete", "TASK-0002"))])
    with Chat(talks) as chat:
        shown = chat.say("商品一覧ページを作って", until="[y/N] ")
        assert "商品一覧ページを作ります。" in shown and "TASK-0002 検索欄" in shown
        assert "1  何件ずつ表示しますか？" in shown and "/answer N TEXT" in shown
        assert "The plan is at version 1: 2 tasks.  /undo  takes it back" in chat.say("y")
        assert "Question 1 is answered." in chat.say("/answer 50 件")
        assert "TASK-0003 Basket" in chat.say("add a basket", until="[y/N] ")
        assert "Nothing was changed." in chat.say("n")
        assert "- " in chat.say("no search", until="[y/N] ")
        assert "version 2: 1 task" in chat.say("はい")
        assert "検索欄" in chat.say("/undo")
        assert "after       TASK-0001" in chat.say("/plan 2")
        assert "behind TASK-0001" in chat.say("/plan")
        chat.type("/quit\r")
        assert chat.end() == 0
    assert outline(talks.store.load()) == [
        "実装", "  TASK-0001 商品一覧", "  TASK-0002 検索欄 after TASK-0001",
    ]  # fmt: skip
    assert talks.store.questions()[0].answer == "50 件"
    remarks = [said.text for said in talks.store.conversation() if "「" in said.text]
    assert remarks == ["採用しませんでした：「add a basket」", "取り消しました：「no search」"]
    assert "50 件" in talks.page(1)


def test_control_words_act_without_a_model(talks: Talks) -> None:
    talks.script([])
    with Chat(talks) as chat:
        for word in ("stop", "停止", "pause", "一時停止してください"):
            assert "Nothing is under way." in chat.say(word)
        for word in ("status", "状況は？"):
            assert "There is no plan yet." in chat.say(word)
        for word in ("続けて", "/run", "/resume"):
            shown = chat.say(word)
            assert "There is no plan yet." in shown and "under way" not in shown
        for word in ("help", "?"):
            assert "/quit             leave" in chat.say(word)
        chat.type("Exit\r")
        assert chat.end() == 0
    assert talks.prompts() == {}


def test_tab_completes_the_commands(talks: Talks) -> None:
    talks.script([])
    with Chat(talks) as chat:
        chat.type("/st\t")
        shown = chat.until("> /st")
        assert "/status" in shown and "/stop" in shown and "/plan" not in shown
        assert "There is no plan yet." in chat.say("a\t")
        chat.type("\t")  # of nothing, and of what is said to the planner, there is nothing
        assert "There is no /x." in chat.say("/x /st\t")
        assert set(COMMANDS) >= {"/plan", "/answer", "/pause", "/resume", "/quit", "/help"}
        chat.type("/q\t\r")
        assert chat.end() == 0


def test_a_narrow_terminal_breaks_help_and_prompts_between_words(talks: Talks) -> None:
    talks.script([WISH])
    with Chat(talks, COLUMNS="44") as chat:
        shown = chat.say("/help")
        assert "  /stop             end the tasks that are\r\n" in shown
        shown += chat.say("make a list", until="[y/N] ")
        assert "Apply it? Or say what should be\r\n" in shown
        lines = [line.rpartition("\r")[2] for line in shown.split("\r\n")]  # behind the status line
        assert [line for line in lines if cell_width(line) > 44] == []
        chat.say("n")
        assert "The planner gets it with what you say next." in chat.say("/answer 50")
        chat.type("/quit\r")
        assert chat.end() == 0


def test_the_questions_that_can_be_answered_are_named(talks: Talks) -> None:
    two = decompose(phase("Build", task("t1", "List")), questions=["Which?", "How many?"])
    talks.script([two])
    with Chat(talks) as chat:
        assert "Nothing is asked." in chat.say("/answer")
        chat.say("make a list", until="[y/N] ")
        chat.say("y")
        assert "/answer N TEXT, where N is 1 or 2." in chat.say("/answer")
        chat.say("/answer 1 tea")
        assert "/answer 2 TEXT" in chat.say("/answer")
        chat.type("/quit\r")
        assert chat.end() == 0


def test_lines_end_between_words_and_who_leaves_has_not_refused(talks: Talks) -> None:
    talks.script([WISH])
    unknown = "/" + "nothing" * 12
    with Chat(talks) as chat:
        shown = chat.say(unknown)
        assert "There is no\r\n" in shown and "/help tells what there is." in shown
        chat.say("make a list", until="[y/N] ")
        chat.type("\x03")
        chat.until("agentrunner plan accept --id")
        assert chat.end() == 0
    assert [said.role for said in talks.store.conversation()] == ["user", "planner"]


def test_mistakes_are_told_and_the_chat_goes_on(talks: Talks) -> None:
    talks.script([])
    with Chat(talks) as chat:
        assert "There is no /nothing." in chat.say("/nothing")
        assert "error[nothing-to-undo]" in chat.say("/undo")
        assert "Nothing is asked." in chat.say("/answer yes")
        assert "error[unknown-task]" in chat.say("/plan 7")
        assert "error[script-ended]" in chat.say("make a page")
        assert "/undo             take the latest change back" in chat.say("/help")
        chat.type("\x04")
        assert chat.end() == 0


def test_hostile_text_moves_nothing_in_the_terminal(talks: Talks) -> None:
    evil = decompose(
        phase(EVIL, task("t1", EVIL, description=EVIL)), understanding=EVIL, questions=[EVIL]
    )
    talks.script([evil])
    with Chat(talks) as chat:
        shown = chat.say("make it", until="[y/N] ")
        shown += chat.say("y") + chat.say("/plan") + chat.say("/plan 1")
        chat.type("/quit\r")
        assert chat.end() == 0
    assert not re.search("[\x1b\x9b\x07\x00\u202e]", shown)
    asked = "Apply it? Or say what should be different. [y/N] "  # what is typed there is not echoed
    lines = [line.removeprefix(asked) for line in shown.split("\r\n")]
    assert [line for line in lines if cell_width(line) > 88] == []


def test_ctrl_c_ends_the_question_to_the_planner_and_at_the_prompt_the_chat(talks: Talks) -> None:
    slow = {**patch(), "expect": "decompose", "delay_sec": 600}
    talks.script([slow])
    with Chat(talks) as chat:
        chat.type("make a page\r")
        chat.until("…")
        chat.type("\x03")
        assert "Nothing was changed." in chat.until("> ")
        chat.type("\x03")
        chat.until("\r\n")
        assert chat.end() == 0
    assert talks.store.conversation() == []


def test_the_terminal_is_left_as_it_was(talks: Talks) -> None:
    talks.script([])
    master, slave = os.openpty()
    try:
        before = termios.tcgetattr(slave)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            os.chdir(talks.repo)
            argv = [sys.executable, "-m", "agentrunner", "chat", "--planner", "mock"]
            known = {**os.environ, "AGENTRUNNER_STATE_DIR": str(talks.state_dir)}
            os.execve(argv[0], argv, known)
        seen = b""
        while b"> " not in seen:
            seen += os.read(master, 4096)
        os.kill(pid, 2)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


def test_without_a_terminal_it_says_what_to_use(
    talks: Talks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(talks.repo)
    assert cli.call(cli.app, ["chat"], "agentrunner") == 2
    assert "a chat needs a terminal" in capsys.readouterr().err
    assert not plan_folder(talks.state_dir, talks.repo).root.exists()
