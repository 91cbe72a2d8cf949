"""How a command's first run on the old tree chooses the way in which it reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from agentrunner.state.state_model import FileRef
from agentrunner.storage.run_folder import RunFolder
from agentrunner.verification.measure import PLAIN, Measurer
from agentrunner.verification.results.model import ReadFile, Results, TestResult
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome, DecisionSandbox
from agentrunner.verification.rooms.room import Room
from agentrunner.verification.target import Measured, Target


class BrokenByTheFirst(Measurer):
    """Runs nothing: the strongest reporter breaks the tool, and the next one reports."""

    async def run(
        self, target: Target, room: Room, read: ReadFile, *, only: Sequence[str] = ()
    ) -> Measured:
        means = self.means.get(target.id, 0)
        output = FileRef(path="output", sha256="", size=0)
        ran = CommandOutcome(4 if means == 0 else 1, output, "", None, 0.1)
        if means in (0, PLAIN):
            return Measured(target, ran)
        tests = (
            TestResult(name="test_a.py::test_mean", outcome="passed"),
            TestResult(name="test_a.py::test_mean_of_nothing", outcome="failed"),
        )
        return Measured(target, ran, Results("pytest", tests))


class UnchangedRoom:
    def from_now(self, ignored: list[str]) -> UnchangedRoom:
        return self


async def test_a_check_of_one_test_is_decided_by_it_also_where_a_weaker_means_reports(
    tmp_path: Path,
) -> None:
    sandbox = cast("DecisionSandbox", None)
    measurer = BrokenByTheFirst(sandbox, RunFolder(tmp_path), (), list[str], mounts=False)
    target = Target("C1", "python -m pytest -k test_mean", test="test_mean")
    room = cast("Room", UnchangedRoom())
    measured = await measurer.find_reporter(target, room, lambda path: None)
    assert measurer.means == {"C1": 1}
    assert measured.results is not None
    assert [one.name for one in measured.results.tests] == ["test_a.py::test_mean"]
    assert measured.passed
