"""What is worked out of a task before its first node: once, and then passed on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import InfraError
from agentrunner.gateway.prices import Prices
from agentrunner.planners.panel import Panel
from agentrunner.workers.member import Member


@dataclass(frozen=True)
class ResolvedRun:
    """Who plans and who works, with which keys and prices, and what a person should know of it.

    A candidate has its own network and gateway (`Member`). The value is immutable: what the opened
    sandbox adds makes a new one.
    """

    spec: TaskSpec
    """With defaults filled in, within every policy, with the folder that it works in."""
    environ: Mapping[str, str] = field(repr=False)
    planner: Panel | None
    """None where it is unavailable."""
    members: tuple[Member, ...]
    """In order of preference; those that cannot work are left out as long as another one can."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """By candidate, the variable that holds the key of its model; "" for none."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What must never be written."""
    prices: Prices = field(default_factory=Prices)
    notices: tuple[str, ...] = ()
    """What a person should know before the run starts."""
    missing: tuple[InfraError, ...] = ()
    """What prevents the run from starting."""

    @property
    def network(self) -> str:
        """Return the network policy of the workers' sandbox, as the header names it."""
        return self.members[0].network.policy

    def ready(self) -> ResolvedRun:
        """Return this value; raise InfraError where something is missing."""
        if self.missing:
            raise self.missing[0]
        return self

    def with_members(self, members: tuple[Member, ...]) -> ResolvedRun:
        """Return a copy with the members that were found in the sandbox."""
        return replace(self, members=members)

    def noting(self, notices: Iterable[str]) -> ResolvedRun:
        """Return a copy with further notices, each once."""
        return replace(self, notices=tuple(dict.fromkeys((*self.notices, *notices))))
