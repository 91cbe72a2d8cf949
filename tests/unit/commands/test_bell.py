"""The bell and the terminal's notification: in a terminal only, and not where it is off."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from typing import TextIO

import pytest

from agentrunner.commands.console import ring


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
    import sys

    ring(sys.stderr, "ended", {})
    assert capsys.readouterr().err == ""
