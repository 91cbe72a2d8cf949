"""What each command wrote on the tree before the run, told apart in one room."""

import os
from pathlib import Path

from agentrunner.git.snapshots import Snapshots
from agentrunner.state.run_state import Baseline, CheckOutcome
from agentrunner.verification.evidence.target import TEST
from agentrunner.verification.proof.proving import written_before
from agentrunner.verification.rooms.decision_sandbox import CopyOfRepo
from agentrunner.verification.rooms.room import Room, Rooms
from agentrunner.verification.rooms.sealed import Sealed
from tests.kit.repository import uncommitted


def test_what_was_written_before_a_command_is_not_its_own(tmp_path: Path) -> None:
    room = Room("tree", CopyOfRepo(tmp_path, ())).from_now([])
    (tmp_path / "a.txt").write_text("by the first command")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/x").write_text("ignored")
    second = room.from_now(["build"])
    (tmp_path / "b.txt").write_text("by the second one")
    (tmp_path / "build/y").write_text("ignored")
    assert room.written(["build"]) == ["a.txt", "b.txt"]
    assert second.written(["build"]) == ["b.txt"]
    (tmp_path / "a.txt").unlink()
    assert "a.txt" not in second.from_now([]).clock


async def test_a_command_may_leave_folders_a_thousand_deep(tmp_path: Path) -> None:
    repo = uncommitted(tmp_path / "repo", {"app.py": "1\n"})
    snapshots, sealed = Snapshots(tmp_path / "store", repo), Sealed(tmp_path / "sealed", repo)
    rooms = Rooms(snapshots, sealed, tmp_path / "rooms", mounts=False)
    tree = snapshots.take().tree
    sealed.seal(snapshots)
    async with rooms.open(tree) as room:
        below = str(room.copy.path)
        for _ in range(1_500):
            below += "/d"
            os.mkdir(below)  # noqa: PTH102  (`parents` calls itself)
        Path(below, "left.txt").touch()
        (path,) = room.written([])
        assert path.endswith("/d/left.txt")
    assert not any((tmp_path / "rooms").glob("*/*"))


def test_each_check_has_its_own_writes() -> None:
    checks = [
        CheckOutcome(criterion_id="AC-1", what="sh a.sh", outcome="failed", writes=["a.txt"]),
        CheckOutcome(criterion_id="AC-2", what="sh b.sh", outcome="passed"),
    ]
    baseline = Baseline(tree="1", test_writes=["t.txt"], check_outcomes=checks)
    assert written_before(baseline) == {
        "AC-1": frozenset({"a.txt"}),
        "AC-2": frozenset(),
        TEST: frozenset({"t.txt"}),
    }
