"""The command line of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.commands.fake_engine import TASK, FakeEngine
from tests.unit.commands.shell import Shell


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    repo = tmp_path / "shop"
    (repo / ".git").mkdir(parents=True)
    (repo / "t.yaml").write_text(TASK)
    fake = FakeEngine()
    monkeypatch.chdir(repo)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    fake.replace_api(monkeypatch.setattr)
    return Shell(repo, fake, capsys)
