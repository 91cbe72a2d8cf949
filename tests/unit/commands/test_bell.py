"""The bell and the terminal's notification: in a terminal only, and not where it is off."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

import pytest

from agentrunner.commands.console import Console, Output, ring
from agentrunner.commands.plan_drive import PlanConsole
from agentrunner.errors import UsageError
from agentrunner.results import Result
from tests.kit.screen_samples import result


@pytest.fixture
def terminal() -> Iterator[tuple[int, TextIO]]:
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8", closefd=True) as stream:  # noqa: PTH123 - a descriptor
        yield ours, stream
    os.close(ours)


def heard(ours: int) -> bytes:
    os.set_blocking(ours, False)
    try:
        return os.read(ours, 4096)
    except BlockingIOError:
        return b""


def test_it_rings_and_says_why(terminal: tuple[int, TextIO]) -> None:
    ours, stream = terminal
    ring(stream, "needs you: which?\x1b]0;forged\x07\nnow", {"TERM": "xterm"})
    said = heard(ours)
    assert said.startswith(b"\a\x1b]9;needs you: which?")
    assert said.endswith(b"\a") and said.count(b"\x1b") == 1 and b"\n" not in said


@pytest.mark.parametrize("environ", [{"AGENTRUNNER_BELL": "off"}, {"TERM": "dumb"}])
def test_it_is_silent_where_nobody_wants_it(
    terminal: tuple[int, TextIO], environ: dict[str, str]
) -> None:
    ours, stream = terminal
    ring(stream, "ended", environ)
    assert heard(ours) == b""


def test_a_file_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    ring(sys.stderr, "ended", {})
    assert capsys.readouterr().err == ""


END = "<end>"


@pytest.fixture
def listen(
    terminal: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Callable[[], str]]:
    """Makes stderr a terminal that wants to hear of it, and returns what that was told by then."""
    ours, stream = terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("AGENTRUNNER_BELL")

    def until_now() -> str:
        stream.write(END)
        stream.flush()
        told = b""
        while not told.endswith(END.encode()):  # a terminal passes on when it likes
            told += os.read(ours, 4096)
        return told.decode().removesuffix(END)

    def begin() -> Callable[[], str]:
        monkeypatch.setattr(sys, "stderr", stream)  # pytest sets its own one before each test
        return until_now

    return begin


STARTED = {"event": "run_started", "run_id": "cart-a1b2", "header": {}}
ASKS = {"event": "question", "id": "abc", "kind": "ask_human", "text": "Which?"}


def test_a_run_rings_when_it_asks_and_when_it_ends(
    listen: Callable[[], Callable[[], str]],
) -> None:
    seen = listen()
    console = Console(Output(quiet=True))
    console.on_event(STARTED)
    assert "\a" not in seen()
    console.on_event(ASKS, silently=True)
    assert "\a" not in seen(), "what happened before does not ring"
    console.on_event(ASKS)
    assert seen() == "\a\x1b]9;AgentRunner cart-a1b2: needs you: Which?\a"
    console.finish(result(state="NEEDS_REVIEW"))
    assert seen() == "\a\x1b]9;AgentRunner cart-a1b2: NEEDS REVIEW\a"
    console = Console(Output(quiet=True))
    console.on_event(STARTED)
    console.finish(result(state="PLANNING", exit_code=5))
    assert seen() == "\a\x1b]9;AgentRunner cart-a1b2: STOPPED\a"


def test_a_run_that_pauses_has_rung_and_a_mistake_does_not_ring(
    listen: Callable[[], Callable[[], str]],
) -> None:
    seen = listen()
    console = Console(Output(quiet=True))
    console.on_event(STARTED)
    console.on_event(ASKS)
    assert seen().count("\x1b]9;") == 1
    waiting = {"id": "abc", "kind": "ask_human", "text": "Which?", "options": [], "subject": ""}
    console.finish(result(state="PLANNING", exit_code=4, waiting=waiting))
    Console(Output(quiet=True)).finish(Result.of_error(UsageError("no such file")))
    assert "\a" not in seen()


def test_why_an_answer_is_not_taken_is_said_where_no_progress_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console = Console(Output(quiet=True))
    refused = {"event": "warning", "code": "wrong-answer", "message": "'q' raises no limit."}
    console.on_event(STARTED)
    console.on_event(refused)
    assert capsys.readouterr().err == ""
    console.on_event(ASKS)
    console.on_event(refused)
    assert capsys.readouterr().err == "'q' raises no limit.\n"


def test_a_plan_rings_when_it_asks_and_when_it_ends(
    listen: Callable[[], Callable[[], str]],
) -> None:
    seen = listen()
    console = PlanConsole(Output(quiet=True))
    console.hear({"event": "plan_task", "task_id": "TASK-0001", "status": "RUNNING", "detail": ""})
    assert seen() == ""
    asks = {"event": "plan_question", "task_id": "TASK-0001", "question": 2, "status": "BLOCKED"}
    console.hear({**asks, "text": "Which?"})
    assert seen() == "\a\x1b]9;AgentRunner: TASK-0001 needs you\a"
    console.hear({"event": "plan_result", "exit_code": 4, "tasks": {}})
    console.finish()
    assert seen() == "\a\x1b]9;AgentRunner: the plan run has ended\a"


def test_programs_are_not_rung_for(
    listen: Callable[[], Callable[[], str]],
) -> None:
    seen = listen()
    console = Console(Output(json=True))
    console.on_event(STARTED)
    console.on_event(ASKS)
    plan = PlanConsole(Output(json=True))
    plan.hear({"event": "plan_result", "exit_code": 0, "tasks": {}})
    plan.finish()
    assert "\a" not in seen()
