"""What is worked out of a task before its first node: once, and handed on."""

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

    A candidate knows its network and its gateway itself (`Member`). Nothing here changes: what the
    opened sandbox adds makes another value.
    """

    spec: TaskSpec
    """Settled, within every policy, with the folder that it works in."""
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
    """What a person should know before it starts."""
    missing: tuple[InfraError, ...] = ()
    """What keeps it from starting."""

    @property
    def network(self) -> str:
        """The policy of the workers' sandbox, as the header names it."""
        return self.members[0].network.policy

    def ready(self) -> ResolvedRun:
        """The same value; raises InfraError where something is missing."""
        if self.missing:
            raise self.missing[0]
        return self

    def with_members(self, members: tuple[Member, ...]) -> ResolvedRun:
        """With those who were found in the sandbox."""
        return replace(self, members=members)

    def noting(self, notices: Iterable[str]) -> ResolvedRun:
        """With further notices, each once."""
        return replace(self, notices=tuple(dict.fromkeys((*self.notices, *notices))))
