"""validate says what counts as tests, and what is wrong with a task's globs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.planners.chat import ChatPlanner

TASK = """\
version: "1"
task:
  prd: {text: "Make it right"}
  test:
    command: pytest -q
    paths: ["checks/**"]
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("import shop\n")
    (tmp_path / "shop.py").touch()
    (tmp_path / "t.yaml").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str) -> int:
    return cli.call(cli.app, list(words), "agentrunner")


def test_people_see_the_lists(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("validate", "t.yaml") == 0
    said = capsys.readouterr().out
    assert "as tests: checks/**, **/test_*.py" in said
    assert 't.yaml:6: task.test.paths: "checks/**" matches no file' in said


def test_programs_get_all_of_them(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("validate", "t.yaml", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["valid"] is True and told["error"] is None
    assert {one["path"] for one in told["inputs"]["tests"]} >= {"**/test_*.py", "tests/**"}
    assert len(told["warnings"]) == 2
    assert told["warnings"][1].startswith("It has no criteria")


@pytest.mark.parametrize(
    ("text", "code"),
    [(TASK + "tset: x\n", "unknown-key"), ("a: [", "yaml-syntax"), (None, "unreadable")],
)
def test_programs_get_what_is_wrong(
    repo: Path, capsys: pytest.CaptureFixture[str], text: str | None, code: str
) -> None:
    place = repo / "t.yaml"
    place.unlink() if text is None else place.write_text(text)
    assert call("validate", "t.yaml", "--json") == 2
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert told["valid"] is False and told["error"]["code"] == code
    assert set(told) == {"valid", "criteria", "inputs", "warnings", "error"}
    assert f"error[{code}]" in shown.err
    assert call("validate", "t.yaml") == 2
    assert capsys.readouterr().out == ""


def test_a_planner_whose_answers_no_schema_holds_is_named(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChatPlanner, "takes_schema", "")  # as one of others may say of itself
    planner = 'runner: {meta: {kind: chat, model: "anthropic:some-model"}}\n'
    (repo / "t.yaml").write_text(TASK + planner)
    assert call("validate", "t.yaml", "--json") == 0
    told = json.loads(capsys.readouterr().out)["warnings"][-1]
    assert told.startswith("The planner chat is sent no schema")
    assert told.endswith("Those that take one: openai-chat, claude-code, codex-cli.")
