"""Answers that a planner is asked about once: a question, work after the end, a bare failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from agentrunner import registry
from agentrunner.config.spec import TaskSpec
from agentrunner.planners.base import PlannerRequest, Reply
from tests.kit.metas import reply
from tests.kit.project import Project
from tests.kit.runs import FIX, NO_FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

SUITE = {"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}}
JUDGED = {"id": "AC-2", "description": "It is well written."}
WORK, DONE, ASK = "run_worker", "mark_complete", "ask_human"


class Model:
    """Plans what its class says, and takes its decisions in order; the last one for ever."""

    kind = "model"
    plan: ClassVar[list[dict[str, Any]]] = []
    decides: ClassVar[list[str]] = []
    judges: ClassVar[list[dict[str, str]]] = []
    """Verdicts about AC-1, in order; passed where none is left."""
    asked: ClassVar[list[PlannerRequest]] = []

    def __init__(self, spec: TaskSpec, environ: Any) -> None:
        self.worker = spec.runner.worker.kind

    def describe(self) -> str:
        return "model"

    async def complete(self, request: PlannerRequest) -> Reply:
        Model.asked.append(request)
        if request.type == "plan_task":
            return reply("plan_task", {"acceptance_criteria": Model.plan})
        if request.type == "completion_assessment":
            verdicts = [{"id": one["id"], "status": "passed"} for one in Model.plan]
            if Model.judges:
                verdicts[0] |= Model.judges.pop(0)
            return reply("completion_assessment", {"summary": "Met.", "by_criterion": verdicts})
        action = Model.decides.pop(0) if len(Model.decides) > 1 else Model.decides[0]
        payload: dict[str, Any] = {"decision": {"action": action, "reason": f"{action} it is."}}
        if action == WORK:
            prompt = f"Fix it, number {len(Model.asked)}."
            payload["worker_call"] = {"worker_type": self.worker, "mode": "exec", "prompt": prompt}
        return reply("next_action", payload)

    async def close(self) -> None:
        pass


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setitem(registry.PLANNERS, "model", f"{__name__}:Model")
    monkeypatch.setattr(Model, "asked", [])
    monkeypatch.setattr(Model, "plan", [SUITE])
    monkeypatch.setattr(Model, "judges", [])
    return Run(Project.make(tmp_path, SMALL))


def start(run: Run, decides: list[str], worker: str = FIX, **meta: Any) -> list[str]:
    """Run it with these decisions; return what was asked for, in order."""
    Model.decides = decides
    run.start([], worker, test=TEST, runner={"meta": {"kind": "model", "max_loops": 5, **meta}})
    return [one.type for one in Model.asked]


def refused(run: Run) -> list[str]:
    return [one.data["error"] for one in run.log("meta_call") if one.data["error"]]


@pytest.mark.parametrize("goes_on", [WORK, ASK])
def test_who_goes_on_is_asked_once_which_it_means(run: Run, goes_on: str) -> None:
    calls = start(run, [WORK, goes_on, DONE])
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 1
    assert calls == ["plan_task", *["next_action"] * 3, "completion_assessment"]
    (why,) = refused(run)
    assert f"you wanted {goes_on}" in why and "but all that is executed passes" in why


def test_who_keeps_to_it_has_its_way_and_asks_the_person(run: Run) -> None:
    start(run, [WORK, ASK, ASK])
    assert run.result["waiting"]["kind"] == "ask_human"


def test_an_order_that_found_nothing_to_change_is_followed_by_codes_own_request(run: Run) -> None:
    calls = start(run, [WORK])
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 2
    assert calls == ["plan_task", *["next_action"] * 4, "completion_assessment"]
    reasons = [one.data["reason"] for one in run.log("decision")]
    assert "asked for by code" in reasons[-1] and "asked for by code" in run.note()


def test_a_worker_that_failed_has_not_found_that_nothing_is_to_change(run: Run) -> None:
    start(run, [WORK], worker=f"test -e once && exit 3; touch once; {FIX}")
    assert run.result["worker_runs"] >= 2
    assert not any("asked for by code" in one.data["reason"] for one in run.log("decision"))


def test_nobody_is_sent_to_a_worker_where_no_loop_is_left(run: Run) -> None:
    start(run, [WORK, ASK], max_loops=0)
    assert run.result["waiting"]["kind"] == "ask_human" and refused(run) == []


def test_who_asks_a_person_is_asked_once_whether_nobody_else_says_it(run: Run) -> None:
    start(run, [ASK, WORK, DONE])
    assert run.ending == ("COMPLETE", "complete", 0)
    (why,) = refused(run)
    assert why.startswith("questioned at decision.action")
    assert "neither the PRD nor the repository says" in why


def test_a_question_that_is_kept_is_put(run: Run) -> None:
    start(run, [ASK, ASK, WORK, DONE])
    assert run.result["waiting"]["kind"] == "ask_human" and len(refused(run)) == 1


def test_who_asks_for_completion_of_what_is_red_is_asked_once(run: Run) -> None:
    worker = f"test -e .once && {FIX} || touch .once"
    calls = start(run, [WORK, DONE, WORK, DONE], worker)
    assert run.ending == ("COMPLETE", "complete", 0)
    (why,) = refused(run)
    assert "completion is refused while it is" in why
    assert calls == ["plan_task", *["next_action"] * 4, "completion_assessment"]


def test_nobody_is_asked_while_a_test_is_red(run: Run) -> None:
    start(run, [WORK], NO_FIX, max_loops=2)
    assert run.result["state"] == "FAILED" and refused(run) == []


def test_nobody_is_asked_where_a_criterion_is_left_to_a_judgement(run: Run) -> None:
    Model.plan = [SUITE, JUDGED]
    start(run, [WORK, WORK, DONE])
    assert refused(run) == []
    assert run.result["worker_runs"] == 2


def test_a_person_s_words_are_more_than_the_criteria(run: Run) -> None:
    start(run, [ASK, ASK, WORK, WORK, DONE])
    run.answer("Keep the old name, too.")
    assert len(refused(run)) == 1
    assert run.result["worker_runs"] == 2


def test_a_judge_that_fails_what_was_shown_without_a_word_is_asked_once_for_one(run: Run) -> None:
    Model.judges = [{"status": "failed", "comment": " "}]
    calls = start(run, [WORK, DONE])
    assert run.ending == ("COMPLETE", "complete", 0)
    assert calls[-2:] == ["completion_assessment"] * 2
    assert "you failed AC-1, which what was run has shown" in refused(run)[0]


def test_a_judge_that_says_why_it_fails_what_was_shown_is_not_asked_again(run: Run) -> None:
    Model.judges = [{"status": "failed", "comment": "It adds no fractions."}]
    calls = start(run, [WORK, DONE, ASK, ASK])
    assert calls.count("completion_assessment") == 1


def test_a_failure_that_is_kept_without_a_word_holds(run: Run) -> None:
    Model.judges = [{"status": "failed"}] * 2
    calls = start(run, [WORK, DONE, ASK, ASK])
    assert calls.count("completion_assessment") == 2
    assert run.ending[0] != "COMPLETE" and len(refused(run)) == 2
