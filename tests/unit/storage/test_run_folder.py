from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.errors import CheckpointCorrupt, UsageError
from agentrunner.state.state_model import FileRef
from agentrunner.storage.run_folder import RUN_ID, RunFolder, load_spec, new_run_id, save_spec
from tests.kit.task_specs import task_spec_of


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_its_owner_can_enter_a_run(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        folder = RunFolder.create(tmp_path / "state", "t-0000")
        folder.write("meta/1.txt", "hello")
    finally:
        os.umask(previous)
    assert mode(tmp_path / "state") == 0o700
    assert mode(folder.root) == 0o700
    assert mode(folder.planner_dir / "1.txt") == 0o600


@pytest.mark.parametrize("bad", ["", ".", "..", "../x", "a/b", "/etc", "-x", "a..b", "x" * 141])
def test_an_unsafe_or_unknown_run_creates_nothing(tmp_path: Path, bad: str) -> None:
    for make in (RunFolder.create, RunFolder.open):
        with pytest.raises(UsageError) as caught:
            make(tmp_path / "state", bad)
        assert caught.value.code == "unknown-run"
    with pytest.raises(UsageError):
        RunFolder.open(tmp_path / "state", "fine-0000")
    assert not (tmp_path / "state").exists()


def test_a_state_folder_inside_the_repository_is_refused_also_through_a_link(
    tmp_path: Path,
) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (tmp_path / "alias").symlink_to(repo)
    for state in (repo, repo / "state", tmp_path / "alias" / "state"):
        with pytest.raises(UsageError) as caught:
            RunFolder.create(state, "t-0000", repo)
        assert caught.value.code == "state-in-repository"
    assert list(repo.iterdir()) == []
    RunFolder.create(tmp_path / "repo-state", "t-0000", repo)


def test_what_was_written_is_read_and_anything_else_is_named(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "t-0000")
    ref = folder.write("prompts/1.md", "naïve \udc80")
    assert folder.ref(folder.prompts_dir / "1.md") == ref
    assert folder.read(ref) == b"na\xc3\xafve \\udc80"
    (folder.prompts_dir / "1.md").write_text("other")
    with pytest.raises(CheckpointCorrupt, match=r"prompts/1\.md"):
        folder.read(ref)
    with pytest.raises(CheckpointCorrupt):
        folder.read(FileRef(path="prompts/2.md"))


@pytest.mark.parametrize("bad", ["../x", "/etc/passwd", "a/../../x", ""])
def test_a_name_outside_of_the_folder_is_refused(tmp_path: Path, bad: str) -> None:
    folder = RunFolder.create(tmp_path, "t-0000")
    with pytest.raises(ValueError, match="not a path inside"):
        folder.write(bad, "x")


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder.create(tmp_path, "t-0000")
    folder.write("meta/a", "old")

    def full(_fd: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        folder.write("meta/a", "new")
    assert [path.name for path in folder.planner_dir.iterdir()] == ["a"]
    assert (folder.planner_dir / "a").read_text() == "old"


@given(st.binary(min_size=4, max_size=8))
def test_run_ids_are_safe_and_end_in_four_characters(random: bytes) -> None:
    name = new_run_id("users-api", random)
    assert RUN_ID.match(name) and len(name) == len("users-api-") + 4
    assert not set(name[-4:]) & set("ilou")


def test_the_task_comes_back_as_it_was_and_damage_is_named(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "t-0000")
    spec = task_spec_of(title="題", prd="# x")
    save_spec(folder, spec)
    assert load_spec(folder) == spec
    folder.spec_file.write_text("{")
    with pytest.raises(CheckpointCorrupt):
        load_spec(folder)


def test_a_run_with_read_only_folders_can_be_removed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "t-0000")
    locked = folder.sandbox_dir / "go" / "pkg"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x")
    locked.chmod(0o500)
    (folder.sandbox_dir / "go").chmod(0o500)
    folder.remove()
    assert not folder.root.exists()


def test_a_new_file_is_written_at_its_place_and_what_a_crash_left_there_is_replaced(
    tmp_path: Path,
) -> None:
    folder = RunFolder.create(tmp_path, "t-0000")
    target = tmp_path / "elsewhere"
    target.write_text("theirs")
    (folder.prompts_dir / "1.md").symlink_to(target)
    folder.write("prompts/1.md", "ours", new=True)
    folder.write("prompts/2.md", "torn", new=True)
    folder.write("prompts/2.md", "whole", new=True)
    assert target.read_text() == "theirs"
    assert [(folder.prompts_dir / f"{n}.md").read_text() for n in (1, 2)] == ["ours", "whole"]
    assert (folder.prompts_dir / "2.md").stat().st_mode & 0o777 == 0o600
