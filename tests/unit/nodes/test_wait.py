"""The node that waits: the box rests meanwhile, and is woken however the wait ends."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agentrunner.execution.deps import Clock, Deps, Stopped
from agentrunner.execution.outages import LOOK_SEC
from agentrunner.graph.builder import IDLE, ROUTES
from agentrunner.nodes.guarded import guarded
from agentrunner.nodes.wait import wait
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.run_state import Counters, RunInfo, TaskContext
from agentrunner.state.worker_runs import Wait
from agentrunner.storage.events import EventLog
from agentrunner.storage.run_log import RunLog
from agentrunner.text.redaction import Redactor
from agentrunner.text.times import stamp

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Box:
    """Notes what is done to it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def pause(self) -> None:
        self.told.append("pause")

    async def unpause(self) -> None:
        self.told.append("unpause")


class Steps(Clock):
    """Time that passes where somebody sleeps."""

    def __init__(self, box: Box) -> None:
        self.seconds = 0.0
        self.box = box
        self.stop_at = float("inf")
        self.stop = asyncio.Event()

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        assert 0 < seconds <= LOOK_SEC
        self.box.told.append(f"sleep {seconds:g}")
        self.seconds += seconds
        if self.seconds >= self.stop_at:
            self.stop.set()
            await asyncio.Event().wait()


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def clock(box: Box) -> Steps:
    return Steps(box)


async def waited(tmp_path: Path, clock: Steps, **more: Any) -> Any:
    unused = cast("Any", None)
    deps = Deps(
        spec=unused, folder=unused, snapshots=unused, ledger=unused, verifier=unused,
        prover=unused, panel=unused, members=unused, sandbox=cast("Any", clock.box),
        patterns={}, environ={}, repository=unused,
        log=RunLog(tmp_path / "log.jsonl"), clock=clock, stop=clock.stop,
        events=EventLog(tmp_path / "events.jsonl", "probe-0000", clock.now),
        redactor=Redactor({}),
    )  # fmt: skip
    asked = Wait(until=stamp(NOON + timedelta(seconds=12)), since=stamp(NOON), reason="r")
    state = TaskContext(
        run=RunInfo(run_id="probe-0000", task_id="probe", title="t", repo="/r"),
        state=TaskState.FIXING,
        counters=Counters(wall_sec=7.0),
        wait=asked.model_copy(update=more),
    )
    step = guarded(wait, ROUTES["wait"], idle="wait" in IDLE)
    return await step(state, runtime=cast("Any", type("Runtime", (), {"context": deps})))


async def test_the_box_rests_and_no_time_is_counted(tmp_path: Path, box: Box, clock: Steps) -> None:
    command = await waited(tmp_path, clock, back_to="decide")
    assert (command.goto, command.update) == ("decide", {"wait": None})
    assert box.told == ["pause", "sleep 5", "sleep 5", "sleep 2", "unpause"]


@pytest.mark.parametrize("until", ["2026-11-21T11:00:00Z", "2026-11-21T12:00:00.000Z", "never"])
async def test_a_time_that_has_come_is_not_waited_for(
    tmp_path: Path, box: Box, clock: Steps, until: str
) -> None:
    command = await waited(tmp_path, clock, until=until)
    assert command.goto == "run_worker"
    assert box.told == ["pause", "unpause"]


async def test_a_stop_ends_it_at_once_and_wakes_the_box(
    tmp_path: Path, box: Box, clock: Steps
) -> None:
    clock.stop_at = 5.0
    with pytest.raises(Stopped):
        await waited(tmp_path, clock)
    assert box.told == ["pause", "sleep 5", "unpause"]
