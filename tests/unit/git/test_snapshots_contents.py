"""Contents of every size: streamed, bounded, and named where they are not kept."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from typing import IO, Any

import pytest

from agentrunner.errors import InfraError
from agentrunner.errors.repositories import GitFailed
from agentrunner.git import ignore, pack, walk
from agentrunner.git import snapshot_writer as taking
from agentrunner.git.blobs import blobs
from agentrunner.git.export import export_entries
from agentrunner.git.process import Git
from agentrunner.git.snapshots import Snapshots
from tests.kit.files import put
from tests.kit.repository import git, uncommitted

MB = 1 << 20


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return put(tmp_path / "tree", "app.py", "src/b.py")


def sound(snapshots: Snapshots) -> None:
    snapshots.git.run("fsck", "--full", "--strict")


def test_files_of_many_megabytes_come_as_a_sound_pack(snapshots: Snapshots, tree: Path) -> None:
    text = b"the same line again\n" * (6 * MB // 20)
    noise = os.urandom(9 * MB)
    for name, data in {"text": text, "noise": noise, "twice": noise}.items():
        (tree / name).write_bytes(data)
    taken = snapshots.take().tree
    (made,) = (snapshots.git_dir / "objects" / "pack").glob("*.pack")
    assert 9 * MB < made.stat().st_size < 10 * MB
    assert made.stat().st_mode & 0o777 == 0o400
    sound(snapshots)
    assert snapshots.read(taken, "noise") == noise
    assert snapshots.read(taken, "text") == text
    listed = snapshots.list(taken)
    assert listed["noise"] == listed["twice"]
    # Nothing of an unsettled file is written twice.
    assert snapshots.take().tree == taken
    assert len(list((snapshots.git_dir / "objects" / "pack").glob("*.pack"))) == 1


def test_an_index_of_a_pack_beyond_two_gigabytes_is_what_git_reads(tmp_path: Path) -> None:
    far = 5 << 30
    entries = [(bytes([n]) * 20, n, n * far // 3) for n in range(1, 9)]
    (tmp_path / "x.idx").write_bytes(pack._index_of(entries, bytes(20)))
    with (tmp_path / "x.idx").open("rb") as file:
        out = Git(tmp_path, "/usr/bin/git").run("show-index", stdin=file).decode()
    shown = [tuple(line.split()) for line in out.splitlines()]
    assert shown == [(str(at), name.hex(), f"({crc:08x})") for name, crc, at in entries]


def test_a_file_that_grows_while_it_is_read_is_kept_as_it_was_at_one_moment(
    snapshots: Snapshots, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grows = tree / "log"
    grows.write_bytes(b"x" * 5 * MB)
    add = pack.Pack.add_stream

    def adding(self: pack.Pack, source: IO[bytes], size: int) -> str:
        with grows.open("ab") as file:
            file.write(b"y")
        return add(self, source, size)

    monkeypatch.setattr(pack.Pack, "add_stream", adding)
    taken = snapshots.take().tree
    data = snapshots.read(taken, "log") or b""
    assert data.startswith(b"x" * 5 * MB) and set(data[5 * MB :]) == {ord("y")}
    sound(snapshots)


def test_a_file_that_shrinks_while_it_is_read_is_kept(
    snapshots: Snapshots, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "log").write_bytes(b"x" * 5 * MB)
    add = pack.Pack.add_stream

    def adding(self: pack.Pack, source: IO[bytes], size: int) -> str:
        os.truncate(tree / "log", 4 * MB + 1)
        return add(self, source, size)

    monkeypatch.setattr(pack.Pack, "add_stream", adding)
    assert snapshots.read(snapshots.take().tree, "log") == b"x" * (4 * MB + 1)
    sound(snapshots)


def test_memory_does_not_grow_with_what_is_in_the_folder(tmp_path: Path, tree: Path) -> None:
    for number in range(8):
        with (tree / f"{number}.bin").open("wb") as file:
            for _ in range(32):
                file.write(os.urandom(MB))
    snapshots = Snapshots(tmp_path / "store", tree)
    # Started by a small process: a child of ours begins with our own peak, which is not its doing.
    peak = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
        " print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
    )
    command = [sys.executable, "-I", "-S", "-c", peak, *snapshots.take_command()]
    done = subprocess.run(command, capture_output=True, env={}, check=True)
    assert b'"files": 10' in done.stdout
    assert int(done.stderr) < 200 << 10


def test_a_large_file_that_a_worker_makes_is_copied_and_is_in_the_copy(
    tmp_path: Path, tree: Path
) -> None:
    (tree / "model").write_bytes(b"m" * 3000)
    snapshots = Snapshots(tmp_path / "store", tree, keep_up_to=2000)
    before = snapshots.take()
    assert before.large == ["model"] and before.unkept == []
    (tree / "product").write_bytes(b"def hidden(): pass\n" * 200)
    after = snapshots.take()
    assert after.large == ["model"] and after.unkept == []
    assert snapshots.read(after.tree, "product") == b"def hidden(): pass\n" * 200
    assert "product" in snapshots.export_tree(after.tree, tmp_path / "out")
    assert (tmp_path / "out" / "product").stat().st_size == 3800
    assert (tmp_path / "out" / "model").stat().st_size == 3000
    assert [change.path for change in snapshots.changes(before.tree, after.tree)] == ["product"]


def test_a_large_file_that_cannot_be_copied_is_named(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots = Snapshots(tmp_path / "store", tree, keep_up_to=2000)
    before = snapshots.take()
    monkeypatch.setattr(taking, "COPIED_BYTES", 5000)
    for name in ("a", "b"):
        (tree / name).write_bytes(name.encode() * 3000)
    after = snapshots.take()
    assert len(after.unkept) == 1 and after.large == after.unkept
    assert {change.path for change in snapshots.changes(before.tree, after.tree)} == {"a", "b"}
    monkeypatch.setattr(taking, "RESERVE_BYTES", 1 << 60)
    (tree / "c").write_bytes(b"c" * 3000)
    assert snapshots.take().unkept == ["c"]


def test_a_large_file_of_just_now_is_not_taken_for_a_change(tmp_path: Path, tree: Path) -> None:
    (tree / "model").write_bytes(b"m" * 3000)
    snapshots = Snapshots(tmp_path / "store", tree, keep_up_to=2000)
    assert snapshots.take().tree == snapshots.take().tree


def test_what_a_large_file_was_is_known_to_be_lost_as_long_as_the_trees_differ(
    tmp_path: Path, tree: Path
) -> None:
    for name in ("changed", "gone", "same"):
        (tree / name).write_bytes(b"x" * 3000)
    snapshots = Snapshots(tmp_path / "store", tree, keep_up_to=2000)
    before = snapshots.take().tree
    assert snapshots.large_in(before) == ["changed", "gone", "same"]
    (tree / "changed").write_bytes(b"y" * 3000)
    (tree / "gone").unlink()
    (tree / "made").write_bytes(b"z" * 3000)
    snapshots.take()
    after = snapshots.take().tree
    assert snapshots.unkept_between(before, after) == ["changed", "gone"]
    assert snapshots.unkept_between(before, before) == []


def test_a_large_file_comes_into_a_copy_only_as_the_tree_had_it(tmp_path: Path, tree: Path) -> None:
    for name in ("changed", "same"):
        (tree / name).write_bytes(b"x" * 3000)
    snapshots = Snapshots(tmp_path / "store", tree, keep_up_to=2000)
    before = snapshots.take().tree
    (tree / "changed").write_bytes(b"y" * 3000)
    brought = []
    snapshots.export_tree(before, tmp_path / "out", lambda path, _: brought.append(path))
    assert brought == ["same"]
    snapshots.export_tree(before, tmp_path / "copied")
    assert (tmp_path / "copied" / "same").read_bytes() == b"x" * 3000
    assert not (tmp_path / "copied" / "changed").exists()


class Full:
    """A disk without room, as far as packs go."""

    def __call__(self, *_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("damage", ["of an unknown type", "longer than it says", "a pipe"])
def test_no_content_is_left_out_where_git_ends_before_the_last(tmp_path: Path, damage: str) -> None:
    store = Git(tmp_path / "store", "git", most_sec=20)
    store.init()
    names = [store.run("hash-object", "-w", "--stdin", stdin=b"%d\n" % n) for n in range(3)]
    first, second, third = (name.decode().strip() for name in names)
    place = store.git_dir / "objects" / second[:2] / second[2:]
    place.unlink()
    if damage == "a pipe":
        os.mkfifo(place)
        store.most_sec = 0.5
    else:
        kind = b"blub" if damage == "of an unknown type" else b"blob"
        place.write_bytes(zlib.compress(kind + b" 30\0x"))
    with pytest.raises(GitFailed, match="cat-file"):
        list(blobs(store, [first, second, third]))
    entries = {name: ("100644", name) for name in (first, second, third)}
    with pytest.raises(GitFailed):
        export_entries(store, entries, tmp_path / "out")


def test_a_full_disk_is_said_and_leaves_nothing_behind(
    snapshots: Snapshots, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "noise").write_bytes(os.urandom(5 * MB))
    with monkeypatch.context() as patched:
        patched.setattr(pack, "_make_durable", Full())
        with pytest.raises(GitFailed) as caught:
            snapshots.take()
    assert caught.value.code == "disk-full" and "df -h" in caught.value.remedy
    assert not list(snapshots.git_dir.glob("agentrunner.pack.*"))
    assert not list((snapshots.git_dir / "objects" / "pack").iterdir())
    snapshots.take()
    sound(snapshots)


SMALL_DISK = """
import errno, subprocess, sys
from pathlib import Path
from agentrunner.errors.runs import DiskFull
from agentrunner.git.snapshots import Snapshots

root = Path(sys.argv[1])
snapshots, small = Snapshots(root / "store", root / "tree"), root / "small"
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", small], check=True)
tree = snapshots.take().tree
try:
    snapshots.export_tree(tree, small / "out")
except (DiskFull, OSError) as error:
    assert isinstance(error, DiskFull) or error.errno == errno.ENOSPC, repr(error)
else:
    sys.exit("6 MB went onto 4 MB")
snapshots.git.run("fsck", "--full", "--strict")
assert snapshots.take().tree == tree
subprocess.run(["mount", "-o", "remount,size=20m", small], check=True)
snapshots.export_tree(tree, small / "again")
for path in (root / "tree").glob("noise*"):
    assert (small / "again" / path.name).read_bytes() == path.read_bytes()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_disk_that_fills_while_a_tree_is_written_leaves_the_tree_whole(
    tree: Path, tmp_path: Path
) -> None:
    for number in range(6):
        (tree / f"noise{number}").write_bytes(os.urandom(MB))
    (tmp_path / "small").mkdir()
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", SMALL_DISK, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["files", "folders"])
def test_more_files_than_can_be_named_are_a_sentence(
    snapshots: Snapshots, tree: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """And no more of a folder is read than that takes."""
    read: list[str | bytes] = []

    class Counted:
        def __init__(self, place: str | bytes) -> None:
            self.found = scandir(place)

        def __enter__(self) -> Counted:
            return self

        def __exit__(self, *_: object) -> None:
            self.found.close()

        def __iter__(self) -> Counted:
            return self

        def __next__(self) -> os.DirEntry[Any]:
            entry: os.DirEntry[Any] = next(self.found)
            read.append(entry.name)
            return entry

    scandir = os.scandir
    monkeypatch.setattr(walk, "MOST_FILES", 50)
    monkeypatch.setattr(os, "scandir", Counted)
    for number in range(500):
        place = tree / "many" / str(number)
        place.mkdir(parents=True) if kind == "folders" else put(tree, f"many/{number}")
    with pytest.raises(InfraError) as caught:
        snapshots.take()
    assert caught.value.code == "too-many-files" and caught.value.nothing_spent
    assert ".gitignore" in caught.value.remedy
    assert len(read) < 100


# -- ignored files ------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ignore, "KEPT_FILE", 100)
    monkeypatch.setattr(ignore, "KEPT_TOGETHER", 250)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return uncommitted(tmp_path / "repo", {".gitignore": "*.log\n*.db\n", "app.py": "x\n"})


@pytest.mark.usefixtures("small")
def test_small_ignored_files_are_kept_and_larger_ones_seen(repo: Path, tmp_path: Path) -> None:
    put(repo, "a.log", "b.log", "c.log", text="x" * 90)
    put(repo, "big.log", "tracked.log", text="x" * 200)
    git(repo, "add", "-f", "tracked.log")
    snapshots = Snapshots(tmp_path / "store", repo)
    taken = snapshots.take()
    assert set(snapshots.list(taken.tree)) == {
        ".gitignore", "app.py", "a.log", "b.log", "tracked.log"
    }  # fmt: skip
    assert taken.seen == ["big.log", "c.log"]
    before = snapshots.ignored_seen()
    assert set(before) == {"big.log", "c.log"} and before["big.log"].startswith("200 ")
    assert snapshots.take().tree == taken.tree and snapshots.ignored_seen() == before

    put(repo, "big.log", text="y" * 200)
    put(repo, "new.db", text="z" * 101)
    after = snapshots.take()
    assert after.tree == taken.tree
    facts = snapshots.ignored_seen()
    assert {path for path in facts if before.get(path) != facts[path]} == {"big.log", "new.db"}
    (repo / "big.log").unlink()
    snapshots.take()
    assert set(snapshots.ignored_seen()) == {"c.log", "new.db"}


@pytest.mark.usefixtures("small")
def test_a_kept_ignored_file_that_grows_stays_kept(repo: Path, tmp_path: Path) -> None:
    put(repo, "a.log", text="x" * 90)
    snapshots = Snapshots(tmp_path / "store", repo)
    before = snapshots.take().tree
    put(repo, "a.log", text="y" * 900)
    after = snapshots.take().tree
    assert [change.kind for change in snapshots.changes(before, after)] == ["modified"]
    assert snapshots.restore(after, before).files == ["a.log"]


@pytest.mark.usefixtures("small")
def test_a_worker_cannot_hide_a_file_by_rules_or_by_making_it_anew(
    repo: Path, tmp_path: Path
) -> None:
    put(repo, "tracked.log", text="x" * 200)
    git(repo, "add", "-f", "tracked.log")
    snapshots = Snapshots(tmp_path / "store", repo)
    before = snapshots.take().tree
    (repo / "tracked.log").unlink()
    snapshots.take()
    put(repo, "tracked.log", text="y" * 200)
    put(repo, "hidden.py", text="x" * 200)
    put(repo, ".gitignore", text="*\n")
    after = snapshots.take()
    assert after.seen == []
    assert {change.path for change in snapshots.changes(before, after.tree)} == {
        ".gitignore", "hidden.py", "tracked.log"
    }  # fmt: skip


def test_ignored_files_cost_nothing_in_the_store(repo: Path, tmp_path: Path) -> None:
    (repo / "big.db").write_bytes(os.urandom(5 * MB))
    snapshots = Snapshots(tmp_path / "store", repo)
    snapshots.take()
    stored = sum(path.stat().st_size for path in snapshots.git_dir.rglob("*"))
    assert stored < MB // 4


def test_what_is_kept_of_ignored_files_is_for_its_owner_only(repo: Path, tmp_path: Path) -> None:
    put(repo, "secrets.log", text="password\n")
    snapshots = Snapshots(tmp_path / "store", repo)
    assert snapshots.read(snapshots.take().tree, "secrets.log") == b"password\n"
    made = [path for path in snapshots.git_dir.rglob("*") if path.is_file()]
    assert made and not [path for path in made if path.stat().st_mode & 0o077]
    folders = [path for path in (snapshots.git_dir, *snapshots.git_dir.rglob("*")) if path.is_dir()]
    assert not [path for path in folders if path.stat().st_mode & 0o077]


def test_a_store_of_an_older_version_keeps_what_it_kept(repo: Path, tmp_path: Path) -> None:
    (repo / "big.log").write_bytes(b"x" * (2 * MB))
    snapshots = Snapshots(tmp_path / "store", repo)
    snapshots.take()
    place = snapshots.git_dir / "agentrunner"
    (place / "ignored.json").write_text('{"prefix": "", "known": {}}')
    for name in ("seen", "stand-ins", "ignored-seen.json"):
        (place / name).unlink()
    taken = snapshots.take()
    assert "big.log" in snapshots.list(taken.tree) and taken.seen == []
    assert "big.log" in snapshots.export_tree(taken.tree, tmp_path / "out")
    assert (tmp_path / "out" / "big.log").stat().st_size == 2 * MB


# -- trees as folders ---------------------------------------------------------------------------


def traps(tree: Path) -> None:
    """Names, links and attributes that git or a naive copy would stumble over."""
    long = "/".join(["n" * 70] * 4) + "/end"
    put(tree, long, "a\nb", "caf\u00e9", "Case", "case", "-rf", "git~1", "GIT~1", ".git\u200c", "*")
    (tree / os.fsdecode(b"\xff\xfe")).write_bytes(b"raw\r\n")
    (tree / "crlf").write_bytes(b"one\r\ntwo\n$Id$\n")
    (tree / "wide").write_bytes("wide\n".encode("utf-16"))
    put(tree, ".gitattributes", text="* text eol=lf ident filter=x working-tree-encoding=utf-16\n")
    put(tree, "pointer", text="version https://git-lfs.github.com/spec/v1\nsize 5\n")
    put(tree, "run", text="#!/bin/sh\n")
    for name, to in {"out": "/etc", "up": "../..", "loop": "loop", "in": "src"}.items():
        (tree / name).symlink_to(to)


@pytest.fixture
def ways(
    snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Snapshots:
    if request.param == "without git":
        monkeypatch.setattr("agentrunner.git.export.is_untouched", lambda _: False)
    return snapshots


@pytest.mark.parametrize("ways", ["by git", "without git"], indirect=True)
@pytest.mark.parametrize("refused", [False, True])
def test_a_tree_is_written_as_it_was(
    ways: Snapshots, tree: Path, tmp_path: Path, refused: bool
) -> None:
    traps(tree)
    if refused:  # a name that git writes nowhere
        (tree / ".gitmodules").symlink_to("/etc/passwd")
    taken = ways.take().tree
    out = tmp_path / "out"
    assert ways.export_tree(taken, out) == sorted(ways.list(taken))
    assert Snapshots(tmp_path / "again", out).take().tree == taken
    assert (out / "run").stat().st_mode & 0o777 == 0o755
    assert (out / "app.py").stat().st_mode & 0o777 == 0o644
    assert (out / "out").readlink() == Path("/etc")


def test_a_thousand_files_and_a_large_one_among_them(tmp_path: Path, tree: Path) -> None:
    for number in range(1200):
        put(tree, f"d{number % 7}/{number}", text=str(number))
    (tree / "d3" / "large").write_bytes(b"x" * 3000)
    snapshots = Snapshots(tmp_path / "store", tree, keep_up_to=2000)
    taken = snapshots.take().tree
    assert len(snapshots.export_tree(taken, tmp_path / "out")) == 1203
    snapshots.export_tree(taken, tmp_path / "copy")
    assert Snapshots(tmp_path / "store2", tmp_path / "copy").take().files == 1203


def test_pipes_sockets_and_closed_folders_are_named_and_harm_nothing(
    snapshots: Snapshots, tree: Path, tmp_path: Path
) -> None:
    os.mkfifo(tree / "src" / "pipe")
    (tree / "closed").mkdir(mode=0o500)
    taken = snapshots.take()
    assert taken.skipped == ["src/pipe"]
    done = threading.Event()

    def export() -> None:
        snapshots.export_tree(taken.tree, tmp_path / "copy")
        done.set()

    threading.Thread(target=export, daemon=True).start()
    assert done.wait(30)
    assert not (tmp_path / "copy" / "src" / "pipe").exists()
