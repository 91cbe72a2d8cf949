"""Servers, clocks and tasks for the tests of the planner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from agentrunner.config.agents import PlannerSpec, WorkerSpec
from agentrunner.config.spec import (
    CriterionSpec,
    RunnerSection,
    TaskSpec,
)
from tests.kit.fault_server import FaultServer, MakeSpec, VirtualClock, server
from tests.kit.task_specs import task_spec_of

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
        return task_spec_of(
            {"test": {"command": test}} if test else {},
            RunnerSection(meta=PlannerSpec(**meta), worker=WorkerSpec(kind=worker)),
            prd=prd, repo="/repo", task_id="hello", title="Hello", criteria=criteria or [],
            script_text=script_text, language=language,
        )  # fmt: skip

    return make
