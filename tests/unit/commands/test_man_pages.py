"""Man pages are made of the help, and man renders them without a complaint."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.commands.plan_commands import COMMANDS as PLAN
from tests.kit.missing import missing


@pytest.fixture
def pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    folder = tmp_path / "man1"
    assert cli.call(cli.app, ["help", "--man", str(folder)], "agentrunner") == 0
    assert "man -l" in capsys.readouterr().out
    return folder


def test_each_command_has_a_page(pages: Path) -> None:
    names = {f"agentrunner-{name}.1" for name in cli.COMMANDS}
    names |= {f"agentrunner-plan-{name}.1" for name in PLAN} | {"agentrunner.1"}
    names |= {"agentrunner-planners-list.1", "agentrunner-planners-try.1"}
    names |= {"agent-runner.1"}
    assert {page.name for page in pages.iterdir()} == names


def test_man_renders_them(pages: Path) -> None:
    if shutil.which("man") is None or shutil.which("groff") is None:
        missing("man-db and groff are not installed")
    environ = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "PAGER": "cat"}
    shown = {}
    for name in (
        "agent-runner",
        "agentrunner",
        "agentrunner-run",
        "agentrunner-plan",
        "agentrunner-plan-run",
    ):
        command = ["man", "--warnings", "-l", str(pages / f"{name}.1")]
        done = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
        assert done.stderr == ""
        shown[name] = done.stdout
    assert "agentrunner-watch(1)" in shown["agentrunner"]
    assert "agent-runner < task.yaml" in shown["agent-runner"]
    assert "-d, --detach" in shown["agentrunner-run"]
    assert 'agentrunner run "fix the failing test" --test "pytest -q"' in shown["agentrunner-run"]
    assert "agentrunner-plan-run(1)" in shown["agentrunner-plan"]
