"""Whole runs with the planner `openai-chat` over HTTP, and what becomes of them when it fails."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.engine.runs import start
from agentrunner.execution.deps import Clock
from agentrunner.planners.retry import BACKOFF_SEC
from tests.kit.bwrap import require_bwrap
from tests.kit.metas import DONE, YES, reply, run_worker
from tests.kit.model_server import Fault, ModelServer, ScriptItem
from tests.kit.process import living
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST

KEY = "sk-planner-" + "4f1c" * 12
PLAN = reply("plan_task", {"acceptance_criteria": [{"id": "AC-1", "description": "It adds."}]}).text
WORK = reply("next_action", run_worker("command")).text


@dataclass
class Hurried(Clock):
    """Does not wait, and tells how long it would have."""

    waits: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@dataclass
class Planned:
    """A project whose planner is at `base_url`."""

    project: Project
    clock: Hurried = field(default_factory=Hurried)

    async def run(self, base_url: str) -> dict[str, Any]:
        meta = {"kind": "openai-chat", "model": "planner", "base_url": base_url}
        spec = self.project.spec(FIX, test=TEST, runner={"meta": meta, "budget": {"wait_sec": 0}})
        environ = {**os.environ, "OPENAI_API_KEY": KEY}
        return (
            await start(spec, replace(self.project.options(), environ=environ, clock=self.clock))
        ).as_dict()

    async def played(self, script: Sequence[ScriptItem]) -> dict[str, Any]:
        """Run against a server with this script; all of it must be asked for."""
        with ModelServer(chat_script=script) as server:
            result = await self.run(server.base_url)
        assert server.script_left == 0
        return result

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Type and first word of the error of every call."""
        return [
            (call["type"], (call["error"] or "").partition(" ")[0])
            for call in self.project.told("meta_call")
        ]


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    require_bwrap()
    return Planned(Project.make(tmp_path, SMALL))


async def test_a_rate_limit_is_waited_for_as_long_as_the_server_says(planned: Planned) -> None:
    limits = [Fault(429, "slow down", {"Retry-After": seconds}) for seconds in ("0", "7")]
    result = await planned.played([PLAN, *limits, WORK, DONE, YES])
    assert (result["state"], result["exit_code"]) == ("COMPLETE", 0)
    assert planned.clock.waits == [0, 7]
    assert planned.calls == [
        ("plan_task", ""),
        ("next_action", "OpenAI"),
        ("next_action", "OpenAI"),
        ("next_action", ""),
        ("next_action", ""),
        ("completion_assessment", ""),
    ]
    assert result["meta_calls"] == 6
    assert result["usage"]["meta"] == {"input_tokens": 4 * 1200, "output_tokens": 4 * 34}


async def test_garbage_four_times_waits_for_a_person_before_any_work(planned: Planned) -> None:
    result = await planned.played(
        ["I think we are done!", "type: next_action", "{}", f'{{"type": "{KEY}"}}']
    )
    assert (result["state"], result["exit_code"]) == ("PLANNING", 4)
    assert result["waiting"]["kind"] == "planner"
    assert "no answer can be used" in result["waiting"]["text"]
    assert [kind for kind, error in planned.calls if error] == ["plan_task"] * 4
    assert result["usage"]["meta"]["input_tokens"] == 4 * 1200
    assert planned.project.told("worker_started") == []
    assert KEY not in str(planned.project.events)
    note = Path(result["note"]).read_text(encoding="utf-8")
    assert "gave no usable answer" in note and KEY not in note
    assert KEY not in str(result)


async def test_garbage_once_is_asked_for_again_with_its_fault(planned: Planned) -> None:
    with ModelServer(chat_script=[PLAN, "Let me think.", WORK, DONE, YES]) as server:
        result = await planned.run(server.base_url)
        again = str(server.requests[2].body["messages"])
    assert result["state"] == "COMPLETE"
    assert "Let me think." in again
    assert planned.project.read("calc.py").endswith("return a + b\n")


@pytest.mark.parametrize("fault", [Fault(500, "broken"), Fault()], ids=["500", "cut"])
async def test_a_server_that_keeps_failing_is_asked_about(planned: Planned, fault: Fault) -> None:
    result = await planned.played([fault] * 4)
    assert (result["state"], result["exit_code"]) == ("PLANNING", 4)
    assert result["waiting"]["kind"] == "planner"
    assert planned.clock.waits == list(BACKOFF_SEC)


async def test_a_refused_key_is_not_tried_again(planned: Planned) -> None:
    result = await planned.played([Fault(401, f"Incorrect API key provided: {KEY}")])
    assert (result["state"], result["exit_code"]) == ("PLANNING", 5)
    assert planned.clock.waits == []
    asked = result["waiting"]["text"]
    assert "401" in asked and "OPENAI_API_KEY" in asked and "Incorrect" not in asked
    assert KEY not in str(planned.project.events)


async def test_a_server_that_is_gone_is_asked_about_after_three_retries(planned: Planned) -> None:
    with ModelServer() as server:
        gone = server.base_url
    result = await planned.run(gone)
    assert (result["state"], result["exit_code"]) == ("PLANNING", 4)
    assert planned.clock.waits == list(BACKOFF_SEC)
    assert result["meta_calls"] == 4
    assert "cannot be reached" in Path(result["note"]).read_text(encoding="utf-8")
    assert living(planned.project.state_dir.parent) == {}


async def test_a_server_that_goes_away_in_mid_run_leaves_the_work_and_the_question(
    planned: Planned,
) -> None:
    result = await planned.played([PLAN, WORK, *[Fault(503, "gone")] * 4])
    assert (result["state"], result["exit_code"]) == ("VALIDATING", 4)
    assert result["waiting"]["kind"] == "planner"
    assert result["changed_files"] == ["calc.py"]
    assert result["test"]["exit_code"] == 0
