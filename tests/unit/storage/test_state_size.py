from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrunner.storage import state_size
from agentrunner.storage.state_size import KeptRun, disk_bytes, gigabytes, is_large, too_many


def fill(folder: Path, megabytes: int) -> Path:
    folder.mkdir(parents=True)
    (folder / "data").write_bytes(os.urandom(megabytes << 20))
    return folder


def test_files_with_two_names_count_once_and_links_not_at_all(tmp_path: Path) -> None:
    one = fill(tmp_path / "state" / "one", 1)
    (one / "again").hardlink_to(one / "data")
    outside = fill(tmp_path / "outside", 3)
    (one / "link").symlink_to(outside)
    assert 1 << 20 <= disk_bytes([tmp_path / "state"]) < 2 << 20
    assert disk_bytes([tmp_path / "nowhere"]) == 0


def test_the_oldest_go_until_it_fits(tmp_path: Path) -> None:
    state = tmp_path / "state"
    runs = [
        KeptRun(name, ended, (fill(state / name, 1),))
        for name, ended in (("b", "2026-02"), ("a", "2026-01"), ("c", "2026-03"))
    ]

    def gone(most: int) -> list[str]:
        return [run.run_id for run in too_many(state, runs, most)]

    assert gone(4 << 20) == []
    assert gone(5 << 19) == ["a"]
    assert gone(0) == ["a", "b", "c"]


def test_a_large_folder_is_noticed_without_a_long_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "state", 1)
    assert not is_large(tmp_path / "state")
    monkeypatch.setattr(state_size, "NOTICE_BYTES", 1 << 19)
    assert is_large(tmp_path / "state")
    assert (gigabytes(3_140_000_000), gigabytes(40_000_000)) == ("3.1 GB", "40 MB")
