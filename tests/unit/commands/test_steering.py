"""The work on a plan, begun, paused and stopped while somebody talks."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentrunner.commands.plan_place import Setting
from agentrunner.commands.steering import PlanSteering, of_tasks
from agentrunner.errors import UsageError
from agentrunner.plans.execution.plan_settings import PlanSettings
from agentrunner.results import PlanQuestionEntry, PlanResult
from agentrunner.screens.plan_events import end_line, event_line


class Work:
    """A plan that is carried out until it is told to end."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = asyncio.Event()
        self.may_start: Callable[[], bool] = lambda: False
        self.error: Exception | None = None

    async def __call__(self, halt: asyncio.Event, may_start: Callable[[], bool]) -> str:
        self.begun += 1
        self.may_start = may_start
        if self.error:
            raise self.error
        ends = [asyncio.create_task(one.wait()) for one in (halt, self.ended)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()
        return "It has ended."


class Told(list[str]):
    """What a person was told, and that there is something."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()

    def __call__(self, text: str) -> None:
        self.append(text)
        self.heard.set()


async def test_it_is_begun_paused_gone_on_with_and_stopped() -> None:
    work, told = Work(), Told()
    steering = PlanSteering(work, lambda: "the tree", told)
    assert not steering.running and steering.pause() == "Nothing is under way."
    assert await steering.stop() == "Nothing is under way."
    assert steering.start().startswith("The plan is under way.")
    await asyncio.sleep(0)
    assert steering.running and work.may_start()
    assert steering.start() == "The plan is under way already."
    steering.pause()
    assert not work.may_start() and "Paused" in steering.status()
    assert steering.resume() == "Tasks are begun again."
    assert work.may_start() and steering.status() == "the tree"
    steering.pause()
    assert steering.start() == "Tasks are begun again."
    assert (await steering.stop()).startswith("Stopped.")
    assert not steering.running and told == []
    assert steering.resume().startswith("The plan is under way.")
    await asyncio.sleep(0)
    assert work.begun == 2 and steering.running
    work.ended.set()
    await told.heard.wait()
    assert told == ["It has ended."]


async def test_what_keeps_it_from_going_on_is_told() -> None:
    work, told = Work(), Told()
    work.error = UsageError(
        "There is no plan of this repository.", remedy="say what you want, or /undo"
    )
    steering = PlanSteering(work, str, told)
    steering.start()
    await told.heard.wait()
    lines = (
        "The plan cannot continue: There is no plan of this repository. Try: say what you",
        "want, or /undo",
    )
    assert told == ["\n".join(lines)]


async def test_a_disk_that_fails_is_told_of_as_well() -> None:
    work, told = Work(), Told()
    work.error = OSError(errno.ENOSPC, "No space left on device")
    PlanSteering(work, str, told).start()
    await told.heard.wait()
    assert "There is no room left in /" in " ".join(told[0].split())


def test_who_talks_does_not_take_the_place_of_who_steers_the_tasks() -> None:
    place = Path("/shop")
    setting = Setting(planner="codex-cli", overrides=("runner.worker.model=m",))
    fresh = of_tasks(PlanSettings(base_dir="/shop"), setting, {}, place)
    assert fresh.options == {"meta": "codex-cli"}
    known = PlanSettings(base_dir="/shop", options={"meta": "checklist"})
    shared = of_tasks(known, setting, {"test": "make test", "worker": None}, place)
    assert shared.options == {"meta": "checklist", "test": "make test"}
    assert shared.overrides == {"runner.worker.model": "runner.worker.model=m"}


def test_a_model_is_that_of_who_it_was_named_for() -> None:
    place = Path("/shop")
    setting = Setting(planner="codex-cli", planner_model="gpt-5")
    fresh = of_tasks(PlanSettings(base_dir="/shop"), setting, {"model": "m"}, place)
    assert fresh.options == {"meta": "codex-cli", "planner_model": "gpt-5", "model": "m"}
    named = PlanSettings(base_dir="/shop", options={"meta": "chat", "planner_model": "a:b"})
    assert of_tasks(named, setting, {}, place).options == named.options
    for other, kept in (("chat", True), ("mock", False)):
        again = named.with_given({"meta": other}, None, [], place)
        assert ("planner_model" in again.options) == kept


def test_each_event_is_one_harmless_line() -> None:
    evil = "a\x1b]52;c;aGk=\x07b\r\n\u202ec"
    events: list[dict[str, Any]] = [
        {"event": "plan_started", "tasks": ["TASK-0001"], "notices": [evil]},
        {"event": "plan_task", "task_id": "TASK-0001", "status": "RUNNING", "detail": evil},
        {
            "event": "plan_question",
            "task_id": "T-1",
            "question": 3,
            "text": evil,
            "status": "BLOCKED",
        },
        {"event": "plan_fixing", "task_id": "TASK-0001", "evidence": evil},
        {"event": "plan_landed", "task_id": "TASK-0001", "commit": "f" * 40},
        {"event": "plan_published", "branch": evil, "commit": "f" * 40},
        {"event": "warning", "code": "x", "message": evil},
    ]
    for event in events:
        line = event_line(event)
        assert line and not set("\x1b\x07\r\n\u202e") & set(line)
    assert "agentrunner plan answer 3 TEXT" in event_line(events[2])
    assert "(/answer 3 TEXT)" in event_line(events[2], chat=True)
    assert event_line({"event": "decision"}) == ""


def test_what_a_question_says_is_not_said_again_of_its_task() -> None:
    text = "The planner gave no answer.\nWhich model?"
    question = {"event": "plan_question", "task_id": "TASK-0001", "question": 3, "text": text}
    blocked = {"event": "plan_task", "task_id": "TASK-0001", "status": "BLOCKED", "detail": text}
    asked = event_line({**question, "status": "BLOCKED"}, chat=True)
    assert event_line(blocked, before=asked) == ""
    assert event_line(blocked, before="TASK-0001 running").endswith("Which model?")


def test_the_end_tells_what_is_left() -> None:
    tasks = {"TASK-0001": "COMPLETE", "TASK-0002": "COMPLETE", "TASK-0003": "BLOCKED"}
    result = PlanResult(
        exit_code=4,
        tasks=tasks,
        branch="agentrunner/shop",
        questions=[PlanQuestionEntry(id=1, task_id="TASK-0003", text="Which?")],
        budget_spent="usd",
    )
    assert end_line(result) == (
        "The plan run has ended: 2 complete, 1 waiting for you. Branch agentrunner/shop. "
        "1 question for you. The budget usd is spent."
    )
