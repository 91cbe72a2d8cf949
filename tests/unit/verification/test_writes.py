"""What each command wrote on the tree before the run, told apart in one room."""

from pathlib import Path

from agentrunner.state.run_state import Baseline, CheckOutcome
from agentrunner.verification.proof.proving import written_before
from agentrunner.verification.rooms.decision_sandbox import CopyOfRepo
from agentrunner.verification.rooms.room import Room
from agentrunner.verification.target import TEST


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
