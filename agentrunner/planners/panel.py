"""Who answers in each role of the planner, and who takes over when the first one cannot."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentrunner.config.agents import PlannerCandidate, RoleSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import InfraError, UsageError
from agentrunner.errors.task_files import UnknownCandidate
from agentrunner.launching.route import NO_CASSETTE, Cassette
from agentrunner.planners.base import (
    NeedsWorkplace,
    PlannerClient,
    PlannerRequest,
    PlannerUnavailable,
    Reply,
    answers_by_code,
)
from agentrunner.planners.factory import make_planner
from agentrunner.planners.retry import seconds_until
from agentrunner.planners.workplace import Workplace
from agentrunner.protocol.message import MessageType

Role = Literal["meta", "plan", "assess"]
ROLES: tuple[Role, ...] = ("meta", "plan", "assess")


class Candidate(Struct, frozen=True):
    """A client that can take a role."""

    name: str
    """Its kind, with the model where one is named: "codex-cli", "chat:anthropic:claude-…". A
    candidate has the same name in every role.
    """
    client: PlannerClient
    weight: int = 0


class RoleCandidates(Struct, frozen=True):
    """The candidates of a role in order of preference; at least one."""

    candidates: tuple[Candidate, ...]
    fallback_on_rate_limit: bool = True
    """Whether the next one takes over when a quota is spent; else the run waits."""
    cool_down_sec: float = 300
    """Seconds to skip a candidate whose quota is spent, if the provider names no reset time."""

    @property
    def by_code(self) -> bool:
        """Whether programs answer, which mean what they say, and no model."""
        return all(answers_by_code(one.client) for one in self.candidates)

    def named(self, name: str) -> Candidate:
        """Return the candidate of this name, else the last one."""
        return next((one for one in self.candidates if one.name == name), self.candidates[-1])


class Panel:
    """The clients of every role."""

    def __init__(self, by_role: Mapping[Role, RoleCandidates], notices: Sequence[str] = ()) -> None:
        self._by_role = dict(by_role)
        self.notices = tuple(notices)
        """What a person should know before the run starts: who was left out, and why."""

    def role_candidates(self, role: Role) -> RoleCandidates:
        return self._by_role[role]

    def describe(self) -> str:
        """Return a text for the header: who decides, and who else plans or judges."""
        first = {role: self._by_role[role].candidates[0] for role in ROLES}
        text = first["meta"].client.describe()
        if first["plan"].client is not first["meta"].client:
            text += f"; {first['plan'].client.describe()} plans"
        if first["assess"].client is not first["meta"].client:
            text += f"; {first['assess'].client.describe()} judges"
        return text

    async def open(self, workplace: Workplace) -> None:
        """Give the workplace to every client that runs programs of its own."""
        for client in self._clients():
            if isinstance(client, NeedsWorkplace):
                await client.open(workplace)

    async def complete_by(self, candidate: Candidate, request: PlannerRequest) -> Reply:
        """Make one attempt of this candidate, whose name is set on the reply or failure; raises as
        its client's `complete`.
        """
        try:
            reply = await candidate.client.complete(request)
        except PlannerUnavailable as failure:
            failure.candidate = candidate.name
            raise
        return dataclasses.replace(reply, candidate=candidate.name)

    async def become(self, other: Panel) -> None:
        """Replace its clients by those of `other`, which becomes this panel."""
        before = self._clients()
        self._by_role, self.notices = dict(other._by_role), other.notices
        for client in before:
            await client.close()

    async def close(self) -> None:
        """Close every client."""
        for client in self._clients():
            await client.close()

    def _clients(self) -> list[PlannerClient]:
        """All clients, each once, however many roles it has."""
        everyone = (
            candidate.client
            for role_candidates in self._by_role.values()
            for candidate in role_candidates.candidates
        )
        return list({id(client): client for client in everyone}.values())


def role_of(message: MessageType) -> Role:
    """Return the role that answers this type of message."""
    if message == "completion_assessment":
        return "assess"
    return "meta" if message == "next_action" else "plan"


def pick(
    candidates: Sequence[Candidate],
    cooling: Mapping[str, str],
    now: datetime,
    salt: str,
    number: int,
    *,
    vote: int = 0,
) -> Candidate | None:
    """Return who answers call `number`: the first candidate that is not cooling; None if all are.

    `cooling` maps "meta:NAME" to the time until which one is skipped, in ISO 8601. Where candidates
    have weights, calls are shared out among those by a keyed hash of their number, so the same run
    picks the same again. One without a weight then answers only while those cool. Of several votes
    on one thing, number `vote` (from 0) goes to the candidate of that position among those ready.
    """
    ready = [
        candidate
        for candidate in candidates
        if not seconds_until(cooling.get(f"meta:{candidate.name}", ""), now)
    ]
    weighted = [candidate for candidate in ready if candidate.weight]
    if not weighted or vote:
        return ready[vote % len(ready)] if ready else None
    draw = hmac.digest(salt.encode(), f"pick {number}".encode(), hashlib.sha256)
    place = int.from_bytes(draw[:8], "big") % sum(candidate.weight for candidate in weighted)
    for candidate in weighted:
        if place < candidate.weight:
            return candidate
        place -= candidate.weight
    raise AssertionError("the place is within the sum of the weights")


def make_panel(
    spec: TaskSpec, environ: Mapping[str, str], cassette: Cassette = NO_CASSETTE
) -> Panel:
    """Return the clients of `runner.meta`, `runner.assess` and `runner.profiles`.

    An unavailable candidate is left out as long as its role has another one. Raises as
    `make_planner`, with the first one's reason where a role is left empty, and UsageError for a
    forced name that no candidate has.
    """
    clients = _Clients(spec, environ, cassette)
    by_role = {role: clients.role_candidates(role) for role in ROLES}
    return Panel(by_role, list(dict.fromkeys(clients.notices)))


class _Clients:
    """Makes each candidate once."""

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str], cassette: Cassette) -> None:
        self._spec, self._environ, self._cassette = spec, environ, cassette
        self._made: dict[PlannerCandidate, tuple[str, PlannerClient | InfraError]] = {}
        self.notices: list[str] = []

    def role_candidates(self, role: Role) -> RoleCandidates:
        profile, wanted = role_candidates(self._spec, role)
        found: list[Candidate] = []
        lacks: list[tuple[str, InfraError]] = []
        for candidate in wanted:
            name, client = self._client(candidate)
            if profile.force and name != profile.force:
                continue
            if isinstance(client, InfraError):
                lacks.append((name, client))
            else:
                found.append(Candidate(name, client, candidate.weight))
        if not found:
            raise lacks[0][1] if lacks else self._no_such(role, profile.force)
        self.notices += [f"{name} is left out: {why.message}" for name, why in lacks]
        return RoleCandidates(tuple(found), profile.fallback_on_rate_limit, profile.cool_down_sec)

    def _client(self, candidate: PlannerCandidate) -> tuple[str, PlannerClient | InfraError]:
        key = candidate.model_copy(update={"weight": 0})
        if key not in self._made:
            name = self._free_name(
                f"{candidate.kind}:{candidate.model}" if candidate.model else candidate.kind
            )
            client: PlannerClient | InfraError
            own = _spec_of(self._spec, candidate)
            part = replace(self._cassette, channel=name if self._made else "")
            try:
                client = make_planner(own, self._environ, part)
            except InfraError as error:
                client = error
            self._made[key] = name, client
        return self._made[key]

    def _free_name(self, name: str) -> str:
        """Return the name, with a number if another candidate already has it."""
        taken = [known for known, _ in self._made.values()]
        count = 1
        while (name if count == 1 else f"{name}-{count}") in taken:
            count += 1
        return name if count == 1 else f"{name}-{count}"

    def _no_such(self, role: Role, force: str) -> UsageError:
        names = ", ".join(name for name, _ in self._made.values())
        place = f"runner.profiles.{role}.force"
        return UnknownCandidate(
            f'No candidate of the role {role} is called "{force}". Known: {names}.',
            path=self._spec.places.get(place, place),
        )


def role_candidates(spec: TaskSpec, role: Role) -> tuple[RoleSpec, list[PlannerCandidate]]:
    """Return a role's settings and its candidates, with their omitted settings filled in."""
    profiles, judge = spec.runner.profiles, _judge(spec)
    profile, alone = profiles.meta, PlannerCandidate(kind=spec.runner.meta.kind)
    if role == "plan" and profiles.plan is not None:
        profile = profiles.plan
    elif role == "assess" and (profiles.assess is not None or judge is not None):
        profile, alone = profiles.assess or RoleSpec(), judge or alone
    return profile, [_fill_in(spec, candidate) for candidate in profile.candidates or [alone]]


def _judge(spec: TaskSpec) -> PlannerCandidate | None:
    """Return the candidate of `runner.assess`, if it names one."""
    judge = spec.runner.assess
    if judge is None or not (judge.kind or judge.model or judge.base_url):
        return None
    kind = judge.kind or spec.runner.meta.kind
    return PlannerCandidate(kind=kind, model=judge.model, base_url=judge.base_url)


def _fill_in(spec: TaskSpec, candidate: PlannerCandidate) -> PlannerCandidate:
    """Fill in omitted settings from `runner.meta`, if the candidate is of the same kind."""
    meta = spec.runner.meta
    if candidate.kind != meta.kind:
        return candidate
    return candidate.model_copy(
        update={
            "model": candidate.model or meta.model,
            "base_url": candidate.base_url or meta.base_url,
            "auth": candidate.auth or meta.auth,
        }
    )


def _spec_of(spec: TaskSpec, candidate: PlannerCandidate) -> TaskSpec:
    """Return the task with this candidate as its `runner.meta`."""
    return spec.with_planner(
        kind=candidate.kind,
        model=candidate.model,
        base_url=candidate.base_url,
        auth=candidate.auth,
    )
