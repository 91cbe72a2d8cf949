"""The planner refuses, or is away, while somebody talks about a plan on the command line."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from agentrunner.commands import talking as lines
from agentrunner.commands.talking import answer_line
from agentrunner.plans import planner
from agentrunner.state.worker_runs import Wait
from tests.kit.fault_server import Fault, FaultServer, completion, server
from tests.kit.plan_shell import WISH, Shell, shell
from tests.kit.waits import VirtualClock

__all__ = ["server", "shell"]

PLANNED = completion(json.dumps(WISH["reply"]))
OPENAI = ("--planner", "openai-chat")
REFUSED_KEY = Fault(401, '{"error": {"message": "Incorrect API key provided", "type": "x"}}')
UNKNOWN_MODEL = Fault(
    404, '{"error": {"message": "The model gpt-9 does not exist", "code": "model_not_found"}}'
)
AWAY = Fault(reset=True)
WISHED = "make a shop, it's small"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    clock = VirtualClock()
    monkeypatch.setattr(planner, "Clock", lambda: clock)
    return clock


@pytest.fixture(autouse=True)
def _reached(shell: Shell, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_MODEL", "gpt-9")
    monkeypatch.delenv("AGENTRUNNER_META_MODEL", raising=False)


def said(text: str) -> str:
    """What was printed, without its line breaks."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (REFUSED_KEY, ["its key or login is refused (HTTP 401)", "OPENAI_API_KEY"]),
        (
            UNKNOWN_MODEL,
            [
                "its model is not known there (HTTP 404)",
                "--planner-model NAME",
                "runner.meta.model, from OPENAI_MODEL",
                "runner.meta.base_url, from OPENAI_BASE_URL",
            ],
        ),
    ],
)
def test_a_refused_key_or_model_names_what_sets_it_right_and_the_command_again(
    shell: Shell, server: FaultServer, clock: VirtualClock, fault: Fault, named: list[str]
) -> None:
    server.script = [fault]
    assert shell(WISHED, *OPENAI, "--yes") == 5
    told = said(shell.err)
    assert "error[planner-refused]: The planner (openai-chat gpt-9" in told
    for words in [*named, "The plan is as it was."]:
        assert words in told
    again = "agentrunner plan " + shlex.join([WISHED, *OPENAI, "--yes"])
    assert again in told
    for words in ("OpenAI API error", "Incorrect API key", "does not exist", "{", "resume"):
        assert words not in told
    assert clock.slept == [] and len(server.paths) == 1 and shell.tree == []


def test_what_is_shown_to_say_it_again_does(
    shell: Shell, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = [UNKNOWN_MODEL, UNKNOWN_MODEL, UNKNOWN_MODEL, PLANNED]
    assert shell(WISHED, *OPENAI, "--planner-model", "gpt-8", "-y") == 5
    shown = next(line for line in shell.err.splitlines() if "say it again:" in line)
    words = shlex.split(shown.partition("say it again: ")[2])
    assert words[:2] == ["agentrunner", "plan"] and "gpt-8" in words
    assert server.requests[0]["model"] == "gpt-8"
    words_of_dashes = "-- a list, --not a table"
    assert shell("say", "-y", *OPENAI, "--", words_of_dashes) == 5
    shown = next(line for line in shell.err.splitlines() if "say it again:" in line)
    assert shlex.split(shown.partition("say it again: ")[2])[-2:] == ["--", words_of_dashes]
    server.script.insert(0, UNKNOWN_MODEL)
    assert shell(*shlex.split(shown.partition("say it again: ")[2])[2:]) == 5
    assert words_of_dashes in str(server.requests[-1])
    long = "make a shop\n" + "with a list of products, " * 20
    assert shell(long, *OPENAI, "-y") == 5
    shown = next(line for line in shell.err.splitlines() if "say it again:" in line)
    command, _, file = shown.partition("say it again: ")[2].partition(" < ")
    kept = Path(shlex.split(file)[0]).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(kept)))
    assert shell(*shlex.split(command)[2:]) == 0
    assert shell.tree == ["Build", "  TASK-0001 List", "  TASK-0002 Search after TASK-0001"]
    assert "with a list of products, with" in str(server.requests[-1])


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (AWAY, "it cannot be reached"),
        (Fault(503, "{}"), "(HTTP 503)"),
        (Fault(500, "{}"), "its server fails (HTTP 500)"),
        (Fault(429, '{"error": {"message": "slow down"}}'), "(HTTP 429)"),
    ],
)
def test_a_planner_that_is_away_is_waited_for_and_that_is_told(
    shell: Shell, server: FaultServer, clock: VirtualClock, fault: Fault, words: str
) -> None:
    server.script = [*[fault] * 8, PLANNED]
    assert shell(WISHED, *OPENAI, "--yes", "--json") == 0
    told = said(shell.err)
    assert told.count("The planner openai-chat:gpt-9 could not answer") == 2 and words in told
    assert "It is asked again at " in told and "Ctrl-C ends the wait" in told
    assert shell.told["applied"] is True and sum(clock.slept) > 40


def test_who_ends_the_wait_is_shown_how_to_say_it_again(
    shell: Shell, server: FaultServer, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(_: VirtualClock, seconds: float) -> None:
        if seconds > 4:  # not between the tries of one call
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0)

    monkeypatch.setattr(VirtualClock, "sleep", interrupted)
    server.script = [AWAY] * 4
    assert shell(WISHED, *OPENAI, "--yes") == 130
    assert "Ctrl-C ends the wait" in said(shell.err)
    again = "agentrunner plan " + shlex.join([WISHED, *OPENAI, "--yes"])
    assert f"Nothing was changed. Say it again: {again}" in said(shell.err)
    assert shell.tree == []


def test_a_name_that_does_not_resolve_is_waited_for(
    shell: Shell, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    asked: list[str] = []

    def resolve(host: Any, *others: Any, **more: Any) -> Any:
        asked.append(host if isinstance(host, str) else host.decode())
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://model.invalid/v1")
    wait = ("--set", "runner.budget.wait_sec=60")
    assert shell(WISHED, *OPENAI, *wait) == 5
    told = said(shell.err)
    assert set(asked) == {"model.invalid"} and len(asked) == 12  # four tries, then after each wait
    assert told.count("It is asked again at ") == 2
    assert "error[planner-away]: The planner (openai-chat gpt-9 at model.invalid)" in told
    assert "it cannot be reached. It was waited for 40 s." in told
    assert "runner.budget.wait_sec allows 60 s in all" in told
    assert "runner.meta.base_url, from OPENAI_BASE_URL" in told
    assert f"agentrunner plan {shlex.join([WISHED, *OPENAI, *wait])}" in told
    assert "Errno" not in told and "Name or service" not in told


def test_nothing_is_waited_for_where_waits_are_not_allowed(
    shell: Shell, server: FaultServer, clock: VirtualClock
) -> None:
    server.script = [AWAY]
    assert shell(WISHED, *OPENAI, "--set", "runner.budget.wait_sec=0") == 5
    assert "error[planner-away]" in shell.err and "asked again at" not in shell.err
    assert sum(clock.slept) == 1 + 2 + 4  # between the four tries


def test_what_no_wait_and_no_setting_helps_is_told_in_words(
    shell: Shell, server: FaultServer, clock: VirtualClock
) -> None:
    server.script = [Fault(400, '{"error": {"message": "no such field", "type": "x"}}')]
    assert shell(WISHED, *OPENAI) == 1
    assert "error[meta-unavailable]: The planner (openai-chat gpt-9" in said(shell.err)
    assert "its server refuses the request (HTTP 400)" in said(shell.err)


async def test_a_terminal_counts_down(monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime, timedelta
    from types import SimpleNamespace

    from agentrunner.text.times import stamp

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(lines, "TICK_SEC", 0)
    asked: Any = SimpleNamespace(progress=None, waits=SimpleNamespace(on_wait=None))
    terminal = Terminal()
    now = datetime.now(UTC)
    wait = Wait(
        until=stamp(now + timedelta(seconds=90)),
        since=stamp(now),
        reason="the planner x could not answer, it cannot be reached",
        role="meta",
    )
    async with answer_line(asked, str, terminal):
        asked.waits.on_wait(wait)
        for _ in range(4):
            await asyncio.sleep(0)
        assert "\nthe planner is away" not in terminal.getvalue()
        assert "-- the planner is away, asked again in 1 m " in terminal.getvalue()
    shown = terminal.getvalue()
    assert "The planner x could not answer, it cannot be reached. It is asked again at" in said(
        shown
    )
    assert asked.waits.on_wait is None and asked.progress is None
