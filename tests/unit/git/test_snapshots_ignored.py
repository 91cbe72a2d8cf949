"""Which folders snapshots leave out, and that a worker cannot add to them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agentrunner.git.snapshots import Snapshots
from tests.kit.files import put
from tests.kit.repository import git, uncommitted


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = {".gitignore": "build/\n*.log\n/out\n", "app.py": "x\n", "sub/app.py": "x\n"}
    return uncommitted(tmp_path / "repo", files)


def paths(snapshots: Snapshots) -> set[str]:
    return set(snapshots.list(snapshots.take().tree))


def test_ignored_folders_are_left_out_but_never_single_files(repo: Path, tmp_path: Path) -> None:
    put(repo, "build/x", "sub/build/y", "out/z", "sub/out/kept", "debug.log")
    snapshots = Snapshots(tmp_path / "store", repo)
    assert paths(snapshots) == {".gitignore", "app.py", "sub/app.py", "sub/out/kept", "debug.log"}
    assert snapshots.take().ignored == ["build", "out", "sub/build"]
    assert snapshots.ignored_folders() == ["build", "out", "sub/build"]


def test_rules_that_a_worker_writes_are_not_obeyed(repo: Path, tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "store", repo)
    before = snapshots.take().tree
    put(repo, "tests/conftest.py", "hidden/x.py")
    put(repo, ".gitignore", text="tests/\nhidden/\n")
    put(repo, "hidden/.gitignore", text="*\n")
    (repo / ".git" / "info" / "exclude").write_text("tests/\n")
    after = snapshots.take().tree
    assert {change.path for change in snapshots.changes(before, after)} == {
        ".gitignore",
        "tests/conftest.py",
        "hidden/x.py",
        "hidden/.gitignore",
    }


def test_rules_that_a_worker_deletes_still_hold_for_new_folders(repo: Path, tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "store", repo)
    snapshots.take()
    (repo / ".gitignore").unlink()
    put(repo, "build/new", "node_modules/a/index.js", ".venv/bin/python")
    assert paths(snapshots) == {"app.py", "sub/app.py"}


@pytest.mark.parametrize("names", ["sha1", "sha256"])
def test_tracked_files_are_never_ignored(names: str, repo: Path, tmp_path: Path) -> None:
    shutil.rmtree(repo / ".git")
    git(repo, "init", "-q", f"--object-format={names}")
    put(repo, "build/conftest.py", "out/x")
    git(repo, "add", "-f", "build/conftest.py")
    snapshots = Snapshots(tmp_path / "store", repo)
    assert "build/conftest.py" in paths(snapshots)
    assert "out/x" not in paths(snapshots)


def test_excludes_of_the_repository_and_self_ignoring_folders_count(
    repo: Path, tmp_path: Path
) -> None:
    (repo / ".git" / "info" / "exclude").write_text("private/\n")
    put(repo, "private/x", "tool/data", "keep/data")
    put(repo, "tool/.gitignore", text="# made by a tool\n*\n")
    put(repo, "keep/.gitignore", text="*\n!.gitignore\n")
    found = paths(Snapshots(tmp_path / "store", repo))
    assert not {name for name in found if name.startswith(("private", "tool"))}
    assert "keep/data" in found


def test_a_folder_of_a_larger_repository_obeys_the_rules_above_it(
    repo: Path, tmp_path: Path
) -> None:
    put(repo, "pkg/a/app.py", "pkg/a/build/x", "pkg/a/gen/y", "pkg/a/kept/z")
    put(repo, "pkg/.gitignore", text="/a/gen/\n")
    git(repo, "add", "-f", "pkg/a/build/x")
    snapshots = Snapshots(tmp_path / "store", repo / "pkg" / "a")
    assert paths(snapshots) == {"app.py", "build/x", "kept/z"}
    put(repo, "pkg/a/gen2/build/new")
    assert paths(snapshots) == {"app.py", "build/x", "kept/z"}


def test_a_folder_that_its_repository_ignores_is_a_project_of_its_own(
    repo: Path, tmp_path: Path
) -> None:
    put(repo, ".gitignore", text="*\n")
    put(repo, "project/src/app.py")
    assert paths(Snapshots(tmp_path / "store", repo / "project")) == {"src/app.py"}


def test_a_folder_without_git_has_rules_too(tmp_path: Path) -> None:
    put(tmp_path / "plain", ".gitignore", text="data/\n")
    put(tmp_path / "plain", "data/x", "app.py", "node_modules/x/index.js")
    snapshots = Snapshots(tmp_path / "store", tmp_path / "plain")
    assert paths(snapshots) == {".gitignore", "app.py"}
    assert snapshots.take().ignored == ["data", "node_modules"]


def test_worktrees_use_the_repository_behind_them(repo: Path, tmp_path: Path) -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "x")
    git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    (repo / ".git" / "info" / "exclude").write_text("private/\n")
    put(tmp_path / "tree", "private/x", "build/tracked")
    git(tmp_path / "tree", "add", "-f", "build/tracked")
    found = paths(Snapshots(tmp_path / "store", tmp_path / "tree"))
    assert found == {".gitignore", "app.py", "sub/app.py", "build/tracked"}


def test_a_cache_folder_with_tracked_files_belongs_to_the_project(
    repo: Path, tmp_path: Path
) -> None:
    """As in ack, whose tests count the files of a `__pycache__` that is their data."""
    put(repo, "t/__pycache__/notes.pl", "src/__pycache__/a.pyc", ".agent-runner/task.yaml")
    git(repo, "add", "-f", "t", ".agent-runner")
    snapshots = Snapshots(tmp_path / "store", repo)
    before = paths(snapshots)
    assert "t/__pycache__/notes.pl" in before
    assert not [path for path in before if path.startswith(("src/", ".agent-runner/"))]

    put(repo, "src/__pycache__/a.pyc", "new/__pycache__/b.pyc", "app.py", text="new\n")
    assert paths(snapshots) == before
    put(repo, "t/__pycache__/notes.pl", text="new\n")
    changed = snapshots.take().tree
    assert snapshots.read(changed, "t/__pycache__/notes.pl") == b"new\n"


def test_installed_packages_are_watched_by_their_stats(repo: Path, tmp_path: Path) -> None:
    put(repo, ".venv/lib/pytest.py", ".venv/notes.txt", "node_modules/.cache/x.js")
    put(repo, "node_modules/jest/index.js", "build/conftest.py", "build/data.bin")
    snapshots = Snapshots(tmp_path / "store", repo)
    assert snapshots.dependency_fingerprint() == {}
    snapshots.take()
    before = snapshots.dependency_fingerprint()
    assert set(before) == {".venv", "node_modules", "build/conftest.py"}

    put(repo, ".venv/notes.txt", "node_modules/.cache/x.js", "build/data.bin", text="new\n")
    put(repo, ".venv/lib/__pycache__/pytest.pyc")
    assert snapshots.dependency_fingerprint() == before

    patched = repo / ".venv" / "lib" / "pytest.py"
    times = patched.stat()
    patched.write_text("y\n")
    os.utime(patched, ns=(times.st_atime_ns, times.st_mtime_ns))
    put(repo, "build/conftest.py", text="evil\n")
    after = snapshots.dependency_fingerprint()
    assert after[".venv"] != before[".venv"] and after["node_modules"] == before["node_modules"]
    assert after["build/conftest.py"] != before["build/conftest.py"]

    put(repo, "build/shop.egg-info/entry_points.txt", "build/lib/pytest/__init__.py")
    put(repo, "build/package.json", "build/shop/__init__.py")
    assert snapshots.dependency_fingerprint().keys() - after == {
        "build/shop.egg-info/entry_points.txt", "build/lib/pytest/__init__.py",
    }  # fmt: skip


def test_a_reader_follows_links_within_the_tree_and_nowhere_else(
    repo: Path, tmp_path: Path
) -> None:
    put(repo, "docs/a.md", "build/out.txt", text="hello\n")
    (tmp_path / "secret").write_text("secret\n")
    links = {"ok": "docs/a.md", "folder": "docs", "gone": "## Users", "loop": "loop",
             "out": "../secret", "root": "/etc/passwd", "build/out": "../../secret"}  # fmt: skip
    for name, target in links.items():
        (repo / name).symlink_to(target)
    snapshots = Snapshots(tmp_path / "store", repo)
    read = snapshots.reader(snapshots.take().tree)
    assert [read(path) for path in ("docs/a.md", "ok", "folder/a.md", "build/out.txt")] == [
        b"hello\n"
    ] * 4
    assert [read(path) for path in ("docs", "folder")] == [b"", b""]
    nothing = ("gone", "loop", "out", "root", "build/out", "../secret", "/etc/passwd", "x")
    assert [read(path) for path in nothing] == [None] * len(nothing)
