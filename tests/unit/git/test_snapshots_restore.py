"""`undo`: the work tree goes back, and nothing outside of it is ever touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.git import snapshot_writer as taking
from agentrunner.git.restore import Restored
from agentrunner.git.snapshots import Snapshots
from tests.kit.files import write


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "src" / "deep").mkdir(parents=True)
    (tree / "src" / "a.py").write_text("a\n")
    (tree / "src" / "deep" / "b.py").write_text("b\n")
    write(tree, {"run": "#!/bin/sh\n"})
    (tree / "link").symlink_to("run")
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return tree


def test_everything_a_run_did_is_undone_and_can_be_done_again(
    snapshots: Snapshots, tree: Path
) -> None:
    before = snapshots.take().tree
    (tree / "src" / "a.py").write_text("A\n")
    (tree / "src" / "deep" / "b.py").unlink()
    (tree / "src" / "deep").rmdir()
    (tree / "src" / "deep").write_text("a file now\n")
    (tree / "run").unlink()
    (tree / "run").mkdir()
    (tree / "run" / "x").write_text("x")
    (tree / "link").unlink()
    (tree / "new" / "er").mkdir(parents=True)
    (tree / "new" / "er" / "c.py").write_text("c\n")
    after = snapshots.take().tree
    assert snapshots.restore(after, before).refused == []
    assert snapshots.take().tree == before
    assert not (tree / "new").exists() and (tree / "run").stat().st_mode & 0o100
    assert (tree / ".git" / "HEAD").read_text() == "ref: refs/heads/main\n"
    assert snapshots.restore(before, after).refused == []
    assert snapshots.take().tree == after
    assert snapshots.restore(before, after) == Restored([], [])


def test_files_edited_since_stop_it_and_are_named_unless_forced(
    snapshots: Snapshots, tree: Path
) -> None:
    before = snapshots.take().tree
    (tree / "src" / "a.py").write_text("A\n")
    (tree / "src" / "new.py").write_text("n\n")
    (tree / "run").write_text("#!/bin/bash\n")
    after = snapshots.take().tree
    (tree / "src" / "a.py").write_text("mine\n")
    (tree / "src" / "new.py").write_text("mine\n")
    (tree / "untouched").write_text("mine\n")
    refused = snapshots.restore(after, before)
    assert refused == Restored([], ["src/a.py", "src/new.py"])
    assert (tree / "run").read_text() == "#!/bin/bash\n"
    forced = snapshots.restore(after, before, force=True)
    assert forced == Restored(["run", "src/a.py", "src/new.py"], [])
    (tree / "untouched").unlink()
    assert snapshots.take().tree == before


def test_a_link_in_place_of_a_folder_leads_nowhere(
    snapshots: Snapshots, tree: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "a.py").write_text("precious\n")
    (outside / "deep" / "b.py").write_text("precious\n")
    before = snapshots.take().tree
    (tree / "src" / "a.py").write_text("A\n")
    (tree / "src" / "deep" / "b.py").write_text("B\n")
    after = snapshots.take().tree
    (tree / "src").rename(tmp_path / "moved")
    (tree / "src").symlink_to(outside)
    done = snapshots.restore(after, before, force=True)
    assert done.refused == ["src/a.py", "src/deep/b.py"]
    assert (outside / "a.py").read_text() == "precious\n"
    assert (outside / "deep" / "b.py").read_text() == "precious\n"


def test_a_link_that_a_worker_put_over_a_file_is_replaced_not_followed(
    snapshots: Snapshots, tree: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    before = snapshots.take().tree
    (tree / "src" / "a.py").unlink()
    (tree / "src" / "a.py").symlink_to(victim)
    after = snapshots.take().tree
    assert snapshots.restore(after, before) == Restored(["src/a.py"], [])
    assert victim.read_text() == "precious\n"
    assert (tree / "src" / "a.py").read_text() == "a\n"


def test_files_too_large_to_be_kept_are_never_lost(
    snapshots: Snapshots, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "LARGE_BYTES", 100)
    (tree / "data").write_text("d" * 200)
    before = snapshots.take().tree
    (tree / "data").write_text("e" * 200)
    (tree / "more").write_text("m" * 200)
    after = snapshots.take().tree
    assert snapshots.restore(after, before) == Restored([], ["data"], ["data"])
    assert snapshots.restore(after, before, force=True) == Restored(["more"], ["data"], ["data"])
    assert (tree / "data").read_text() == "e" * 200


def test_a_large_file_that_a_worker_made_is_taken_back_and_an_edited_one_is_not(
    tree: Path, tmp_path: Path
) -> None:
    snapshots = Snapshots(tmp_path / "store-2", tree, keep_up_to=100)
    before = snapshots.take().tree
    (tree / "made").write_text("m" * 200)
    after = snapshots.take().tree
    (tree / "made").write_text("n" * 200)
    assert snapshots.restore(after, before) == Restored([], ["made"])
    (tree / "made").write_text("m" * 200)
    assert snapshots.restore(after, before) == Restored(["made"], [])
    assert not (tree / "made").exists()
    assert snapshots.restore(before, after) == Restored(["made"], [])
    assert (tree / "made").read_text() == "m" * 200


def test_a_file_that_is_kept_only_since_the_limit_is_higher_can_be_undone(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "LARGE_BYTES", 100)
    snapshots = Snapshots(tmp_path / "store-2", tree, keep_up_to=1000)
    (tree / "data").write_text("d" * 200)
    before = snapshots.take()
    assert before.large == []
    (tree / "data").write_text("e" * 200)
    assert snapshots.restore(snapshots.take().tree, before.tree) == Restored(["data"], [])
    assert (tree / "data").read_text() == "d" * 200
