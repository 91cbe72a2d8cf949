"""Servers, clocks and tasks for the tests of the planner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from agentrunner.config.agents import PlannerSpec, WorkerSpec
from agentrunner.config.spec import (
    CriterionSpec,
    PrdSpec,
    RunnerSection,
    TaskSection,
    TaskSpec,
    TestSpec,
)
from tests.kit.fault_server import FaultServer, MakeSpec, VirtualClock, server

__all__ = ["clock", "make_spec", "second_server", "server"]


@pytest.fixture
def second_server() -> Iterator[FaultServer]:
    with closing(FaultServer()) as made:
        yield made


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def make_spec() -> MakeSpec:
    """A task; keywords are those of `runner.meta`, `worker`, `test`, `criteria`, or of the spec."""

    def make(
        *,
        worker: str = "codex-cli",
        test: str | None = None,
        criteria: list[CriterionSpec] | None = None,
        script_text: str | None = None,
        language: str = "en",
        prd: str = "Say hello.",
        **meta: Any,
    ) -> TaskSpec:
        return TaskSpec.model_validate(
            {
                "task_id": "hello",
                "title": "Hello",
                "repo": "/repo",
                "prd_text": prd,
                "criteria": criteria or [],
                "task": TaskSection(
                    prd=PrdSpec(text=prd), test=TestSpec(command=test) if test else None
                ),
                "runner": RunnerSection(meta=PlannerSpec(**meta), worker=WorkerSpec(kind=worker)),
                "base_dir": "/repo",
                "script_text": script_text,
                "language": language,
            }
        )

    return make
