"""The watch over the disk, on real files; what the file system reports free is made up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentrunner.sandboxes import disk
from agentrunner.sandboxes.disk import FILE_BYTES, DiskWatch

CAP = 4 << 20
Spend = Callable[[int], None]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.fixture
def spend(monkeypatch: pytest.MonkeyPatch) -> Spend:
    """Take bytes from what is free."""
    free = [1 << 40]
    monkeypatch.setattr(disk, "_free", lambda _place: (free[0], 1000))

    def take(size: int) -> None:
        free[0] -= size

    return take


def settle(watch: DiskWatch) -> bool:
    """Ask until a walk has come to its end."""
    while not (over := watch.over()):
        if watch.wait_sec:
            break
    return over


def fill(path: Path, size: int) -> None:
    path.write_bytes(os.urandom(1 << 16) * (size >> 16))


def test_too_much_is_too_much(tree: Path, spend: Spend) -> None:
    watch = DiskWatch([tree], CAP)
    fill(tree / "file", CAP // 2)
    spend(CAP // 2)
    assert not settle(watch)
    fill(tree / "more", CAP)
    spend(CAP)
    assert settle(watch)


def test_what_others_take_is_not_ours(tree: Path, spend: Spend) -> None:
    watch = DiskWatch([tree], CAP)
    fill(tree / "file", CAP // 2)
    spend(100 * CAP)
    assert not settle(watch)
    fill(tree / "more", CAP)
    spend(CAP)
    assert settle(watch)


def test_what_was_there_before_does_not_count(tree: Path, spend: Spend) -> None:
    fill(tree / "old", 2 * CAP)
    while time.time_ns() - (tree / "old").stat().st_ctime_ns < 2 * disk.CLOCK_NS:
        pass
    watch = DiskWatch([tree], CAP)
    spend(2 * CAP)
    assert not settle(watch)


def test_nothing_is_walked_while_enough_is_free(
    tree: Path, spend: Spend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def walked(_folder: Path) -> None:
        raise AssertionError("it was walked")

    watch = DiskWatch([tree], CAP)
    monkeypatch.setattr(os, "scandir", walked)
    for _ in range(10):
        spend(CAP // 10)
        assert not watch.over()


def test_a_file_without_blocks_is_small_and_many_empty_ones_are_not(
    tree: Path, spend: Spend
) -> None:
    watch = DiskWatch([tree], CAP)
    with (tree / "sparse").open("wb") as file:
        file.truncate(10 << 30)
    spend(2 * CAP)
    assert not settle(watch)
    for number in range(CAP // FILE_BYTES + 1):
        (tree / str(number)).touch()
    spend(2 * CAP)
    assert settle(watch)


def test_links_count_once_and_are_not_followed(tree: Path, tmp_path: Path, spend: Spend) -> None:
    watch = DiskWatch([tree], CAP)
    fill(tree / "file", CAP // 2)
    for number in range(8):
        (tree / f"link{number}").hardlink_to(tree / "file")
    (tmp_path / "outside").mkdir()
    fill(tmp_path / "outside/file", 2 * CAP)
    (tree / "soft").symlink_to(tmp_path / "outside")
    spend(2 * CAP)
    assert not settle(watch)


def test_a_deleted_file_that_is_open_is_found(tree: Path, spend: Spend) -> None:
    watch = DiskWatch([tree], CAP)
    with (tree / "file").open("wb") as file:
        file.write(bytes(2 * CAP))
        file.flush()
        (tree / "file").unlink()
        spend(2 * CAP)
        assert not settle(watch)
        spend(2 * CAP)
        assert watch.over(lambda: [os.getpid()])


def test_what_cannot_be_measured_counts_as_much_as_is_gone(tree: Path, spend: Spend) -> None:
    watch = DiskWatch([tree], CAP)
    folder = os.open(tree, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=folder)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    spend(2 * CAP)
    assert settle(watch), "a path of 5000 bytes hides what is in it"


def test_looks_come_sooner_while_space_goes_fast(tree: Path, spend: Spend) -> None:
    watch = DiskWatch([tree], CAP)
    shortest, longest = disk.LOOK_SEC
    for _ in range(10):
        watch.over()
    assert watch.wait_sec == longest
    spend(CAP - 1)
    watch.over()
    assert watch.wait_sec == shortest


def test_a_folder_must_be_there(tree: Path) -> None:
    with pytest.raises(FileNotFoundError):
        DiskWatch([tree / "absent"], CAP)
