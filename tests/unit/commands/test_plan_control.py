"""Control words that are said to `agentrunner plan`: no model is asked."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.storage.locks import me
from tests.kit.talks import Talks

AT = "2026-11-21T05:00:00Z"
HOLDS = """
import sys
from agentrunner.storage.locks import me
from agentrunner.storage.plan_folder import PlanFolder
folder = PlanFolder(__import__("pathlib").Path(sys.argv[1]))
folder.make()
lock = folder.lock()
lock.acquire(me("", "2026-11-21T05:00:00Z"))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Talks:
    made = Talks(tmp_path)
    (made.repo / ".git").mkdir(parents=True)
    monkeypatch.chdir(made.repo)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(made.state_dir))
    return made


@contextmanager
def carried_out(talks: Talks) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the plan."""
    argv = [sys.executable, "-c", HOLDS, str(talks.folder.root)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def said(text: str) -> int:
    """Without a planner that could be asked: whoever asks one fails."""
    return cli.call(cli.app, ["plan", "say", text, "--planner", "nobody"], "agentrunner")


@pytest.mark.parametrize("text", ["stop", "停止してください", "pause", "続けて"])
def test_without_work_there_is_nothing_to_steer(
    text: str, talks: Talks, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(text) == 0
    assert "Nothing is under way." in capsys.readouterr().out


def test_status_is_shown(talks: Talks, capsys: pytest.CaptureFixture[str]) -> None:
    assert said("状況") == 0
    assert "There is no plan yet." in capsys.readouterr().out


def test_what_is_at_work_elsewhere_is_stopped_in_order(
    talks: Talks, capsys: pytest.CaptureFixture[str]
) -> None:
    with carried_out(talks) as process:
        assert said("continue") == 0
        assert "under way" in capsys.readouterr().out
        assert said("pause") == 2
        assert "not-here" in capsys.readouterr().err
        assert said("止めて") == 0
        assert process.wait() == -signal.SIGINT


def test_another_process_under_the_same_number_is_left_alone(talks: Talks) -> None:
    talks.folder.make()
    lock = talks.folder.lock()
    lock.acquire(replace(me("", AT), start_time=1))
    try:
        assert said("stop") == 2
    finally:
        lock.close()
