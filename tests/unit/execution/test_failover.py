"""Whom a planner role waits for while time goes on."""

from __future__ import annotations

import pytest

from agentrunner.execution.failover import AllAway, FailOver
from agentrunner.planners.base import PlannerClient, PlannerRequest, Reply
from agentrunner.planners.panel import ROLES, Candidate, Panel, RoleCandidates
from tests.kit.talks import SteadyClock


class Parrot:
    """Says one word."""

    kind = "parrot"

    def describe(self) -> str:
        return self.kind

    async def complete(self, request: PlannerRequest) -> Reply:
        return Reply(self.kind)

    async def close(self) -> None:
        """Do nothing."""


async def test_a_cool_down_that_ends_while_nobody_is_chosen_is_waited_for() -> None:
    """A clock that goes on with each look at it passes the end of the cool-down in between."""
    ready = RoleCandidates((Candidate("only", Parrot()),))
    clock = SteadyClock()
    failover = FailOver(
        Panel(dict.fromkeys(ROLES, ready)),
        "plan",
        clock,
        cooling={"meta:only": "2026-03-01T09:00:01.500Z"},
        salt="salt",
        warn=lambda _: None,
        waits=lambda: (),
    )

    async def ask(client: PlannerClient) -> str:
        return client.describe()

    with pytest.raises(AllAway) as away:
        await failover.ask(ask, lambda: 0)
    assert away.value.wait.until.startswith("2026-03-01T09:00:01.5")
    assert await failover.ask(ask, lambda: 0) == "parrot"
