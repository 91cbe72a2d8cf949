"""Asking the candidates of a planner role, one after the other, until one of them answers.

Shared by runs and by conversations about a plan. A candidate that does not answer is left alone for
a while; where nobody takes over, `AllAway` says who is to be waited for, and until when.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec import Struct

from agentrunner.execution.deps import Clock
from agentrunner.execution.outages import asked_again_at, ends_by_itself
from agentrunner.execution.quota import cooling_until
from agentrunner.planners.base import (
    PlannerClient,
    PlannerRequest,
    PlannerUnavailable,
    PlannerUnusable,
    Reply,
)
from agentrunner.planners.faults import words_of_failure
from agentrunner.planners.panel import Candidate, Panel, Role, RoleCandidates, pick
from agentrunner.state.worker_runs import Wait
from agentrunner.text.times import stamp

Silence = PlannerUnavailable | PlannerUnusable
"""Why a candidate gave no usable answer."""
FIXED_BY_A_PERSON = ("auth", "model")
UNFIXED_SEC = 86_400.0
"""How long a candidate whose key or model is refused is not asked, where another one answers."""
MOST_WARNING = 500

Answered = TypeVar("Answered")


class Chosen:
    """One candidate as a planner client; its name is on what it answers."""

    kind = "candidate"

    def __init__(self, panel: Panel, candidate: Candidate) -> None:
        self._panel = panel
        self._candidate = candidate

    def describe(self) -> str:
        """Return the client's own description."""
        return self._candidate.client.describe()

    async def complete(self, request: PlannerRequest) -> Reply:
        """Ask this candidate once; raise what its client raises."""
        return await self._panel.complete_by(self._candidate, request)

    async def close(self) -> None:
        """Do nothing: the panel closes its clients."""


@dataclass(eq=False)
class AllAway(Exception):
    """No candidate answers now, and after `wait` one may, without a person."""

    wait: Wait
    trouble: str
    """What is wrong with the one that is waited for."""
    failure: Silence
    """The error to end with where there is no waiting."""
    failed: Collection[str]
    """Those that were asked just now."""


class FailOver(Struct):
    """Asks the candidates of one role in order of preference."""

    panel: Panel
    role: Role
    clock: Clock
    cooling: MutableMapping[str, str]
    """The time until which a candidate is left alone, under "meta:NAME"."""
    salt: str
    warn: Callable[[str], None]
    """Gets a sentence where another candidate takes over."""
    waits: Callable[[], Sequence[Wait]]
    """Returns the waits since the last answer."""

    async def ask(
        self,
        ask: Callable[[PlannerClient], Awaitable[Answered]],
        number: Callable[[], int],
        *,
        vote: int = 0,
    ) -> Answered:
        """Return what `ask` gets from the first candidate that answers.

        `number` returns the number of the next call, by which candidates with weights share the
        calls. Of several votes on one thing, vote number n begins with the n-th candidate.

        Raises AllAway where one of them is back after a while, and the last error,
        PlannerUnavailable or PlannerUnusable, where only a person helps; then all are asked again
        at the next question.
        """
        # By name. These are not asked again in this call, however short their cool-down.
        failed: dict[str, Silence] = {}
        while (chosen := self._choice(failed, number(), vote, now := self.clock.now())) is not None:
            if failed:
                name, silence = next(reversed(failed.items()))
                sentence = f"{name} does not answer, {chosen.name} does: {silence.message}"
                self.warn(sentence[:MOST_WARNING])
                if self._candidates.fallback_on_rate_limit:
                    self.cooling[_key(name)] = stamp(self._left_alone_until(name, silence, now))
            try:
                return await ask(Chosen(self.panel, chosen))
            except (PlannerUnavailable, PlannerUnusable) as silence:
                failed[chosen.name] = silence
        backs = {name: at for name, one in failed.items() if (at := self._back(name, one, now))}
        if failed and not backs:
            self.release(failed)
            raise [*failed.values()][-1]
        raise self._all_away(failed, backs, now)

    def release(self, names: Collection[str]) -> None:
        """Let candidates be asked again at once."""
        for name in names:
            self.cooling.pop(_key(name), None)

    @property
    def _candidates(self) -> RoleCandidates:
        return self.panel.role_candidates(self.role)

    def _choice(
        self, failed: Mapping[str, Silence], number: int, vote: int, now: datetime
    ) -> Candidate | None:
        """Return the candidate to ask now, of those not in `failed`; None where all must wait.

        Where nobody takes over for a spent quota, the next one does for other troubles. Those are
        not remembered, so that no cool-down but that of a quota is waited for.
        """
        left = [one for one in self._candidates.candidates if one.name not in failed]
        if self._candidates.fallback_on_rate_limit:
            return pick(left, self.cooling, now, self.salt, number, vote=vote)
        only = pick(left, {}, now, self.salt, number, vote=vote)
        stays = any(
            isinstance(one, PlannerUnusable) or one.kind == "rate_limit" for one in failed.values()
        )
        return None if only is None or stays or self._until(only.name, now) else only

    def _until(self, name: str, now: datetime) -> datetime | None:
        return cooling_until(self.cooling, "meta", name, now)

    def _back(self, name: str, failure: Silence, now: datetime) -> tuple[datetime, bool] | None:
        """Return when this candidate may answer again without a person, and whether its provider
        gave that time; None where its trouble stays.
        """
        named = [one.client for one in self._candidates.candidates if one.name == name]
        if isinstance(failure, PlannerUnusable) or not all(
            ends_by_itself(client, failure) for client in named
        ):
            return None
        return asked_again_at(failure, len(self.waits()), now)

    def _left_alone_until(self, name: str, failure: Silence, now: datetime) -> datetime:
        """Return until when a candidate is not asked, where another one answers."""
        by_person = getattr(failure, "kind", "") in FIXED_BY_A_PERSON
        seconds = UNFIXED_SEC if by_person else self._candidates.cool_down_sec
        later = now + timedelta(seconds=seconds)
        back, is_given = self._back(name, failure, now) or (later, True)
        return back if is_given else max(back, later)

    def _all_away(
        self,
        failed: Mapping[str, Silence],
        backs: Mapping[str, tuple[datetime, bool]],
        now: datetime,
    ) -> AllAway:
        """Return the wait for the first candidate to be back, as of `now`, when none was chosen.

        Nobody took over for those that failed now, so they are asked again as soon as their
        trouble may be over, without a cool-down.
        """
        self.cooling.update({_key(name): stamp(back) for name, (back, _) in backs.items()})
        ends = {one.name: self._until(one.name, now) for one in self._candidates.candidates}
        until, name = min((at, name) for name, at in ends.items() if at is not None)
        known = failed.get(name)
        trouble = words_of_failure(known) if known else "it is left alone for a while"
        wait = Wait(
            until=stamp(until),
            since=stamp(now),
            reason=f"the planner {name} could not answer, {trouble}",
            role="meta",
            candidate=name,
            told=name in backs and backs[name][1],
        )
        last = known or next(reversed([*failed.values()]), None) or _cooling_error(name)
        return AllAway(wait, trouble, last, failed)


def _key(name: str) -> str:
    return f"meta:{name}"


def _cooling_error(name: str) -> PlannerUnavailable:
    """Return the error of a candidate that was not asked, because its quota was spent before."""
    return PlannerUnavailable(
        f"{name} is left alone because its quota was spent.",
        retryable=False,
        kind="rate_limit",
        candidate=name,
    )
