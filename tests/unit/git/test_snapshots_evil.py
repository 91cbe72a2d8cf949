"""A repository and a worker that want our git to run their code, or to look away."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agentrunner.git.snapshots import Snapshots
from tests.kit.repository import git, plant_hooks, uncommitted

VECTORS = """\
[core]
\tfsmonitor = "touch {canary}; false"
\thooksPath = {hooks}
\tpager = touch {canary}
\tattributesFile = {repo}/attributes
[diff]
\texternal = touch {canary}
[diff "evil"]
\ttextconv = "touch {canary}; cat"
\tcommand = touch {canary}
[filter "evil"]
\tclean = "touch {canary}; cat"
\tsmudge = "touch {canary}; cat"
\tprocess = touch {canary}
[include]
\tpath = {repo}/more
"""


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.fixture
def repo(tmp_path: Path, canary: Path) -> Path:
    repo = uncommitted(tmp_path / "repo", {"app.py": "one\r\ntwo\r\n"})
    git(repo, "add", "-A")
    hooks = plant_hooks(repo, canary, "post-index-change", "pre-commit", "post-checkout")
    text = VECTORS.format(canary=canary, hooks=hooks, repo=repo)
    (repo / ".git" / "config").write_text(text)
    (repo / "more").write_text(text.partition("[include]")[0])
    for name in (".gitattributes", "attributes", ".git/info/attributes"):
        (repo / name).write_text("* filter=evil diff=evil text eol=lf ident\n")
    return repo


def everything(repo: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in (repo / ".git").rglob("*")
    }


def test_nothing_in_the_repository_is_run_and_its_git_is_untouched(
    repo: Path, tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(repo / ".git"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(repo / ".git" / "config"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {canary}")
    monkeypatch.chdir(repo)
    before_bytes = everything(repo)
    snapshots = Snapshots(tmp_path / "store", repo)
    before = snapshots.take().tree
    (repo / "app.py").write_text("two\n")
    after = snapshots.take().tree
    snapshots.changes(before, after)
    assert "-one" in snapshots.patch(before, after)
    snapshots.export_files(before, snapshots.list(before), tmp_path / "out")
    snapshots.export_tree(after, tmp_path / "copy")
    snapshots.restore(after, before)
    snapshots.dependency_fingerprint()
    subprocess.run(snapshots.take_command(), env={}, cwd=repo, check=True, capture_output=True)
    assert not canary.exists()
    assert everything(repo) == before_bytes
    # The canary does work: the user's git would have touched it.
    subprocess.run(
        ["git", "status"], cwd=repo, env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=False
    )
    assert canary.exists()


def test_line_ends_and_keywords_are_kept_byte_for_byte(repo: Path, tmp_path: Path) -> None:
    (repo / "app.py").write_bytes(b"$Id$\r\n\r\n\xff\n")
    snapshots = Snapshots(tmp_path / "store", repo)
    assert snapshots.read(snapshots.take().tree, "app.py") == b"$Id$\r\n\r\n\xff\n"


@pytest.mark.parametrize("nested", ["init", "bare", "file", "upper"])
def test_an_embedded_repository_is_walked_like_any_folder_and_named(
    repo: Path, tmp_path: Path, nested: str
) -> None:
    snapshots = Snapshots(tmp_path / "store", repo)
    before = snapshots.take()
    assert before.embedded == []
    (repo / "sub").mkdir()
    (repo / "sub" / "main.rs").write_text("fn main() {}\n")
    if nested == "init":
        subprocess.run(["git", "init", "-q"], cwd=repo / "sub", check=True)
    elif nested == "bare":
        subprocess.run(["git", "init", "-q", "--bare", "x.git"], cwd=repo / "sub", check=True)
    elif nested == "file":
        (repo / "sub" / ".git").write_text("gitdir: /etc\n")
    else:
        (repo / "sub" / ".GIT").mkdir()
    after = snapshots.take()
    changed = {change.path for change in snapshots.changes(before.tree, after.tree)}
    assert "sub/main.rs" in changed
    name = {"init": "sub/.git", "file": "sub/.git", "upper": "sub/.GIT"}.get(nested)
    assert after.embedded == ([name] if name else [])
    assert (nested == "bare") == ("sub/x.git/config" in changed)
    (repo / "sub" / "main.rs").write_text("fn main() { evil() }\n")
    assert snapshots.take().tree != after.tree


def test_an_edit_with_its_time_stamp_put_back_is_seen(repo: Path, tmp_path: Path) -> None:
    old = repo / "app.py"
    # Long settled, so that the stat cache is trusted.
    os.utime(old, (1, 1))
    snapshots = Snapshots(tmp_path / "store", repo)
    before = snapshots.take().tree
    times, size = old.stat(), old.stat().st_size
    old.write_bytes(b"evil!\r\n\r\n"[:size].ljust(size, b"#"))
    os.utime(old, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert old.stat().st_mtime_ns == times.st_mtime_ns and old.stat().st_size == size
    changed = snapshots.changes(before, snapshots.take().tree)
    assert [change.path for change in changed] == ["app.py"]


def test_names_that_git_refuses_do_not_stop_a_snapshot(repo: Path, tmp_path: Path) -> None:
    (repo / ".gitmodules").symlink_to("/etc/passwd")
    (repo / "git~1").write_text("x")
    (repo / "-rf").write_text("x")
    (repo / ".git\u200c").write_text("x")
    snapshots = Snapshots(tmp_path / "store", repo)
    taken = snapshots.take()
    names = set(snapshots.list(taken.tree))
    assert {".gitmodules", "git~1", "-rf", ".git\u200c"} <= names
    snapshots.export_files(taken.tree, names, tmp_path / "out")
    assert (tmp_path / "out" / ".gitmodules").readlink() == Path("/etc/passwd")


@pytest.mark.parametrize("index", [b"", b"rubbish", b"DIRC" + bytes(100)])
def test_a_damaged_index_of_the_user_is_no_obstacle(
    repo: Path, tmp_path: Path, index: bytes
) -> None:
    (repo / ".git" / "index").write_bytes(index)
    assert Snapshots(tmp_path / "store", repo).take().files == 4


def test_a_git_file_that_points_anywhere_is_only_read(repo: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / ".git").write_text("gitdir: /proc/self\n")
    (plain / "x").write_text("x")
    assert Snapshots(tmp_path / "store", plain).take().files == 1


def test_an_index_without_an_end_is_not_read(repo: Path, tmp_path: Path) -> None:
    (repo / ".git" / "index").unlink()
    (repo / ".git" / "index").symlink_to("/dev/zero")
    assert Snapshots(tmp_path / "store", repo).take().files == 4
