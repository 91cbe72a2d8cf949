"""What is put into a worker's own folder stays in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.launching.launch import make_own


@pytest.fixture
def box(tmp_path: Path) -> Path:
    box = tmp_path / "box"
    box.mkdir()
    return box


def test_folders_are_made_for_their_owner_only(box: Path) -> None:
    make_own(box / "gemini" / ".gemini", box)
    make_own(box / "gemini" / ".gemini", box)
    assert (box / "gemini" / ".gemini").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("planted", ["gemini", "gemini/.gemini"])
def test_a_link_out_of_the_box_is_not_followed(box: Path, tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "person"
    outside.mkdir()
    (box / planted).parent.mkdir(exist_ok=True)
    (box / planted).symlink_to(outside)
    make_own(box / "gemini" / ".gemini", box)
    (box / "gemini" / ".gemini" / "settings.json").write_text("{}")
    assert list(outside.iterdir()) == []


def test_a_file_in_the_place_of_a_folder_is_no_hindrance(box: Path) -> None:
    (box / "tmp").write_text("mine")
    make_own(box / "tmp", box)
    assert (box / "tmp").is_dir()
