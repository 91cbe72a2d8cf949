"""Repositories in which nothing can begin are a sentence, before anything is spent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrunner.config import repo as repo_state
from agentrunner.errors import AgentRunnerError, InfraError, UsageError
from tests.kit.repository import git, uncommitted


def refused(folder: Path, **how: bool) -> AgentRunnerError:
    with pytest.raises(AgentRunnerError) as caught:
        repo_state.refuse_state(folder, **how)
    return caught.value


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = uncommitted(tmp_path / "shop", {})
    for branch, text in (("main", "one\n"), ("side", "two\n"), ("main", "three\n")):
        git(folder, "checkout", "-q", *(["-b"] if branch == "side" else []), branch, check=False)
        (folder / "a.txt").write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", text)
    return folder


def test_a_usual_repository_and_a_folder_without_git_are_fine(repo: Path, tmp_path: Path) -> None:
    repo_state.refuse_state(repo)
    repo_state.refuse_state(tmp_path)


@pytest.mark.parametrize("how", ["merge", "rebase", "cherry-pick"])
def test_what_is_in_progress_is_named_with_its_ends(how: str, repo: Path) -> None:
    git(repo, how, "side", check=False)
    error = refused(repo)
    assert isinstance(error, InfraError) and error.nothing_spent
    assert error.code == "merge-in-progress" and f"A {how} is in progress" in error.message
    assert f"git {how} --continue" in error.remedy and "--worktree --clean" in error.remedy
    repo_state.refuse_state(repo, elsewhere=True)
    git(repo, how, "--abort")
    repo_state.refuse_state(repo)


def test_a_work_tree_has_its_own(repo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(repo, "worktree", "add", "-q", "--detach", str(other))
    repo_state.refuse_state(other)
    git(other, "merge", "side", check=False)
    assert refused(other).code == "merge-in-progress"
    repo_state.refuse_state(repo)


def test_a_bare_repository_has_nothing_to_work_on(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "b.git")
    for folder in (tmp_path / "b.git", tmp_path / "b.git" / "hooks"):
        error = refused(folder)
        assert isinstance(error, UsageError) and error.code == "bare-repository"
        assert "git clone" in error.remedy


def test_a_read_only_repository_is_refused(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    error = refused(repo)
    assert (error.code, error.exit_code) == ("repository-read-only", 5)
