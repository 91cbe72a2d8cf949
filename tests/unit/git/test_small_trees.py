"""Small trees without git: what is made of them is what git would make."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agentrunner.errors import AgentRunnerError
from agentrunner.git import snapshots
from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from tests.kit.files import write

FILES = {
    "a.py": "a\n", "sub/b.sh": "b\n", "sub/deep/c": "", "sub.d/e": "e\n", "sub-1": "x\n",
    ".gitignore": "*.log\n", "kept.log": "small\n", "é/日本": "\n",
}  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> Snapshots:
    repo = write(tmp_path / "repo", FILES)
    (repo / "sub/b.sh").chmod(0o755)
    (repo / "link").symlink_to("../outside")
    return Snapshots(tmp_path / "store", repo)


CHANGES: dict[str, list[str]] = {
    "nothing": [],
    "a content": ["a.py=new"],
    "a program": ["sub/deep/c=new+x"],
    "a new folder": ["far/away/file=new"],
    "an empty folder is none": ["sub/deep/c"],
    "what is not there": ["nowhere/at/all", "sub"],
    "a file in place of a folder": ["sub=new"],
    "a folder in place of a file": ["a.py/inside=new"],
    "one after the other": ["sub=new", "sub/again=new", "sub-1", "sub.d=new"],
    "all": [*FILES, "link"],
}


def overrides(blob: str, changes: list[str]) -> dict[str, Entry | None]:
    made: dict[str, Entry | None] = {}
    for change in changes:
        path, is_made, how = change.partition("=")
        made[path] = ("100755" if how.endswith("+x") else "100644", blob) if is_made else None
    return made


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_tree_with_other_entries_is_the_one_that_git_makes(
    shop: Snapshots, changes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = shop.take().tree
    blob = shop.write_blob(b"new\n")
    ours = shop.combine(tree, overrides(blob, changes))
    listed = shop.list(ours)
    monkeypatch.setattr(snapshots, "is_small", lambda _: False)
    assert shop.combine(tree, overrides(blob, changes)) == ours
    assert Snapshots(shop.git_dir, shop.work_tree).list(ours) == listed


@pytest.mark.parametrize("name", ["../out", "/etc/x", ".git/hooks/x", ".GIT/x", "a//b", "git~1/x"])
def test_a_name_that_git_refuses_gets_into_no_tree(shop: Snapshots, name: str) -> None:
    tree = shop.take().tree
    entry = ("100644", shop.write_blob(b"new"))
    try:
        made = shop.combine(tree, {name: entry})
    except AgentRunnerError:
        return
    assert name not in shop.list(made)


def test_a_content_without_git_has_the_name_that_git_gives_it(shop: Snapshots) -> None:
    tree = shop.take().tree
    for data in (b"", b"new\n", os.urandom(70_000)):
        name = shop.write_blob(data)
        made = shop.combine(tree, {"made": ("100644", name)})
        assert Snapshots(shop.git_dir, shop.work_tree).read(made, "made") == data
        assert shop.git.run("cat-file", "-t", name) == b"blob\n"


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_folder_without_git_is_the_one_that_git_writes(
    shop: Snapshots, tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = shop.take().tree
    before = os.umask(umask)
    try:
        paths = shop.export_tree(tree, tmp_path / "ours")
        monkeypatch.setattr(snapshots, "is_small", lambda _: False)
        assert shop.export_tree(tree, tmp_path / "by git") == paths
    finally:
        os.umask(before)
    assert seen(tmp_path / "ours") == seen(tmp_path / "by git")


def seen(folder: Path) -> dict[str, tuple[str, bytes]]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            content = os.fsencode(path.readlink())
        else:
            content = b"" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = (stat.filemode(path.lstat().st_mode), content)
    return found


def test_rules_that_are_not_there_are_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo/sub").mkdir(parents=True)
    (tmp_path / "repo/sub/a").write_text("a")
    shop = Snapshots(tmp_path / "store", tmp_path / "repo")
    shop.take()
    monkeypatch.setattr(shop.git, "binary", "/nowhere/git")
    assert shop.ignored_paths(["sub/a", "b"]) == set()


def test_a_path_is_asked_about_once(shop: Snapshots, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.take()
    assert shop.ignored_paths(["a.py", "new.log"]) == {"new.log"}
    monkeypatch.setattr(shop.git, "binary", "/nowhere/git")
    assert shop.ignored_paths(["new.log", "a.py"]) == {"new.log"}
