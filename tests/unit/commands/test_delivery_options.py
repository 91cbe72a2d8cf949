"""`--worktree [BRANCH]`, `--clean` and `--commit` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.cli import app, call
from agentrunner.commands.options import LooseCommand
from agentrunner.commands.start import with_landing
from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import Landing, TaskSpec
from agentrunner.errors import UsageError


@pytest.fixture
def spec(tmp_path: Path) -> TaskSpec:
    (tmp_path / "shop").mkdir()
    return load_task(TaskSource("goal", "Do it"), environ={}, cwd=tmp_path / "shop")


@pytest.mark.parametrize(
    ("words", "file", "branch"),
    [
        (["--worktree"], None, ""),
        (["--worktree", "mine"], None, "mine"),
        (["--worktree=mine", "task.md"], "task.md", "mine"),
        (["--worktree", "task.md"], "task.md", ""),
        (["task.yaml", "--worktree", "--clean"], "task.yaml", ""),
        (["task.yaml"], "task.yaml", None),
    ],
)
def test_a_branch_may_be_left_out(words: list[str], file: str | None, branch: str | None) -> None:
    from typer.main import get_command

    from agentrunner.commands.index import Index

    group = get_command(app)
    assert isinstance(group, Index)
    command = group.get_command(None, "run")
    assert isinstance(command, LooseCommand)
    context = command.make_context("run", words)
    assert (context.params["file"], context.params["worktree"]) == (file, branch)


def test_where_the_work_goes_becomes_part_of_the_task(spec: TaskSpec) -> None:
    assert with_landing(spec, None, clean=False, commit=False).landing is None
    inside = with_landing(spec, None, clean=False, commit=True)
    assert inside.landing == Landing(repo=spec.repo)
    outside = with_landing(spec, "mine", clean=True, commit=True)
    assert outside.landing == Landing(repo=spec.repo, branch="mine", outside=True, clean=True)
    assert outside.shown_repo == spec.repo


def test_clean_is_about_a_work_tree(spec: TaskSpec) -> None:
    with pytest.raises(UsageError) as refused:
        with_landing(spec, None, clean=True, commit=True)
    assert (refused.value.code, refused.value.path) == ("bad-option", "--clean")


def test_help_tells_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(app, ["run", "--help"], "agentrunner") == 0
    assert "--worktree" in capsys.readouterr().out
