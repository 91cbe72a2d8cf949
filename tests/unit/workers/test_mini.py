"""mini-swe-agent: its command line, and the trajectory that it leaves."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentrunner.workers.base import CommandRun, WorkerReading
from agentrunner.workers.outcome import WorkerOutcome
from tests.kit.readings import HOME, PROMPT_FILE, STREAMS, command, read

KIND = "mini-swe-agent"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "mini").mkdir()
    return tmp_path


def read_of(
    home: Path, name: str, exit_code: int = 0, **more: Any
) -> tuple[WorkerReading, WorkerOutcome]:
    shutil.copy(STREAMS / name, home / "mini" / "trajectory.json")
    return read(KIND, "mini.txt", exit_code, home=home, **more)


def test_the_command_line() -> None:
    made = command(KIND, prompt="--help, please")
    assert made.argv[1:] == (
        *("-m", "openai/some-model", "-y", "--exit-immediately", "--cost-limit", "0"),
        *("-o", str(HOME / "mini" / "trajectory.json")),
        "--task=The task:\n\n--help, please",
    )
    assert made.env["OPENAI_API_BASE"] == "http://127.0.0.1:8787"
    assert made.env["MSWEA_GLOBAL_CONFIG_DIR"] == str(HOME / "mini" / "config")


def test_a_prompt_that_is_too_long_for_an_argument_is_read_from_its_file() -> None:
    argv = command(KIND, prompt="日" * 50_000).argv
    assert str(PROMPT_FILE) in argv[-1] and len(argv[-1]) < 500


def test_what_an_earlier_run_has_left_is_gone_before_the_start() -> None:
    assert command(KIND).files == {HOME / "mini" / "trajectory.json": ""}


def test_a_run_that_ends_well(home: Path) -> None:
    reading, came = read_of(home, "mini-trajectory.json", changed=1)
    assert reading.completed and came.outcome == "completed"
    assert reading.summary == "finish"
    assert reading.model == "fake-model"
    assert reading.commands == (
        CommandRun('echo "print(1)" > hello.py && python3 hello.py', 0, "completed"),
        CommandRun("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", None, "not run"),
    )
    assert reading.input_tokens > 0 and reading.output_tokens > 0


def test_a_refused_key(home: Path) -> None:
    reading, came = read_of(home, "mini-401-trajectory.json", 1)
    assert not reading.completed
    assert came.outcome == "auth", came.error


def test_a_storm_is_seen_on_stderr(home: Path) -> None:
    lines = (STREAMS / "mini-429.err").read_text().splitlines()
    assert any(re.search(command(KIND).watch.retry, line) for line in lines)
    _, came = read(KIND, "mini.txt", None, home=home, stderr="mini-429.err", outcome="retry_storm")
    assert came.outcome == "rate_limit"


def test_without_a_trajectory_nothing_is_believed(home: Path) -> None:
    reading, came = read(KIND, "mini.txt", 0, home=home, changed=1)
    assert not reading.completed and came.outcome == "interrupted"


def test_no_file_of_the_host_is_read_in_its_place(home: Path, tmp_path: Path) -> None:
    place = home / "mini" / "trajectory.json"
    place.symlink_to(STREAMS / "mini-trajectory.json")
    assert not read(KIND, "mini.txt", home=home)[0].completed
    place.unlink()
    os.mkfifo(place)
    assert not read(KIND, "mini.txt", home=home)[0].completed
    shutil.rmtree(home / "mini")
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(STREAMS / "mini-trajectory.json", other / "trajectory.json")
    (home / "mini").symlink_to(other)
    assert not read(KIND, "mini.txt", home=home)[0].completed


@pytest.mark.parametrize(
    "text", ["", "[]", '{"messages": 3}', '{"messages": [{"role": 1}]}', "{" * 9999]
)
def test_a_trajectory_that_is_none(home: Path, text: str) -> None:
    (home / "mini" / "trajectory.json").write_text(text)
    assert not read(KIND, "mini.txt", home=home)[0].completed
