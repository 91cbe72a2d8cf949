"""The last round that an attempt can come to, whatever was done before."""

from __future__ import annotations

from typing import Any

import pytest

from agentrunner.state.lifecycle import TaskState as S
from agentrunner.state.rounds import rounds_at_most
from agentrunner.state.run_state import Counters, RunInfo, TaskContext
from agentrunner.state.state_model import FileRef
from agentrunner.state.worker_runs import WorkerOrder, WorkerRun

INFO = RunInfo(run_id="a-1", task_id="a", title="A", repo="/r", max_loops=2)
PROMPT = FileRef(path="p", size=1, sha256="0" * 64)


def ended(number: int, loop: int) -> WorkerRun:
    return WorkerRun(worker_run_id="1-001", worker="w", loop=loop, round=number, outcome="failed")


def ordered(number: int, loop: int) -> WorkerOrder:
    return WorkerOrder(worker_run_id="1-002", worker="w", prompt=PROMPT, loop=loop, round=number)


@pytest.mark.parametrize(
    ("state", "loops", "more", "most"),
    [
        (S.PENDING, 0, {}, 3),
        (S.RUNNING, 0, {"order": ordered(1, 0)}, 3),
        (S.VALIDATING, 0, {"recent": [ended(1, 0)]}, 3),
        (S.FIXING, 1, {"recent": [ended(1, 0)]}, 3),  # completion was refused: it took the loop
        (S.FIXING, 1, {"recent": [ended(1, 0)], "order": ordered(2, 1)}, 3),
        (S.VALIDATING, 1, {"recent": [ended(1, 0), ended(1, 1)]}, 2),  # a request for completion
        (S.VALIDATING, 0, {"recent": [ended(5, 2)]}, 7),  # the next attempt
        (S.PENDING, 0, {"recent": [ended(5, 2)]}, 8),  # and where it is planned anew
        (S.VALIDATING, 3, {"recent": [ended(4, 2)]}, 4),
        (S.RUNNING, 1, {"order": ordered(0, 1)}, 3),  # of an earlier version
    ],
)
def test_rounds_at_most(state: S, loops: int, more: dict[str, Any], most: int) -> None:
    counters = Counters(loops=loops)
    context: TaskContext = {"run": INFO, "state": state, "counters": counters, "criteria": []}
    assert rounds_at_most({**context, **more}) == most  # type: ignore[typeddict-item]
