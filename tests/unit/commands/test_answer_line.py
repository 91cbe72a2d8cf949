"""The one line that tells how far a planner's answer in a conversation has come."""

from __future__ import annotations

import asyncio
import io
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentrunner.commands import talking as lines
from agentrunner.commands.talking import _warned_of, answer_line
from agentrunner.planners.base import PartialAnswer

KEY = "sk-secret-0123456789"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        """What stands on the line now."""
        return self.getvalue().rstrip("\r").rpartition("\r")[2]


async def turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


async def test_it_reads_then_writes_and_nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "TICK_SEC", 0)
    planner: Any = SimpleNamespace(progress=None, waits=SimpleNamespace(on_wait=None))
    terminal = Terminal()
    async with answer_line(planner, lambda text: text.replace(KEY, "[key]"), terminal):
        await turns()
        assert "planner: thinking, " in terminal.shown()
        planner.progress(PartialAnswer("", reading=2_900))
        planner.progress(PartialAnswer(""))  # a keep-alive says nothing new
        await turns()
        assert "planner: reading 3k tokens" in terminal.shown()
        planner.progress(PartialAnswer(f'{{"understanding": "{KEY}\x1b[2J"'))
        await turns()
        assert "planner: writing, " in terminal.shown()
    assert planner.progress is None
    assert terminal.shown().strip() == "" and terminal.getvalue().endswith("\r")
    assert KEY not in terminal.getvalue() and "\x1b" not in terminal.getvalue()


async def test_without_a_terminal_nothing_is_written() -> None:
    planner: Any = SimpleNamespace(progress=None, waits=SimpleNamespace(on_wait=None))
    target = io.StringIO()
    async with answer_line(planner, str, target):
        assert planner.progress is None
    async with answer_line(cast("Any", None), str, Terminal()):
        pass
    assert target.getvalue() == ""


def test_what_a_planner_warns_of_cannot_steer_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sentence = "gpt-9 is away: \x1b]52;c;aGk=\x07 HTTP 503\x1b[2J."
    planner: Any = SimpleNamespace(warnings=lambda: [sentence])
    with _warned_of(planner):
        pass
    told = capsys.readouterr().err
    assert "\x1b" not in told and "\x07" not in told and "HTTP 503" in told
