"""`agentrunner plan` as a command line, with a planner that plays a script."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentrunner import cli
from tests.kit.talks import Talks, decompose, outline, phase, task

WISH = decompose(
    phase("Build", task("t1", "List"), task("t2", "Search", "t1")),
    understanding="A page that lists products.",
)


SCRIPT = ("--planner", "script", "--set", "runner.meta.script=replies.yaml")


@dataclass
class Shell:
    """A command line in a repository of its own, without a terminal."""

    talks: Talks
    capture: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def __call__(self, *arguments: str) -> int:
        code = cli.call(cli.app, ["plan", *arguments], "agentrunner")
        self.out, self.err = self.capture.readouterr()
        return code

    @property
    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.out)
        return told

    @property
    def tree(self) -> list[str]:
        return outline(self.talks.store.load())


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    talks = Talks(tmp_path)
    (talks.repo / ".git").mkdir(parents=True)
    monkeypatch.chdir(talks.repo)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(talks.state_dir))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "hana")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "CODEX_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return Shell(talks, capsys)
