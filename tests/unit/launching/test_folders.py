"""What is put into a worker's own folder stays in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agentrunner.launching.access import CliCredential
from agentrunner.launching.launch import CliLaunch, make_own
from agentrunner.launching.route import EgressRoute
from agentrunner.workers.base import WorkerCommand


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


@pytest.fixture
def start(box: Path, tmp_path: Path) -> Callable[[], Path]:
    """Lays out a CLI with HOME below the box, over a home in which a set-up wrote."""
    found = tmp_path / "set-up-home"
    for name in ("go/pkg/mod", ".cache/go-build", ".local/share/tool", ".qwen"):
        (found / name).mkdir(parents=True)

    def start() -> Path:
        own = box / "qwen"
        settings = {own / ".qwen/settings.json": "{}"}
        command = WorkerCommand(("qwen",), env={"HOME": str(own)}, folders=(own,), files=settings)
        CliLaunch(command, CliCredential(), EgressRoute(), box, 1, home=found).lay_out(box)
        return own

    return start


def test_a_cli_with_a_home_of_its_own_finds_what_the_set_up_wrote(
    start: Callable[[], Path],
) -> None:
    own = start()
    (own / ".cache/session").write_text("kept")
    assert start() == own
    links = {
        str(place.relative_to(own)): str(place.readlink())
        for place in own.rglob("*")
        if place.is_symlink()
    }
    assert links == {
        "go": "/home/agent/go",
        ".cache/go-build": "/home/agent/.cache/go-build",
        ".local/share/tool": "/home/agent/.local/share/tool",
    }
    assert (own / ".qwen/settings.json").read_text() == "{}"
    assert (own / ".cache/session").read_text() == "kept"


def test_no_link_that_a_cli_left_there_is_followed(
    start: Callable[[], Path], tmp_path: Path
) -> None:
    outside = tmp_path / "person"
    outside.mkdir()
    shutil.rmtree(start() / ".local")
    (tmp_path / "box/qwen/.local").symlink_to(outside)
    assert (start() / ".local/share/tool").is_symlink()
    assert list(outside.iterdir()) == []
