"""What a worker's calls have used so far, for who follows the run. The bill is made at its end."""

from __future__ import annotations

from agentrunner.execution.deps import Deps
from agentrunner.execution.egress import usage_log, usage_of
from agentrunner.money.amount import least_usd, total
from agentrunner.state.worker_runs import WorkerOrder

EVERY_SEC = 2.0
"""Least time between two `worker_usage` events of a worker run."""


class LiveUsage:
    """Emits `worker_usage` when the gateway of a worker run has counted more."""

    def __init__(self, deps: Deps, order: WorkerOrder) -> None:
        self._deps, self._worker_run_id = deps, order.worker_run_id
        self._log = usage_log(deps, order.worker_run_id)
        self._subscribed = deps.member(order.member).subscribed
        self._size, self._tokens = 0, 0
        self._next_at = float("-inf")

    def look(self) -> None:
        """Emit what is counted by now if that has changed; cheap where it has not."""
        now = self._deps.clock.monotonic()
        if now < self._next_at:
            return
        try:
            size = self._log.stat().st_size
        except FileNotFoundError:  # no gateway, or no call yet
            return
        if size == self._size:
            return
        self._size, self._next_at = size, now + EVERY_SEC
        amounts = usage_of(self._deps, self._worker_run_id).by_model.values()
        used = total(amounts)
        if used.tokens != self._tokens:
            self._tokens = used.tokens
            usd = None if self._subscribed else least_usd(amounts)
            self._deps.emit(
                "worker_usage", worker_run_id=self._worker_run_id, tokens=used.tokens, usd=usd
            )
