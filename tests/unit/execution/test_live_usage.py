"""What the live view hears of a worker's calls before the worker ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from agentrunner.execution.deps import Deps
from agentrunner.execution.egress import USAGE_LOG
from agentrunner.execution.worker_record import EVERY_SEC, LiveUsage
from agentrunner.gateway.usage import ModelCall, UsageLog
from agentrunner.state.worker_runs import WorkerOrder

CALL = ModelCall(
    "2026-11-21T05:00:00.000Z", "1-001", 1, "/v1/responses", "m", 200, 900, 1000, 0, 50, 0.5
)


class Stand:
    """The part of a run's means that the gateway's log is read with, its clock set by hand."""

    def __init__(self, place: Path, *, subscribed: bool = False) -> None:
        self.now = 100.0
        self.events: list[dict[str, Any]] = []
        self.log = place / USAGE_LOG
        means = SimpleNamespace(
            clock=SimpleNamespace(monotonic=lambda: self.now),
            ledger=SimpleNamespace(dir=lambda worker_run_id: place),
            member=lambda name: SimpleNamespace(subscribed=subscribed),
            emit=lambda event, **fields: self.events.append({"event": event, **fields}),
        )
        order = SimpleNamespace(worker_run_id="1-001", member="codex")
        self.usage = LiveUsage(cast(Deps, means), cast(WorkerOrder, order))

    def counted(self, *calls: ModelCall) -> None:
        """Write calls as the gateway does, and look."""
        log = UsageLog(self.log)
        for call in calls:
            log.append(call)
        log.close()
        self.usage.look()


def test_each_call_is_told_of_once_and_not_too_often(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.usage.look()  # the gateway has not begun yet
    assert stand.events == []
    stand.counted(CALL)
    first = {"event": "worker_usage", "worker_run_id": "1-001", "tokens": 1050, "usd": 0.5}
    assert stand.events == [first]
    stand.counted(replace(CALL, n=2))
    assert stand.events == [first]
    stand.now += EVERY_SEC
    stand.usage.look()
    assert stand.events == [first, {**first, "tokens": 2100, "usd": 1.0}]
    stand.now += EVERY_SEC
    stand.usage.look()
    assert len(stand.events) == 2


def test_a_subscription_costs_nothing(tmp_path: Path) -> None:
    stand = Stand(tmp_path, subscribed=True)
    stand.counted(CALL)
    assert [(one["tokens"], one["usd"]) for one in stand.events] == [(1050, None)]
