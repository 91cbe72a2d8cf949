"""Waits for a quota or a provider: a clock that moves only where somebody waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentrunner.execution.deps import Clock
from agentrunner.text.times import stamp
from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import SMALL, Run

START = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
HAPPY = [plan(), work(worker="faulty"), finish(), assess()]


class VirtualClock(Clock):
    """Time that passes only where somebody waits."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds
        await asyncio.sleep(0)


def at(seconds: float) -> str:
    return stamp(START + timedelta(seconds=seconds))


@pytest.fixture
def run(tmp_path: Path, faulty_worker: None) -> Run:
    return Run(Project.make(tmp_path, SMALL))


@pytest.fixture
def clock(run: Run) -> VirtualClock:
    clock = VirtualClock()
    run.adjust = lambda options: replace(options, clock=clock)
    return clock


def waits(run: Run) -> list[tuple[str, str, str]]:
    return [(w["until"], w["role"], w["candidate"]) for w in run.project.told("waiting")]


def tries(run: Run) -> list[tuple[str, str]]:
    return [(record.key, str(record.data["outcome"])) for record in run.log("worker_run")]
