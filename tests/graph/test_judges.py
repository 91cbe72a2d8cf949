"""Completion judged by others than the planner, and by several."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from agentrunner import registry
from agentrunner.config.spec import TaskSpec
from agentrunner.planners.base import PlannerRequest, Reply
from tests.kit.metas import assess, finish, plan, reply, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

JUDGED = {"id": "AC-2", "description": "It is well written."}


class Judge:
    """Says of AC-2 what its class says; by its model's name it is told apart."""

    kind = "judge"
    says: ClassVar[dict[str, bool]] = {}
    asked: ClassVar[list[str]] = []

    def __init__(self, spec: TaskSpec, environ: Any) -> None:
        self.name = str(spec.runner.meta.model)

    def describe(self) -> str:
        return f"judge {self.name}"

    async def complete(self, request: PlannerRequest) -> Reply:
        Judge.asked.append(self.name)
        passed = Judge.says[self.name]
        verdict = {"id": "AC-2", "status": "passed" if passed else "failed", "comment": self.name}
        payload = {
            "summary": f"{self.name} looked.",
            "all_criteria_satisfied": passed,
            "by_criterion": [{"id": "AC-1", "status": "passed"}, verdict],
        }
        return reply("completion_assessment", payload)

    async def close(self) -> None:
        pass


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setitem(registry.PLANNERS, "judge", f"{__name__}:Judge")
    monkeypatch.setattr(Judge, "asked", [])
    return Run(Project.make(tmp_path, SMALL))


PLAN = plan({"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}}, JUDGED)


def judged_by(says: dict[str, bool], votes: int) -> dict[str, Any]:
    Judge.says = says
    candidates = [{"kind": "judge", "model": name} for name in says]
    return {
        "assess": {"votes": votes},
        "profiles": {"assess": {"candidates": candidates}},
        "meta": {"max_loops": 0},
    }


def test_votes_go_round_and_are_calls_of_their_own(run: Run) -> None:
    runner = judged_by({"mild": True, "kind": True}, votes=3)
    run.start([PLAN, work(), finish()], FIX, test=TEST, runner=runner)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert Judge.asked == ["mild", "kind", "mild"]
    assert run.calls() == [
        "plan_task",
        "next_action",
        "next_action",
        *["completion_assessment"] * 3,
    ]
    named = [record.data["candidate"] for record in run.log("meta_call")]
    assert named == ["script"] * 3 + ["judge:mild", "judge:kind", "judge:mild"]
    assert len(run.log("assessment")) == 1


def test_one_no_outweighs_the_others(run: Run) -> None:
    runner = judged_by({"mild": True, "strict": False}, votes=3)
    run.start([PLAN, work(), finish(), finish()], FIX, test=TEST, runner=runner)
    assert run.result["state"] != "COMPLETE"
    (assessment, *_) = [record.data for record in run.log("assessment")]
    assert (assessment["satisfied"], assessment["failed"]) == (False, ["AC-2"])
    assert assessment["comments"]["AC-2"] == "strict"
    assert assessment["summary"] == "2 of 3 judges are satisfied. strict looked."


def test_the_planner_judges_where_nobody_else_is_named(run: Run) -> None:
    script = [PLAN, work(), finish(), *[assess(passed=("AC-1", "AC-2"))] * 2]
    run.start(script, FIX, test=TEST, runner={"assess": {"votes": 2}})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.calls()[-2:] == ["completion_assessment"] * 2


def test_whether_all_are_met_is_concluded_and_not_asked_for(run: Run) -> None:
    """A real, small model passed each criterion and said that not all were met."""
    yes = assess(passed=("AC-1", "AC-2"))
    run.start([PLAN, work(), finish(), yes], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)


def test_who_says_so_all_the_same_is_believed_in_a_no(run: Run) -> None:
    torn = assess(passed=("AC-1", "AC-2"))
    torn["reply"]["payload"]["all_criteria_satisfied"] = False
    run.start([PLAN, work(), finish(), torn, finish()], FIX, test=TEST)
    assert run.result["state"] != "COMPLETE"
