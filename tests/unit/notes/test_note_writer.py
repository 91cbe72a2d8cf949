"""The note's file: nothing planted in its place is followed, waited for or overwritten."""

from __future__ import annotations

import ctypes
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agentrunner.errors import InfraError, UsageError
from agentrunner.notes.render import MARKER
from agentrunner.notes.writer import (
    WrittenNote,
    check_note_dir,
    note_name,
    note_parts,
    remove_note,
    write_note,
)

pytestmark = pytest.mark.timeout(20)
DIR = ".agent-runner"
VICTIM = "precious"


def text_of(run_id: str, body: str = "body") -> str:
    return f'{MARKER}{{"version": 1, "run_id": "{run_id}"}} -->\n# {body} 日本\n'


class Place:
    """A repository, a folder of the run, and a file outside that must not change."""

    def __init__(self, root: Path) -> None:
        self.repo, self.run, self.outside = root / "repo", root / "run", root / "outside"
        for folder in (self.repo, self.run, self.outside):
            folder.mkdir()
        self.victim = self.outside / "victim"
        self.victim.write_text(VICTIM)

    @property
    def folder(self) -> Path:
        return self.repo / DIR

    @property
    def note(self) -> Path:
        return self.folder / "task-X.md"

    def write(self, run_id: str = "r1", body: str = "body", note_dir: str = DIR) -> WrittenNote:
        return write_note(
            self.repo, note_dir, "X", run_id, text_of(run_id, body), fallback=self.run / "note.md"
        )

    def check(self, written: WrittenNote, run_id: str = "r1", body: str = "body") -> None:
        """The note is where it is said to be, and outside nothing changed."""
        assert written.path.read_text() == text_of(run_id, body)
        assert self.victim.read_text() == VICTIM
        assert sorted(path.name for path in self.outside.iterdir()) == ["victim"]


def test_an_id_that_begins_with_task_is_the_whole_name(tmp_path: Path) -> None:
    given = (tmp_path, DIR, "task-1201-ab12", "r1")
    written = write_note(*given, text_of("r1"), fallback=tmp_path / "note.md")
    assert written.path.name == note_name(*given) == "task-1201-ab12.md"
    remove_note(*given, written.path.read_bytes())
    assert note_name(*given) == "" and not written.path.exists()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_note_is_written(place: Place) -> None:
    previous = os.umask(0o077)
    try:
        written = place.write()
    finally:
        os.umask(previous)
    assert written == WrittenNote(place.note)
    place.check(written)
    assert stat.S_IMODE(place.note.stat().st_mode) == 0o644
    assert [path.name for path in place.folder.iterdir()] == ["task-X.md"]


@pytest.mark.parametrize("note_dir", [".", "docs/notes", "a/b/c", "./x"])
def test_any_folder_of_the_repository_will_do(place: Place, note_dir: str) -> None:
    written = place.write(note_dir=note_dir)
    assert written == WrittenNote(place.repo / note_dir / "task-X.md")
    place.check(written)


@pytest.mark.parametrize(
    "note_dir", ["/tmp", "..", "a/../..", "../outside", ".git", ".git/hooks", "a/.GIT", "x\0y"]
)
def test_no_folder_outside_the_repository_will_do(place: Place, note_dir: str) -> None:
    with pytest.raises(UsageError):
        note_parts(note_dir)
    written = place.write(note_dir=note_dir)
    assert written.path == place.run / "note.md"
    assert str(written.path) in written.warning
    place.check(written)


@pytest.mark.parametrize("task_id", ["../x", "a/b", ".x", "", "a..b", "x\n"])
def test_an_id_that_is_no_file_name_is_refused(place: Place, task_id: str) -> None:
    with pytest.raises(UsageError):
        write_note(place.repo, DIR, task_id, "r", "text", fallback=place.run / "note.md")


# -- whose note it is -------------------------------------------------------------------------


def test_the_same_run_rewrites_its_note(place: Place) -> None:
    place.write(body="waiting")
    place.check(place.write(body="complete"), body="complete")
    assert [path.name for path in place.folder.iterdir()] == ["task-X.md"]


def test_the_note_of_another_run_is_kept(place: Place) -> None:
    for run_id in ("r1", "r2", "r3"):
        place.check(place.write(run_id), run_id)
    names = {path.name: path.read_text() for path in place.folder.iterdir()}
    assert names == {
        "task-X.1.md": text_of("r1"),
        "task-X.2.md": text_of("r2"),
        "task-X.md": text_of("r3"),
    }


def test_a_run_that_goes_on_rewrites_its_own_note_where_it_is(place: Place) -> None:
    place.write("r1", "waiting")
    place.write("r2")
    written = place.write("r1", "complete")
    assert written.path.name == "task-X.1.md"
    place.check(written, "r1", "complete")
    assert place.note.read_text() == text_of("r2")


FOREIGN = [
    b"",
    b"# mine",
    b"\xff\xfe",
    f"{MARKER}[] -->".encode(),
    f"{MARKER}{{ -->".encode(),
    MARKER.encode() * 1000,
]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_persons_file_is_kept(place: Place, foreign: bytes) -> None:
    place.folder.mkdir()
    place.note.write_bytes(foreign)
    place.check(place.write())
    assert (place.folder / "task-X.1.md").read_bytes() == foreign


def test_other_tasks_notes_stay(place: Place) -> None:
    place.folder.mkdir()
    for name in ("task-XY.md", "task-X.y.md", "task-X.1.md.bak"):
        (place.folder / name).write_text(text_of("r1", name))
    place.check(place.write())
    assert (place.folder / "task-XY.md").read_text() == text_of("r1", "task-XY.md")


# -- what a worker may plant ------------------------------------------------------------------


def plant_link(place: Place) -> None:
    place.note.symlink_to(place.victim)


def plant_dangling_link(place: Place) -> None:
    place.note.symlink_to(place.outside / "new")


def plant_hard_link(place: Place) -> None:
    place.note.hardlink_to(place.victim)


def plant_fifo(place: Place) -> None:
    os.mkfifo(place.note)


def plant_socket(place: Place) -> None:
    os.mknod(place.note, stat.S_IFSOCK)


def plant_temporary_link(place: Place) -> None:
    (place.folder / ".task-X.md.tmp").symlink_to(place.victim)


def plant_temporary_hard_link(place: Place) -> None:
    (place.folder / ".task-X.md.tmp").hardlink_to(place.victim)


def plant_temporary_fifo(place: Place) -> None:
    os.mkfifo(place.folder / ".task-X.md.tmp")


def plant_numbered_links(place: Place) -> None:
    (place.folder / "task-X.1.md").symlink_to(place.victim)
    os.mkfifo(place.folder / "task-X.2.md")
    place.note.write_text("old")


@pytest.mark.parametrize(
    "plant",
    [
        plant_link,
        plant_dangling_link,
        plant_hard_link,
        plant_fifo,
        plant_socket,
        plant_temporary_link,
        plant_temporary_hard_link,
        plant_temporary_fifo,
        plant_numbered_links,
    ],
)
def test_what_stands_in_the_notes_place_is_replaced(
    place: Place, plant: Callable[[Place], None]
) -> None:
    place.folder.mkdir()
    plant(place)
    written = place.write()
    assert written == WrittenNote(place.note)
    place.check(written)
    assert stat.S_ISREG(place.note.lstat().st_mode) and place.note.stat().st_nlink == 1


def folder_link(place: Place) -> None:
    place.folder.symlink_to(place.outside)


def folder_fifo(place: Place) -> None:
    os.mkfifo(place.folder)


def folder_file(place: Place) -> None:
    place.folder.write_text("x")


def folder_dangling(place: Place) -> None:
    place.folder.symlink_to(place.outside / "new")


def folder_loop(place: Place) -> None:
    place.folder.symlink_to(place.folder)


def note_is_folder(place: Place) -> None:
    place.note.mkdir(parents=True)


def temporary_is_folder(place: Place) -> None:
    (place.folder / ".task-X.md.tmp").mkdir(parents=True)


@pytest.mark.parametrize(
    "plant",
    [
        folder_link,
        folder_fifo,
        folder_file,
        folder_dangling,
        folder_loop,
        note_is_folder,
        temporary_is_folder,
    ],
)
def test_where_the_repository_cannot_take_it_the_run_does(
    place: Place, plant: Callable[[Place], None]
) -> None:
    plant(place)
    written = place.write()
    assert written.path == place.run / "note.md"
    assert str(written.path) in written.warning
    place.check(written)


def test_a_link_further_up_is_not_followed(place: Place) -> None:
    (place.repo / "docs").symlink_to(place.outside)
    written = place.write(note_dir="docs/notes")
    assert written.path == place.run / "note.md"
    place.check(written)


def test_a_repository_that_nobody_can_write_to(place: Place) -> None:
    place.repo = Path(f"/proc/{os.getpid()}")
    written = place.write()
    assert written.path == place.run / "note.md"
    place.check(written)


def test_a_full_disk_leaves_no_half_note(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.check(place.write(body="old"), body="old")
    real = os.fsync

    def full(fd: int) -> None:
        monkeypatch.setattr(os, "fsync", real)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    written = place.write(body="new")
    assert "No space left" in written.warning
    place.check(written, body="new")
    assert {path.name: path.read_text() for path in place.folder.iterdir()} == {
        "task-X.md": text_of("r1", "old")
    }


def test_nowhere_to_write(place: Place) -> None:
    folder_file(place)
    place.run.rmdir()
    with pytest.raises(InfraError, match="neither"):
        place.write()


def exchange(one: Path, other: Path) -> None:
    """Swap two names in one step (renameat2, RENAME_EXCHANGE)."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.renameat2(-100, bytes(one), -100, bytes(other), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def test_a_folder_that_flips_between_real_and_link(place: Place) -> None:
    """A worker that swaps the folder while notes are written gains nothing."""
    link = place.repo / "link"
    place.folder.mkdir()
    link.symlink_to(place.outside)
    stop = threading.Event()
    flips = 0

    def flip() -> None:
        nonlocal flips
        while not stop.is_set():
            exchange(place.folder, link)
            flips += 1

    thread = threading.Thread(target=flip)
    thread.start()
    written: list[WrittenNote] = []
    try:
        while flips < 10_000 or len(written) < 200:
            written.append(place.write(body=str(len(written))))
    finally:
        stop.set()
        thread.join()
    if place.folder.is_symlink():
        exchange(place.folder, link)
    place.check(written[-1], body=str(len(written) - 1))
    assert {one.path for one in written} <= {place.note, place.run / "note.md"}


@pytest.mark.parametrize("name", ["tests", "."])
def test_a_folder_that_holds_other_things_is_not_for_notes(tmp_path: Path, name: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").touch()
    with pytest.raises(UsageError, match="more than task notes"):
        check_note_dir(tmp_path, name)


def test_a_folder_of_notes_or_none_yet_is_for_notes(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "task-a.md").touch()
    check_note_dir(tmp_path, "notes")
    check_note_dir(tmp_path, "docs/notes")
    check_note_dir(tmp_path, ".agent-runner")
