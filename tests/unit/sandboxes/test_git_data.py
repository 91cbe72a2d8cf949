from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.sandboxes.gitdirs import GitData, git_data, remove_mask
from tests.kit.repository import committed, git, uncommitted


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return committed(tmp_path / "repo", {"a": ""})


def test_a_plain_repository(repo: Path) -> None:
    assert git_data(repo) == GitData(paths=(repo / ".git",))


def test_a_worktree_needs_the_common_folder_too(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(repo, "worktree", "add", "-q", str(tree))
    assert git_data(tree).paths == (tree / ".git", repo / ".git", repo / ".git/worktrees/tree")


def test_a_submodule(repo: Path, tmp_path: Path) -> None:
    outer = uncommitted(tmp_path / "outer", {})
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo), "sub")
    assert git_data(outer / "sub").paths == (outer / "sub/.git", outer / ".git/modules/sub")


def test_none_and_an_empty_one_are_the_same(tmp_path: Path) -> None:
    assert git_data(tmp_path) == GitData(absent=True)
    (tmp_path / ".git").mkdir()
    assert git_data(tmp_path) == GitData(absent=True)
    remove_mask(tmp_path)
    assert not (tmp_path / ".git").exists()


def test_a_repository_is_never_removed(repo: Path) -> None:
    remove_mask(repo)
    assert (repo / ".git/HEAD").exists()


def test_a_hostile_git_file_shows_nothing(tmp_path: Path) -> None:
    keys = tmp_path / "home/.ssh"
    keys.mkdir(parents=True)
    (tmp_path / ".git").write_text(f"gitdir: {keys}\n")
    with pytest.raises(UsageError, match="no git folder"):
        git_data(tmp_path)


def test_a_hostile_common_folder_shows_nothing(repo: Path, tmp_path: Path) -> None:
    (repo / ".git/commondir").write_text(str(tmp_path))
    with pytest.raises(UsageError, match="no git folder"):
        git_data(repo)


def test_a_link_cannot_be_protected(repo: Path, tmp_path: Path) -> None:
    (repo / ".git").rename(tmp_path / "moved")
    (repo / ".git").symlink_to(tmp_path / "moved")
    with pytest.raises(UsageError, match="symbolic link"):
        git_data(repo)
