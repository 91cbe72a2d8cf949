"""A judge who passes what nothing else decides is asked for the line that does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from agentrunner import registry
from agentrunner.config.spec import TaskSpec
from agentrunner.planners.base import PlannerRequest, Reply
from tests.kit.metas import finish, plan, reply, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

GOOD = "+    return a + b"


class Quoting:
    """Passes each criterion; quotes what its class says."""

    kind = "quoting"
    is_chat_model = True
    quote: ClassVar[str] = ""
    asked: ClassVar[list[PlannerRequest]] = []

    def __init__(self, spec: TaskSpec, environ: Any) -> None:
        self.judged = 0

    def describe(self) -> str:
        return "quoting"

    async def complete(self, request: PlannerRequest) -> Reply:
        self.asked.append(request)
        if '"quote"' in str(request.schema).replace("'", '"'):
            return reply(request.type, {"quotes": [{"id": "ac_2", "quote": self.quote}]})
        verdicts = [{"id": one, "status": "passed"} for one in ("AC-1", "AC-2")]
        payload = {"summary": "All met.", "all_criteria_satisfied": True}
        return reply(request.type, {**payload, "by_criterion": verdicts})

    async def close(self) -> None:
        pass


PLAN = plan(
    {"id": "AC-1", "description": "It adds.", "check": "grep -q 'a + b' calc.py"},
    {"id": "AC-2", "description": "It is well written."},
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setitem(registry.PLANNERS, "quoting", f"{__name__}:Quoting")
    monkeypatch.setattr(Quoting, "asked", [])
    return Run(Project.make(tmp_path, SMALL))


def judged(run: Run, quote: str, **meta: Any) -> list[Any]:
    """Play a run; return the judgements."""
    Quoting.quote = quote
    runner = {
        "assess": {"quotes": True},
        "profiles": {"assess": {"candidates": [{"kind": "quoting", "model": "m"}]}},
        "meta": {"max_loops": 0, **meta},
    }
    run.start([PLAN, work(), finish(), finish()], FIX, test=TEST, runner=runner)
    return [record.data for record in run.log("assessment")]


@pytest.mark.series(2)
@pytest.mark.parametrize("quote", [GOOD, "return a + b", "```\n" + GOOD + "\n```"])
def test_a_line_that_is_there_lets_the_judgement_stand(run: Run, quote: str) -> None:
    (assessment,) = judged(run, quote)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert assessment["passed"] == ["AC-1", "AC-2"]
    assert run.calls()[-2:] == ["completion_assessment"] * 2
    assert run.result["meta_calls"] == len(run.log("meta_call"))
    first, second = Quoting.asked
    text = "\n".join(message.content for message in second.messages)
    assert GOOD in text and "It is well written." in text and "AC-1" not in text
    assert len(text) < len("".join(message.content for message in first.messages)) / 3


@pytest.mark.series(2)
@pytest.mark.parametrize("quote", ["", "+", "return a * b", "The change adds both numbers."])
def test_what_stands_nowhere_meets_nothing(run: Run, quote: str) -> None:
    assessment, *_ = judged(run, quote)
    assert run.result["state"] != "COMPLETE"
    assert (assessment["passed"], assessment["failed"]) == (["AC-1"], ["AC-2"])
    assert assessment["satisfied"] is False
    assert "found no line" in assessment["comments"]["AC-2"]


def test_who_is_shown_no_code_quotes_none(run: Run) -> None:
    (assessment,) = judged(run, "", see="nothing")
    assert assessment["passed"] == ["AC-1", "AC-2"] and len(Quoting.asked) == 1
