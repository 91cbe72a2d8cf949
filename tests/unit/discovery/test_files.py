"""The files of a checkout by its index, compared with what git says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrunner.discovery.git import files_of, not_fetched, reader_of
from tests.kit.files import write
from tests.kit.repository import git


def make(repo: Path, *options: str) -> list[str]:
    names = ["a.py", "src/b.py", "src/deep/c.py", "src/deep/cc.py", "日本/テスト.py", "x y.txt"]
    names += [f"many/{'n' * (i % 40)}{i}.txt" for i in range(200)]
    git(write(repo, {name: name for name in names}), "init", "-q", *options)
    git(repo, "add", "-A")
    (repo / "untracked.txt").touch()
    return sorted(names)


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_version_of_the_index_is_read(tmp_path: Path, version: str) -> None:
    names = make(tmp_path / "r")
    git(tmp_path / "r", "update-index", "--index-version", version)
    (tmp_path / "r" / "later.txt").touch()
    git(tmp_path / "r", "add", "-N", "later.txt")  # an extended entry
    assert sorted(files_of(tmp_path / "r") or []) == sorted([*names, "later.txt"])


def test_longer_hashes_are_read(tmp_path: Path) -> None:
    names = make(tmp_path / "r", "--object-format=sha256")
    assert sorted(files_of(tmp_path / "r") or []) == names


def test_without_an_index_the_disk_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").touch()
    (tmp_path / "other" / ".git").mkdir(parents=True)
    (tmp_path / "other" / "c.py").touch()
    assert files_of(tmp_path) == ["a/b.py"]


def test_too_many_files_are_none(tmp_path: Path) -> None:
    make(tmp_path / "r")
    assert files_of(tmp_path / "r", 10) is None


@pytest.mark.parametrize("content", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\5short", b"\0" * 100])
def test_a_broken_index_is_no_index(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "index").write_bytes(content)
    (tmp_path / "a.py").touch()
    assert files_of(tmp_path) == ["a.py"]


def test_nothing_outside_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    repo = tmp_path / "r"
    repo.mkdir()
    (repo / "link").symlink_to("../secret")
    (repo / "in").symlink_to("a")
    (repo / "a").write_text("a")
    os.mkfifo(repo / "pipe")
    read = reader_of(repo)
    assert [read(name) for name in ("link", "../secret", "pipe", "none", "a\0b")] == [None] * 5
    assert read("in") == b"a"


def test_what_git_names_and_did_not_fetch(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    inner = write(tmp_path / "inner", {"a.py": ""})
    repo = write(tmp_path / "repo", {"model.bin": pointer, "b.bin": "content", "c.txt": pointer})
    write(repo, {".gitattributes": "*.bin filter=lfs\n"})
    for place in (inner, repo):
        git(place, "init", "-q")
        git(place, "add", "-A")
        git(place, "commit", "-qm", "x")
    assert not_fetched(inner) == []
    git(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(inner), "lib")
    assert [one.partition(":")[0] for one in not_fetched(repo)] == ["c.txt, model.bin"]
    git(repo, "commit", "-qm", "with a submodule")
    git(tmp_path, "clone", "-q", str(repo), "other")
    submodule, _ = not_fetched(tmp_path / "other")
    assert submodule.startswith("lib: ") and "git submodule update --init" in submodule
