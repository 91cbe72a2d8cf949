"""An examination that was killed goes on with the first run that had not ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agentrunner.state.state_model import FileRef
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.proof.kept_runs import KeptRuns
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome

TARGET = Target("test", "pytest -q")


class Runs:
    """Counts what really runs; every second run of anything is red."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self) -> Measured:
        self.asked += 1
        red = self.asked % 2 == 0
        output = FileRef(path="checks/1.txt", size=3, sha256="0" * 64)
        ran = CommandOutcome(int(red), output, "end", None, 0.5, stdout="é", stderr="")
        tests = (TestResult("t.py::a", "failed" if red else "passed", "t.py", message="why"),)
        return Measured(TARGET, ran, Results("pytest", tests), ("a",), ("a", "b"))


async def questions(folder: Path, runs: Runs, step: str = "1", ends: int = 4) -> list[Measured]:
    kept = KeptRuns(folder)
    await kept.begin(step)
    asked = [("old", ()), ("new", ("t.py::a",)), ("new", ("t.py::a",)), ("new", ())]
    return [await kept.run(TARGET, tree, only, runs) for tree, only in asked[:ends]]


async def test_what_has_ended_is_not_run_again_and_is_the_same(tmp_path: Path) -> None:
    runs = Runs()
    first = await questions(tmp_path / "proof", runs, ends=3)
    assert runs.asked == 3 and first[1] != first[2]  # the same question twice is two runs
    again = await questions(tmp_path / "proof", runs)
    assert runs.asked == 4 and again[:3] == first
    assert again[0].results is not None and again[0].results.passed("t.py::a")


async def test_another_step_target_or_a_damaged_file_runs(tmp_path: Path) -> None:
    runs = Runs()
    await questions(tmp_path, runs)
    (cut,) = (path for path in tmp_path.rglob("*-2.json"))
    cut.write_bytes(cut.read_bytes()[:40])
    await questions(tmp_path, runs)
    assert runs.asked == 5
    kept = KeptRuns(tmp_path)
    await kept.begin("1")
    await kept.run(replace(TARGET, timeout_sec=1), "old", (), runs)
    assert runs.asked == 6
    await questions(tmp_path, runs, step="2")
    assert runs.asked == 10 and len(list(tmp_path.iterdir())) == 1


async def test_nothing_is_left_at_the_end_and_files_are_private(tmp_path: Path) -> None:
    await questions(tmp_path, Runs())
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()} == {
        0o600
    }
    await KeptRuns(tmp_path).end()
    assert list(tmp_path.iterdir()) == []


async def test_a_name_that_is_no_text_is_not_kept(tmp_path: Path) -> None:
    kept = KeptRuns(tmp_path)
    await kept.begin("1")

    async def odd() -> Measured:
        one = await Runs()()
        return replace(one, moved=("\udcff",))

    assert (await kept.run(TARGET, "old", (), odd)).moved == ("\udcff",)
    assert list(tmp_path.rglob("*.json")) == []
