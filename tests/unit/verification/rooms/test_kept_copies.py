"""A copy that goes to the next room holds what was copied, whatever a command did to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agentrunner.verification.rooms import kept_copies
from agentrunner.verification.rooms.kept_copies import KeptCopies
from tests.kit.files import write

FILES = {"bin/tool": "tool", "lib/a/one.py": "one", "lib/a/two.py": "two", "lib/b.py": "b"}


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """All that a command can have left, but for the times of the last reading."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (root, *sorted(root.rglob("*"))):
        facts = path.lstat()
        times = facts.st_mtime_ns, facts.st_size, os.listxattr(path, follow_symlinks=False)
        text = (
            str(path.readlink())
            if path.is_symlink()
            else path.read_text()
            if path.is_file()
            else ""
        )
        found[str(path.relative_to(root))] = (text, facts.st_mode, *times)
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = write(tmp_path / "sealed", FILES)
    (root / "lib" / "link").symlink_to("b.py")
    (root / "empty").mkdir()
    (root / "bin" / "tool").chmod(0o755)
    return root


def room(tmp_path: Path, number: int) -> Path:
    place = tmp_path / f"room-{number}"
    place.mkdir()
    return place


def forged(at: Path) -> None:
    """Other bytes of the same length, and the old time."""
    file = at / "lib" / "b.py"
    facts = file.stat()
    file.write_text("x")
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def exchanged(at: Path) -> None:
    shutil.rmtree(at / "lib" / "a")
    (at / "lib" / "a").write_text("a file now")


def led_out(at: Path) -> None:
    shutil.rmtree(at / "lib")
    (at / "lib").symlink_to("/etc")


def linked(at: Path) -> None:
    os.link(at / "lib" / "b.py", at.parent / "kept-by-a-link")
    (at.parent / "kept-by-a-link").write_text("x")


def grown(at: Path) -> None:
    """A folder that held much keeps its size when it is empty again."""
    for number in range(500):
        (at / "empty" / f"{number:0200}").touch()
    for one in (at / "empty").iterdir():
        one.unlink()


DEEDS: list[Callable[[Path], object]] = [
    lambda at: None,
    forged,
    exchanged,
    led_out,
    linked,
    lambda at: shutil.rmtree(at / "lib"),
    lambda at: (at / "lib" / "a" / "new.py").write_text("new"),
    lambda at: shutil.copytree(at / "bin", at / "lib" / "a" / "deep", symlinks=True),
    lambda at: (at / "bin" / "tool").chmod(0o644),
    lambda at: (at / "lib").chmod(0o500),
    lambda at: (at / "empty").rmdir(),
    lambda at: (at / "lib" / "a" / "one.py").replace(at / "lib" / "link"),
    lambda at: os.mkfifo(at / "lib" / "pipe"),
    lambda at: os.setxattr(at / "lib" / "a", "user.n", b"1"),
    lambda at: os.setxattr(at, "user.n", b"1"),
    lambda at: os.setxattr(at / "lib" / "b.py", "user.n", b"1"),
    lambda at: os.utime(at, (1, 1)),
    lambda at: os.utime(at / "lib", (1, 1)),
    lambda at: os.utime(at / "lib" / "b.py", (1, 1)),
    grown,
]


@pytest.mark.parametrize("deed", DEEDS)
def test_the_next_room_gets_what_was_copied(
    tmp_path: Path, source: Path, deed: Callable[[Path], object]
) -> None:
    copies = KeptCopies(tmp_path / "kept")
    for number in range(3):
        place = room(tmp_path, number)
        copy = copies.bring(source, place / "sub" / ".venv")
        assert copy is not None
        assert tree(place / "sub" / ".venv") == tree(source)
        deed(place / "sub" / ".venv")
        copies.take_back(copy, place)
        assert not (place / "sub" / ".venv").exists()


def test_what_a_command_put_in_its_place_is_not_taken(tmp_path: Path, source: Path) -> None:
    copies, other = KeptCopies(tmp_path / "kept"), tmp_path / "other"
    (other / ".venv").mkdir(parents=True)
    for number, part in enumerate(("sub", "sub/.venv")):
        place = room(tmp_path, number)
        copy = copies.bring(source, place / "sub" / ".venv")
        assert copy is not None
        (place / part).rename(tmp_path / f"away-{number}")
        (place / part).symlink_to(other if part == "sub" else other / ".venv")
        copies.take_back(copy, place)
        assert (other / ".venv").is_dir()
    place = room(tmp_path, 2)
    assert copies.bring(source, place / ".venv") is not None
    assert tree(place / ".venv") == tree(source)


def test_another_content_is_another_copy(tmp_path: Path, source: Path) -> None:
    copies = KeptCopies(tmp_path / "kept")
    first = room(tmp_path, 1)
    copy = copies.bring(source, first / ".venv")
    assert copy is not None
    copies.take_back(copy, first)
    source.rename(later := tmp_path / "later")
    (later / "lib" / "b.py").write_text("later")
    second = room(tmp_path, 2)
    copies.bring(later, second / ".venv")
    assert (second / ".venv" / "lib" / "b.py").read_text() == "later"
    assert list((tmp_path / "kept").iterdir()) == []


def test_two_rooms_at_once_have_two_copies(tmp_path: Path, source: Path) -> None:
    copies = KeptCopies(tmp_path / "kept")
    one, two = room(tmp_path, 1), room(tmp_path, 2)
    made = [copies.bring(source, place / ".venv") for place in (one, two)]
    (one / ".venv" / "lib" / "b.py").write_text("x")
    assert tree(two / ".venv") == tree(source)
    for copy, place in zip(made, (one, two), strict=True):
        assert copy is not None
        copies.take_back(copy, place)
    three = room(tmp_path, 3)
    copies.bring(source, three / ".venv")
    assert tree(three / ".venv") == tree(source)


def test_one_that_is_too_large_or_lies_over_a_folder_is_copied_each_time(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies, place = KeptCopies(tmp_path / "kept"), room(tmp_path, 1)
    (place / ".venv").mkdir()
    (place / ".venv" / "tracked").touch()
    assert copies.bring(source, place / ".venv") is None
    assert (place / ".venv" / "tracked").exists() and (place / ".venv" / "lib").exists()
    monkeypatch.setattr(kept_copies, "MOST_ENTRIES", 3)
    assert copies.bring(source, place / "other") is None
    assert tree(place / "other") == tree(source)


def test_where_much_has_changed_it_is_copied_anew(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_copies, "MOST_REPAIRED", 1)
    copies, place, again = KeptCopies(tmp_path / "kept"), room(tmp_path, 1), room(tmp_path, 2)
    copy = copies.bring(source, place / ".venv")
    assert copy is not None
    for name in FILES:
        (place / ".venv" / name).write_text("x")
    copies.take_back(copy, place)
    copies.bring(source, again / ".venv")
    assert tree(again / ".venv") == tree(source)


def test_what_was_read_in_one_room_is_not_seen_in_the_next(tmp_path: Path, source: Path) -> None:
    copies, seen = KeptCopies(tmp_path / "kept"), []
    for number in range(2):
        place = room(tmp_path, number)
        copy = copies.bring(source, place / ".venv")
        assert copy is not None
        seen.append((place / ".venv" / "lib" / "b.py").stat().st_atime_ns)
        (place / ".venv" / "lib" / "b.py").read_bytes()
        copies.take_back(copy, place)
    assert seen[0] == seen[1]
