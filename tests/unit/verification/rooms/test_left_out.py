"""What git ignores and rooms lack: told of where a red command names it, and nowhere else."""

from pathlib import Path

import pytest

from agentrunner.git import ignore
from agentrunner.git.snapshots import Snapshots
from agentrunner.state.run_state import CheckOutcome, RedTest, TestOutcome
from agentrunner.verification.rooms.left_out import LeftOut, words_of_red
from agentrunner.verification.rooms.room import Rooms
from agentrunner.verification.rooms.sealed import Sealed
from tests.kit.files import write
from tests.kit.repository import uncommitted


class Place:
    """A repository with ignored files that are too large to be kept, sealed."""

    def __init__(self, place: Path) -> None:
        files = {
            ".gitignore": "*.db\n*.cov\ndist/\n__pycache__/\n", "app.py": "1\n",
            "old.db": "x" * 200, "dist/app.js": "1\n", "__pycache__/app.pyc": "1\n",
        }  # fmt: skip
        self.repo = uncommitted(place / "repo", files)
        self.snapshots = Snapshots(place / "store", self.repo)
        sealed = Sealed(place / "sealed", self.repo)
        self.rooms = Rooms(self.snapshots, sealed, place / "rooms", mounts=False)
        self.snapshots.take()
        sealed.seal(self.snapshots)

    def put(self, name: str, text: str) -> None:
        write(self.repo, {name: text})

    def changed(self, said: str) -> list[str]:
        self.snapshots.take()
        return LeftOut(self.rooms).changed(said)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(ignore, "KEPT_FILE", 100)
    return Place(tmp_path)


def test_files_and_folders_that_changed_and_are_named(place: Place) -> None:
    place.put("old.db", "y" * 300)
    place.put("new.db", "y" * 200)
    place.put("dist/app.js", "22\n")
    place.put("__pycache__/app.pyc", "22\n")
    place.put("all.cov", "y" * 200)
    said = "cannot open data/old.db\nno such file: new.db\ndist/app.js:1 is not a function"
    assert place.changed(said) == ["new.db", "old.db", "dist"]
    assert place.changed("assert 1 == 2") == []


@pytest.mark.parametrize("said", ["bold.db", "old.dbx", "mydist/app.js", "dist"])
def test_other_names_are_other_files(place: Place, said: str) -> None:
    place.put("old.db", "y" * 300)
    place.put("dist/app.js", "22\n")
    assert place.changed(said) == []


def test_what_did_not_change_is_not_called_changed(place: Place) -> None:
    assert place.changed("old.db and dist/app.js") == []
    assert LeftOut(place.rooms).named("no such file: old.db") == ["old.db"]


def test_a_folder_that_is_new_is_changed(place: Place) -> None:
    place.put("dist/app.js", "1\n")
    (place.repo / ".gitignore").write_text("*.db\ndist/\nmade/\n__pycache__/\n")
    place.put("made/x", "1\n")
    assert "made" not in place.changed("made/x")  # the rules of before say nothing of it


def test_only_red_commands_speak() -> None:
    red = TestOutcome(command="x", exit_code=1, tail="T", red=[RedTest(name="a", message="M")])
    green = TestOutcome(command="x", exit_code=0, tail="T")
    failed = CheckOutcome(criterion_id="AC-1", what="x", outcome="failed", detail="D")
    passed = CheckOutcome(criterion_id="AC-2", what="x", outcome="passed", detail="E")
    assert words_of_red(red, [failed, passed]) == "T\nM\nD"
    assert words_of_red(green, [passed]) == "" == words_of_red(None, [])
