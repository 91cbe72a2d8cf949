"""Limits of a run that cannot be enforced during work: reported at the start, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentrunner.config.kinds import planner_kind
from agentrunner.config.spec import TaskSpec
from agentrunner.errors.runs import BudgetNotHeld
from agentrunner.gateway.prices import Prices
from agentrunner.planners.endpoint import endpoint
from agentrunner.workers.member import Member

SUBSCRIPTION = (
    "What {who} uses is in your subscription: runner.budget.usd does not count it and cannot "
    "stop it."
)
NO_GATEWAY = (
    "The model calls of {who} pass no gateway: runner.budget.{name} is held before and after its "
    "work, and cannot stop it meanwhile."
)
NO_PRICE = "The price of {what}, for {who}, is not known: runner.budget.usd cannot stop it."


def not_held(
    spec: TaskSpec, members: Sequence[Member], environ: Mapping[str, str], prices: Prices
) -> list[tuple[str, str]]:
    """Return limits that cannot stop someone at work, by name, each with a sentence about why."""
    found = list(_planner(spec, prices, environ))
    for member in members:
        found += [known for known in _worker(member, prices) if known not in found]
    return found


def check_enforced(spec: TaskSpec, open_limits: Iterable[tuple[str, str]]) -> None:
    """Raise UsageError where `runner.budget.enforce: hard` is more than can be enforced.

    `open_limits` is what `not_held` found.
    """
    if spec.runner.budget.enforce != "hard":
        return
    for name, why in open_limits:
        raise BudgetNotHeld(
            f"{why} runner.budget.enforce is hard, so nothing was started.",
            path=spec.places.get(f"runner.budget.{name}", f"runner.budget.{name}"),
            remedy="--set runner.budget.enforce=soft, or choose another worker, login or sandbox",
            nothing_spent=True,
        )


def _worker(member: Member, prices: Prices) -> Iterator[tuple[str, str]]:
    spec, budget = member.spec, member.spec.runner.budget
    login = member.subscribed
    if budget.usd is not None and login:
        yield "usd", SUBSCRIPTION.format(who=member.name)
    if not member.has_gateway:
        limits = (("tokens", budget.tokens), ("usd", None if login else budget.usd))
        for name, limit in limits if member.can_call_model else ():
            if limit is not None:
                yield name, NO_GATEWAY.format(who=member.name, name=name)
        return
    model = spec.runner.worker.model
    if budget.usd is not None and not login and (model is None or prices.price(model) is None):
        yield "usd", NO_PRICE.format(what=model or "its default model", who=member.name)


def _planner(
    spec: TaskSpec, prices: Prices, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    planner = spec.runner.meta
    if spec.runner.budget.usd is None or not planner_kind(planner.kind).default_model:
        return
    where = endpoint(planner, environ)
    model = where.model
    if not prices.is_free(model, near=where.near) and prices.price(model) is None:
        yield "usd", NO_PRICE.format(what=model, who="the planner")
