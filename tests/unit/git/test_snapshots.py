from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import InfraError
from agentrunner.errors.repositories import GitFailed
from agentrunner.git import snapshot_writer as taking
from agentrunner.git import snapshots as snapshots_module
from agentrunner.git.process import Git
from agentrunner.git.snapshots import Change, Snapshots, find_git
from tests.kit.files import write


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(tmp_path / "tree", {"src/app.py": "one\ntwo\n", "README.md": "hello\n"})


def test_the_tree_is_the_one_that_git_itself_would_write(
    snapshots: Snapshots, tree: Path, tmp_path: Path
) -> None:
    names = ("a.b", "a/x", "a0", "a-/y", "src/deep/er/z", "ünï", "-rf", "a\nb", 'q"uote')
    write(tree, {**{name: name for name in names}, "run.sh": "#!/bin/sh\n"})
    (tree / "link").symlink_to("src/app.py")
    (tree / "dangling").symlink_to("/nowhere")
    env = {"PATH": "/usr/bin:/bin", "GIT_DIR": str(tmp_path / "real"), "HOME": str(tmp_path)}
    env["GIT_WORK_TREE"] = str(tree)
    for command in (["init", "-q"], ["add", "-A"], ["write-tree"]):
        done = subprocess.run(["git", *command], env=env, capture_output=True, check=True, cwd=tree)
    taken = snapshots.take()
    assert taken.tree == done.stdout.decode().strip()
    assert taken.files == 14
    # And the store is sound, object by object.
    snapshots.git.run("fsck", "--full", "--strict", taken.tree)


def test_an_unchanged_tree_needs_no_new_object_and_a_small_change_few(
    snapshots: Snapshots, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = snapshots.take()
    counted: list[int] = []
    store = taking.Pack.store

    def counting(pack: taking.Pack, git: Git) -> None:
        counted.append(pack.count)
        store(pack, git)

    monkeypatch.setattr(taking.Pack, "store", counting)
    assert snapshots.take().tree == first.tree
    (tree / "src" / "app.py").write_text("one\n2\n")
    second = snapshots.take()
    assert counted == [0, 3]
    assert snapshots.changes(first.tree, second.tree) == [Change("src/app.py", "modified", 1, 1)]


def test_many_new_files_come_as_one_pack_and_are_read_again(
    snapshots: Snapshots, tree: Path
) -> None:
    for number in range(700):
        (tree / f"f{number}").write_bytes(b"%d" % number * 50)
    taken = snapshots.take()
    assert len(list((snapshots.git_dir / "objects" / "pack").glob("*.pack"))) == 1
    assert len(snapshots.list(taken.tree)) == 702
    assert snapshots.read(taken.tree, "f699") == b"699" * 50


def test_changes_say_what_kind_and_how_many_lines(snapshots: Snapshots, tree: Path) -> None:
    (tree / "gone").write_text("x\n")
    (tree / "swapped").write_text("x\n")
    before = snapshots.take().tree
    (tree / "gone").unlink()
    (tree / "swapped").unlink()
    (tree / "swapped").symlink_to("README.md")
    (tree / "src" / "app.py").chmod(0o755)
    (tree / "new\tname\n").write_bytes(b"\0\1\2")
    (tree / "README.md").write_text("hello\nworld\n")
    after = snapshots.take().tree
    assert snapshots.changes(before, after) == [
        Change("README.md", "modified", 1, 0),
        Change("gone", "deleted", 0, 1),
        Change("new\tname\n", "added", None, None),
        Change("src/app.py", "modified", 0, 0),
        Change("swapped", "type", 1, 1),
    ]
    assert snapshots.stat_line(before, after) == "5 files changed, +2 -2"
    assert snapshots.changes(after, after) == []


def test_a_patch_is_of_all_paths_or_of_some_and_names_are_no_patterns(
    snapshots: Snapshots, tree: Path
) -> None:
    before = snapshots.take().tree
    (tree / "*.md").write_text("star\n")
    (tree / "README.md").write_text("changed\n")
    after = snapshots.take().tree
    assert snapshots.patch(before, after).count("diff --git") == 2
    only = snapshots.patch(before, after, ["*.md"])
    assert "+star" in only and "README" not in only
    assert snapshots.patch(before, after, []) == ""


def test_names_that_are_not_text_survive_everything(
    snapshots: Snapshots, tree: Path, tmp_path: Path
) -> None:
    raw = os.fsencode(tree) + b"/\xff\xfe.txt"
    Path(os.fsdecode(raw)).write_bytes(b"bytes")
    taken = snapshots.take().tree
    assert snapshots.read(taken, "\udcff\udcfe.txt") == b"bytes"
    snapshots.export_files(taken, snapshots.list(taken), tmp_path / "out")
    assert Path(os.fsdecode(os.fsencode(tmp_path) + b"/out/\xff\xfe.txt")).read_bytes() == b"bytes"


def test_an_export_is_the_same_tree(snapshots: Snapshots, tree: Path, tmp_path: Path) -> None:
    write(tree, {"run": "#!/bin/sh\r\n$Id$\r\n"})
    (tree / ".gitattributes").write_text("* text=auto eol=lf ident filter=evil export-ignore\n")
    (tree / "link").symlink_to("src")
    taken = snapshots.take().tree
    snapshots.export_files(taken, snapshots.list(taken), tmp_path / "out")
    assert Snapshots(tmp_path / "store2", tmp_path / "out").take().tree == taken
    assert snapshots.read(taken, "link") == b"src"
    assert snapshots.read(taken, "nothing") is None


def test_caches_the_note_and_git_are_no_part_of_it(snapshots: Snapshots, tree: Path) -> None:
    before = snapshots.take().tree
    for name in (
        "__pycache__/a.pyc",
        "src/__pycache__/b.pyc",
        ".pytest_cache/v/x",
        ".mypy_cache/x",
        ".ruff_cache/x",
        ".agent-runner/task-1.md",
        ".git/config",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("x")
    assert snapshots.take().tree == before
    (tree / "src" / ".agent-runner").mkdir()
    (tree / "src" / ".agent-runner" / "x").write_text("x")
    assert snapshots.take().tree != before


def test_pipes_sockets_and_link_loops_are_passed_over(snapshots: Snapshots, tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    (tree / "loop").symlink_to("loop")
    (tree / "src" / "up").symlink_to("..")
    taken = snapshots.take()
    assert taken.skipped == ["pipe"]
    os.mkfifo(tree / "src" / "new pipe")
    assert snapshots.take().skipped == ["src/new pipe"], "only what was not so at first"
    assert set(snapshots.list(taken.tree)) == {"README.md", "loop", "src/app.py", "src/up"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_can_not_be_read_is_named(snapshots: Snapshots, tree: Path) -> None:
    (tree / "secret").write_text("x")
    (tree / "secret").chmod(0)
    assert snapshots.take().skipped == ["secret"]


def test_a_large_file_is_kept_as_a_line_about_it(
    snapshots: Snapshots, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "LARGE_BYTES", 1000)
    with (tree / "model.bin").open("wb") as file:
        file.truncate(1 << 40)
    taken = snapshots.take()
    assert taken.large == ["model.bin"]
    assert b"size 1099511627776\n" in (snapshots.read(taken.tree, "model.bin") or b"")
    assert snapshots.take().tree == taken.tree
    os.truncate(tree / "model.bin", 2000)
    after = snapshots.take().tree
    assert [change.path for change in snapshots.changes(taken.tree, after)] == ["model.bin"]
    snapshots.export_tree(after, tmp_path / "copy")
    assert (tmp_path / "copy" / "model.bin").stat().st_size == 2000


def test_the_supervisor_takes_the_same_snapshot_with_the_standard_library_alone(
    snapshots: Snapshots, tree: Path
) -> None:
    argv = snapshots.take_command()
    assert argv[1:3] == ("-I", "-S")
    done = subprocess.run(argv, env={}, capture_output=True, check=True, cwd="/")
    said = json.loads(done.stdout)
    assert said["tree"] == snapshots.take().tree
    assert said["files"] == 2


def test_a_lost_cache_changes_nothing(snapshots: Snapshots, tree: Path) -> None:
    first = snapshots.take().tree
    (snapshots.git_dir / "agentrunner" / "cache.json").write_text("{")
    assert snapshots.take().tree == first


def test_git_is_found_outside_of_the_repository_only(tree: Path, tmp_path: Path) -> None:
    for place in (tree, tmp_path / "bin"):
        write(place, {"git": "#!/bin/sh\n"})
    (tmp_path / "link").symlink_to(tree)
    path = f".::{tree}:{tmp_path / 'link'}:{tmp_path / 'bin'}:/usr/bin"
    assert find_git(tree, path) == str(tmp_path / "bin" / "git")
    with pytest.raises(InfraError) as caught:
        find_git(tree, f".:{tree}")
    (tree / "tools").symlink_to("../bin")
    with pytest.raises(InfraError):  # where it leads is the repository's to say
        find_git(tree, f"{tree}/tools")
    assert caught.value.code == "git-missing"


def test_an_unknown_tree_is_an_error_with_a_name(snapshots: Snapshots) -> None:
    snapshots.take()
    with pytest.raises(GitFailed, match="ls-tree"):
        snapshots.list("0" * 40)


def test_twenty_thousand_files_are_no_trouble(snapshots: Snapshots, tree: Path) -> None:
    for number in range(20_000):
        if number % 20 == 0:
            (tree / f"d{number // 20}").mkdir()
        (tree / f"d{number // 20}" / f"{number}.py").write_bytes(b"%d\n" % number)
    first = snapshots.take()
    assert first.files == 20_002
    (tree / "d999" / "19999.py").write_text("changed\n")
    second = snapshots.take()
    assert [change.path for change in snapshots.changes(first.tree, second.tree)] == [
        "d999/19999.py"
    ]


def test_many_files_of_a_tree_are_read_together(snapshots: Snapshots, tree: Path) -> None:
    (tree / "a b.txt").write_text("a\n\nb")
    (tree / "empty").touch()
    (tree / "link").symlink_to("empty")
    (tree / "large").write_bytes(b"x" * 1_048_577)
    (tree / "deep").mkdir()
    (tree / "deep" / "c").write_bytes(b"\0\xff\n")
    taken = snapshots.take().tree
    paths = ["a b.txt", "empty", "link", "large", "deep/c", "deep", "none"]
    assert snapshots.read_many(taken, paths) == {
        "a b.txt": b"a\n\nb", "empty": b"", "deep/c": b"\0\xff\n",
    }  # fmt: skip
    assert snapshots.read_many(taken, []) == {}


def test_a_large_tree_is_listed_once_and_a_later_one_by_what_differs(
    snapshots: Snapshots, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots_module, "MOST_LISTED", 100)
    for number in range(600):
        (tree / "src" / f"{number}.txt").write_text(f"{number}\n")
    old = snapshots.take().tree
    (tree / "src" / "0.txt").unlink()
    (tree / "src" / "1.txt").write_text("other\n")
    (tree / "new.txt").write_text("new\n")
    new = snapshots.take().tree
    whole = {name: Snapshots(snapshots.git_dir, tree).list(name) for name in (old, new)}

    snapshots = Snapshots(snapshots.git_dir, tree)
    asked: list[str] = []
    run = Git.run

    def counting(git: Git, *command: str, **options: Any) -> bytes:
        asked.append(next(word for word in command if not word.startswith("-")))
        return run(git, *command, **options)

    monkeypatch.setattr(Git, "run", counting)
    for _ in range(20):
        for name in (old, new):
            assert snapshots.list(name) == whole[name]
            assert snapshots.reader(name)("src") == b""
            assert snapshots.combine(name, {}) == name
    assert asked == ["ls-tree", "diff-tree"]
