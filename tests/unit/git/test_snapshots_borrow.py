"""The user's index: believed where nothing can have changed unseen, and nowhere else."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentrunner.errors.repositories import GitFailed
from agentrunner.git import borrow, user_index
from agentrunner.git.attributes import Attributes
from agentrunner.git.snapshots import Snapshots, worked_mark
from agentrunner.git.stat_cache import KEY
from tests.kit.files import write
from tests.kit.repository import committed, git

FILES = {"app.py": b"one\n", "src/b.py": b"two\n", "src/deep/c.bin": bytes(range(256))}
FILES |= {"run": b"#!/bin/sh\n"}
ALL = len(FILES) + 1


def settle(repo: Path) -> None:
    """Have the index written later than any file by more than the racy time, without a wait.

    Nobody can set ctime back, so the index is dated ahead instead: by its mtime, and by looking at
    that alone. What is left of the rule is tried by `test_a_racy_entry_is_read`.
    """
    git(repo, "update-index", "-q", "--really-refresh")
    ahead = time.time_ns() + 10 * borrow.RACY_NS
    os.utime(repo / ".git" / "index", ns=(ahead, ahead))


@pytest.fixture(autouse=True)
def only_mtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is as old as its mtime says."""
    read = user_index.read_index

    def by_mtime(path: bytes, *, sha256: bool = False) -> user_index.UserIndex | None:
        found = read(path, sha256=sha256)
        if found is None:
            return None
        return found._replace(written_ns=Path(os.fsdecode(path)).stat().st_mtime_ns)

    monkeypatch.setattr("agentrunner.git.ignore.read_index", by_mtime)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = write(tmp_path / "repo", FILES)
    (repo / "link").symlink_to("app.py")
    committed(repo, {})
    settle(repo)
    return repo


@pytest.fixture
def make(repo: Path, tmp_path: Path) -> Callable[..., Snapshots]:
    def make(name: str = "store") -> Snapshots:
        return Snapshots(tmp_path / name, repo, worked=worked_mark(tmp_path / "state", repo))

    return make


Make = Callable[..., Snapshots]


def objects(folder: Path) -> dict[str, tuple[int, int]]:
    found = ((path, path.stat()) for path in (folder / ".git").rglob("*"))
    return {str(path): (facts.st_mtime_ns, facts.st_ctime_ns) for path, facts in found}


def test_what_did_not_change_is_named_and_not_read(repo: Path, tmp_path: Path, make: Make) -> None:
    before = objects(repo)
    snapshots = make()
    taken = snapshots.take()
    read = Snapshots(tmp_path / "reads", repo).take()
    assert (taken.borrowed, read.borrowed) == (ALL, 0)
    assert taken.tree == read.tree == git(repo, "rev-parse", "HEAD^{tree}").strip()
    assert snapshots.read(taken.tree, "src/deep/c.bin") == FILES["src/deep/c.bin"]
    assert snapshots.reader(taken.tree)("link") == b"one\n"
    assert snapshots.take().borrowed == ALL
    # No tree of ours marks an object of the user's as fresh.
    assert snapshots.combine(taken.tree, {"app.py": None}) != taken.tree
    assert snapshots.combine(taken.tree, {}) == taken.tree
    assert objects(repo) == before


def test_the_old_content_of_what_a_worker_changed_is_ours(repo: Path, make: Make) -> None:
    snapshots = make()
    before = snapshots.take().tree
    (repo / "app.py").write_text("changed\n")
    (repo / "src" / "b.py").unlink()
    (repo / "src" / "deep" / "c.bin").rename(repo / "moved.bin")
    after = snapshots.take()
    assert after.unkept == [] and after.borrowed == 2
    shutil.rmtree(repo / ".git" / "objects")
    patch = snapshots.patch(before, after.tree)
    assert "-one" in patch and "-two" in patch
    assert snapshots.restore(after.tree, before).refused == []
    assert {name: (repo / name).read_bytes() for name in FILES} == FILES


def test_the_users_gc_in_the_middle_of_a_run_takes_nothing(
    repo: Path, tmp_path: Path, make: Make
) -> None:
    snapshots = make()
    before = snapshots.take().tree
    (repo / "app.py").write_text("changed\n")
    after = snapshots.take().tree
    git(repo, "commit", "-qam", "the user goes on")
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    assert len(snapshots.export_tree(before, tmp_path / "out")) == ALL
    assert {name: (tmp_path / "out" / name).read_bytes() for name in FILES} == FILES
    assert snapshots.restore(after, before).files == ["app.py"]


def test_old_content_that_is_gone_already_is_named(repo: Path, make: Make) -> None:
    snapshots = make()
    before = snapshots.take().tree
    (repo / "app.py").write_text("changed\n")
    shutil.rmtree(repo / ".git" / "objects")
    assert snapshots.take().unkept == ["app.py"]
    with pytest.raises(GitFailed, match=r"app\.py") as caught:
        snapshots.restore(snapshots.take().tree, before)
    assert caught.value.code == "content-gone"


def test_a_forged_object_never_gets_into_a_folder(repo: Path, tmp_path: Path, make: Make) -> None:
    snapshots = make()
    tree = snapshots.take().tree
    name = snapshots.list(tree)["app.py"][1]
    place = repo / ".git" / "objects" / name[:2] / name[2:]
    forged = git(repo, "hash-object", "-w", "--stdin-paths").strip()
    assert forged == ""
    (tmp_path / "evil").write_text("evil\n")
    evil = git(repo, "hash-object", "-w", str(tmp_path / "evil")).strip()
    place.unlink()
    shutil.copy(repo / ".git" / "objects" / evil[:2] / evil[2:], place)
    for act in (
        lambda: snapshots.export_tree(tree, tmp_path / "out"),
        lambda: snapshots.export_files(tree, ["app.py"], tmp_path / "out2"),
        lambda: snapshots.read(tree, "app.py"),
        lambda: snapshots.reader(tree)("link"),
    ):
        with pytest.raises(GitFailed) as caught:
            act()
        assert caught.value.code == "content-gone"
    (repo / "app.py").write_text("changed\n")
    assert snapshots.take().unkept == ["app.py"]


def nothing(repo: Path) -> None:
    pass


def edited(repo: Path) -> None:
    (repo / "app.py").write_bytes(b"ONE\n")


def edited_with_its_times_put_back(repo: Path) -> None:
    facts = (repo / "app.py").stat()
    (repo / "app.py").write_bytes(b"ONE\n")
    os.utime(repo / "app.py", ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replaced_by_one_of_its_size(repo: Path) -> None:
    (repo / "new").write_bytes(b"ONE\n")
    (repo / "new").rename(repo / "app.py")


def assumed_unchanged(repo: Path) -> None:
    git(repo, "update-index", "--assume-unchanged", "app.py")
    edited(repo)
    settle(repo)


def skipped(repo: Path) -> None:
    git(repo, "update-index", "--skip-worktree", "app.py")
    edited(repo)
    settle(repo)


def intended(repo: Path) -> None:
    git(repo, "rm", "-q", "--cached", "app.py")
    git(repo, "add", "-N", "app.py")
    settle(repo)


def executable(repo: Path) -> None:
    git(repo, "config", "core.fileMode", "false")
    (repo / "app.py").chmod(0o755)


def filtered(repo: Path) -> None:
    (repo / ".gitattributes").write_text("*.txt text\n*.py filter=rot\n")


def filtered_by_the_repository(repo: Path) -> None:
    (repo / ".git" / "info" / "attributes").write_text("/app.* ident\n")


def encoded_by_a_file_of_its_settings(repo: Path) -> None:
    attributes = repo / ".git" / "more"
    attributes.write_text("*.py working-tree-encoding=latin-1\n")
    git(repo, "config", "core.attributesFile", str(attributes))


def locked(repo: Path) -> None:
    (repo / ".git" / "index.lock").touch()


def cut(repo: Path) -> None:
    index = repo / ".git" / "index"
    index.write_bytes(index.read_bytes()[:-30])


def bent(repo: Path) -> None:
    index = repo / ".git" / "index"
    data = bytearray(index.read_bytes())
    data[60] ^= 1
    index.write_bytes(bytes(data))


def lying_of_a_size(repo: Path) -> None:
    """An entry whose blob is another one: the checksum is right, the size is not."""
    index = repo / ".git" / "index"
    data = index.read_bytes()[:-20]
    other = git(repo, "rev-parse", "HEAD:run").strip()
    one = git(repo, "rev-parse", "HEAD:app.py").strip()
    data = data.replace(bytes.fromhex(one), bytes.fromhex(other))
    index.write_bytes(data + hashlib.sha1(data).digest())
    settle_file(index)


def split(repo: Path) -> None:
    git(repo, "update-index", "--split-index")
    settle_file(repo / ".git" / "index")


def racy(repo: Path) -> None:
    git(repo, "update-index", "-q", "--really-refresh")
    soon = (repo / "app.py").stat().st_ctime_ns + borrow.RACY_NS // 2
    os.utime(repo / ".git" / "index", ns=(soon, soon))


def settle_file(index: Path) -> None:
    ahead = time.time_ns() + 10 * borrow.RACY_NS
    os.utime(index, ns=(ahead, ahead))


@pytest.mark.parametrize(
    ("act", "left"),
    [
        (nothing, ALL),
        (edited, ALL - 1),
        (edited_with_its_times_put_back, ALL - 1),
        (replaced_by_one_of_its_size, ALL - 1),
        (assumed_unchanged, ALL - 1),
        (skipped, ALL - 1),
        (intended, ALL - 1),
        (executable, ALL - 1),
        (lying_of_a_size, ALL - 1),
        (filtered, ALL - 2),
        (filtered_by_the_repository, 0),
        (encoded_by_a_file_of_its_settings, ALL - 2),
        (locked, 0),
        (cut, 0),
        (bent, 0),
        (split, 0),
        (racy, 0),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_where_an_entry_may_be_wrong_the_file_is_read(
    act: Callable[[Path], None], left: int, repo: Path, tmp_path: Path, make: Make
) -> None:
    act(repo)
    taken = make().take()
    assert taken.borrowed == left
    assert taken.tree == Snapshots(tmp_path / "reads", repo).take().tree


def test_a_conflict_and_a_submodule_are_read(repo: Path, make: Make) -> None:
    git(repo, "checkout", "-qb", "other")
    (repo / "app.py").write_text("theirs\n")
    git(repo, "commit", "-qam", "theirs")
    git(repo, "checkout", "-q", "-")
    (repo / "app.py").write_text("ours\n")
    git(repo, "commit", "-qam", "ours")
    head = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "merge", "-q", "other", check=False)
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    settle_file(repo / ".git" / "index")
    snapshots = make()
    taken = snapshots.take()
    assert "<<<<<<<" in (snapshots.read(taken.tree, "app.py") or b"").decode()
    assert 0 < taken.borrowed < ALL


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_version_of_an_index_is_read(
    version: str, repo: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = repo / ("d" * 120) / ("e" * 120) / ("f" * 120)
    long.mkdir(parents=True)
    for number in range(40):
        (long / f"{'x' * number}.txt").write_text(str(number))
    git(repo, "update-index", "--index-version", version)
    git(repo, "add", "-A")
    settle(repo)
    assert make().take().borrowed == ALL + 40


def test_an_index_without_a_checksum_is_believed(repo: Path, make: Make) -> None:
    index = repo / ".git" / "index"
    index.write_bytes(index.read_bytes()[:-20] + bytes(20))
    settle_file(index)
    assert make().take().borrowed == ALL


def test_after_a_worker_only_a_later_index_is_believed(repo: Path, make: Make) -> None:
    first = make()
    assert first.take().borrowed == ALL
    first.worker_starts()
    assert first.options.worked is not None
    settle_file(first.options.worked)
    assert make("second").take().borrowed == 0
    (repo / "again").write_text("x")
    git(repo, "add", "again")
    later = first.options.worked.stat().st_mtime_ns + 1
    os.utime(repo / ".git" / "index", ns=(later, later))
    assert make("third").take().borrowed == ALL + 1


def test_a_subfolder_and_the_whole_have_one_mark(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(repo)
    marks = {worked_mark(tmp_path, place) for place in (repo, repo / "src", tmp_path / "way")}
    assert len(marks) == 1


def test_nothing_is_believed_where_ctime_is_not_the_kernels(
    repo: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(borrow, "KEEPS_CTIME", frozenset())
    assert make().take().borrowed == 0


def test_a_subfolder_believes_its_part_of_the_index(repo: Path, tmp_path: Path) -> None:
    mark = worked_mark(tmp_path, repo)
    snapshots = Snapshots(tmp_path / "store", repo / "src", worked=mark)
    taken = snapshots.take()
    assert taken.borrowed == 2
    assert snapshots.read(taken.tree, "b.py") == b"two\n"


def test_a_linked_work_tree_borrows_from_its_repository(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(repo, "worktree", "add", "-q", str(tree))
    settle_file(repo / ".git" / "worktrees" / "tree" / "index")
    snapshots = Snapshots(tmp_path / "store", tree, worked=worked_mark(tmp_path, tree))
    taken = snapshots.take()
    assert taken.borrowed == ALL
    assert len(snapshots.export_tree(taken.tree, tmp_path / "out")) == ALL
    assert (tmp_path / "out" / "run").stat().st_mode & 0o777 == 0o755


def test_shallow_and_partial_clones_lend_what_they_have_and_fetch_nothing(
    repo: Path, tmp_path: Path
) -> None:
    git(repo, "config", "uploadpack.allowFilter", "true")
    for name, flags in {"shallow": ["--depth=1"], "partial": ["--filter=blob:none"]}.items():
        clone = tmp_path / name
        git(tmp_path, "clone", "-q", *flags, f"file://{repo}", str(clone))
        settle_file(clone / ".git" / "index")
        before = objects(clone)
        snapshots = Snapshots(
            tmp_path / f"{name}-store", clone, worked=worked_mark(tmp_path, clone)
        )
        taken = snapshots.take()
        assert taken.borrowed == ALL and taken.tree == git(repo, "rev-parse", "HEAD^{tree}").strip()
        assert objects(clone) == before


def test_an_index_of_sha_256_is_not_believed_but_says_what_is_tracked(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (repo / "build").mkdir(parents=True)
    (repo / "build" / "x").write_text("x")
    git(repo, "init", "-q", "--object-format=sha256")
    (repo / ".gitignore").write_text("build/\n")
    git(repo, "add", "-f", "build/x")
    settle_file(repo / ".git" / "index")
    snapshots = Snapshots(tmp_path / "store", repo, worked=worked_mark(tmp_path, repo))
    taken = snapshots.take()
    assert taken.borrowed == 0 and "build/x" in snapshots.list(taken.tree)


def test_sizes_over_four_gigabytes_are_compared_in_full() -> None:
    key = KEY.pack((1 << 32) + 4, 5, 5, 7, 0o100644)
    known = KEY.pack(4, 5, 5, 7, 0o100644) + bytes(20)
    index = user_index.UserIndex({b"x": known}, {b"x": 0o100644}, 1 << 62)

    class Store:
        def run(self, *_: str, **__: object) -> bytes:
            return b"0" * 40 + b" blob 4\n"

    found = borrow.believed(Store(), index, {b"x": key}, Attributes(), bytes)  # type: ignore[arg-type]
    assert found == {}


def test_rubbish_is_never_more_than_damaged() -> None:
    head = struct.pack(">4sII", b"DIRC", 2, 1 << 31)
    for body in (b"", b"x" * 30, head, head + bytes(500), b"DIRC" + bytes(100)):
        data = body + hashlib.sha1(body).digest()
        try:
            assert user_index.parse(data).entries == {}
        except user_index.IndexDamaged:
            continue
