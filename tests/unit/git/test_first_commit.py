"""A folder becomes a repository with a commit of what is there, or stays as it was."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.errors.repositories import GitFailed
from agentrunner.git.first_commit import FirstCommit, make_first_commit
from agentrunner.git.private_clone import CloneStore, Identity
from tests.kit.files import write
from tests.kit.repository import AT, WHO, git, plant_hooks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = ("src/a.txt", "x.secret", "build/x", ".agent-runner/note.md", ".venv/x")
    files = {".gitignore": "*.secret\nbuild/\n", "run.sh": "#!/bin/sh\n"}
    place = write(tmp_path / "shop", files | {name: name for name in names})
    (place / "link").symlink_to("src/a.txt")
    return place


def begin(folder: Path, author: Identity = WHO) -> FirstCommit | None:
    clone = CloneStore(folder.parent / "clone.git", folder)
    room = folder.parent / "room"
    return make_first_commit(clone, room, ".agent-runner", author=author, at=AT)


def test_it_is_as_git_init_and_a_commit_would_make_it(folder: Path) -> None:
    made = begin(folder)
    assert made is not None and (made.branch, made.left) == ("main", ())
    listed = git(folder, "ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD")
    files = ["100644 .gitignore", "120000 link", "100755 run.sh", "100644 src/a.txt"]
    assert listed.splitlines() == files
    assert list(made.files) == [line.partition(" ")[2] for line in files]
    assert git(folder, "log", "--format=%H %an %s").split(" ", 2) == [
        made.commit,
        "Hana",
        "What was there at the start\n",
    ]
    # What no rule ignores and nobody would commit is untracked; the rest is clean.
    assert git(folder, "status", "--porcelain").split() == ["??", ".agent-runner/", "??", ".venv/"]
    assert git(folder, "symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert git(folder, "fsck", "--strict") == ""
    assert not list((folder / ".git").glob("hooks/*"))
    assert begin(folder) is None


def test_a_repository_whose_hash_is_sha256_gets_its_first_commit(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "trunk", "--object-format=sha256")
    made = begin(folder)
    assert made is not None
    assert git(folder, "rev-parse", "trunk").strip() == made.commit
    assert git(folder, "ls-files").split() == [".gitignore", "link", "run.sh", "src/a.txt"]


def test_it_is_as_open_to_others_as_the_user_wants(folder: Path) -> None:
    before = os.umask(0o002)
    try:
        begin(folder)
    finally:
        os.umask(before)
    for name in (".git", ".git/objects", ".git/index", ".git/HEAD"):
        mode = stat.S_IMODE((folder / name).stat().st_mode)
        assert mode & 0o070 == (0o070 if (folder / name).is_dir() else 0o060), name


def test_other_repositories_and_what_cannot_be_committed_are_named(folder: Path) -> None:
    (folder / "lib").mkdir()
    git(folder / "lib", "init", "-q")
    (folder / "lib" / "x").write_text("x")
    os.mkfifo(folder / "pipe")
    made = begin(folder)
    assert made is not None and made.left == ("lib", "pipe")
    assert "lib" not in git(folder, "ls-tree", "-r", "--name-only", "HEAD")


def test_nothing_that_stands_in_the_folder_is_run(folder: Path) -> None:
    """Neither a filter that its attributes name, nor hooks and settings of a `.git` without one."""
    mark = folder.parent / "ran"
    git(folder, "init", "-q", "-b", "trunk")
    (folder / ".gitattributes").write_text("* filter=trap\n")
    for name in ("filter.trap.clean", "core.fsmonitor", "core.sshCommand"):
        git(folder, "config", name, f"touch {mark}")
    plant_hooks(folder, mark, "post-index-change", "post-commit", "pre-commit")
    with pytest.raises(UsageError, match="filter trap"):
        begin(folder)
    assert not mark.exists()
    (folder / ".gitattributes").unlink()
    made = begin(folder)
    assert made is not None and made.branch == "trunk"
    assert not mark.exists()


def test_what_fails_leaves_the_folder_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(folder.rglob("*"))
    with pytest.raises(GitFailed):
        begin(folder, Identity("", ""))
    assert sorted(folder.rglob("*")) == before

    monkeypatch.setenv("AGENTRUNNER_TEST", "1")
    monkeypatch.setenv("AGENTRUNNER_FAILPOINT", "repository_made:enospc")
    with pytest.raises(OSError, match="No space left"):
        begin(folder)
    assert sorted(folder.rglob("*")) == before


def test_what_a_killed_process_left_is_no_part_of_it(folder: Path) -> None:
    (folder / ".agentrunner-git" / ".git").mkdir(parents=True)
    made = begin(folder)
    assert made is not None and made.left == ()
    assert not (folder / ".agentrunner-git").exists()
