"""Which files of a checkout are not committed, told without running git in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrunner.git.snapshots import Snapshots
from agentrunner.git.uncommitted import uncommitted
from tests.kit.repository import git

FILES = {"same.py": "1\n", "edited.py": "1\n", "staged.py": "1\n", "gone.py": "1\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    place = tmp_path / "repo"
    place.mkdir()
    git(place, "init", "-q")
    for name, text in {**FILES, ".gitignore": "*.log\n"}.items():
        (place / name).write_text(text)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "all of it")
    return place


def found(repo: Path, store: Path) -> list[str]:
    snapshots = Snapshots(store, repo)
    return uncommitted(snapshots, snapshots.take().tree)


def test_new_changed_staged_and_deleted_files_are_named_and_no_others(
    repo: Path, tmp_path: Path
) -> None:
    assert found(repo, tmp_path / "one") == []
    (repo / "edited.py").write_text("2\n")
    (repo / "staged.py").write_text("2\n")
    (repo / "gone.py").unlink()
    (repo / "new.py").write_text("1\n")
    (repo / "ignored.log").write_text("1\n")
    git(repo, "add", "staged.py")
    os.utime(repo / "same.py", (1, 1))  # git would look into it, and find it as it was
    assert found(repo, tmp_path / "two") == ["edited.py", "gone.py", "new.py", "staged.py"]


def test_line_ends_that_git_converts_are_no_change(repo: Path, tmp_path: Path) -> None:
    (repo / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (repo / "windows.txt").write_bytes(b"1\r\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a text of Windows")
    assert found(repo, tmp_path / "store") == []


def test_where_there_is_no_index_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.py").write_text("1\n")
    assert found(tmp_path / "plain", tmp_path / "store") == []
    (tmp_path / "plain" / ".git").mkdir()
    (tmp_path / "plain" / ".git" / "index").write_bytes(b"no index")
    assert found(tmp_path / "plain", tmp_path / "other") == []
