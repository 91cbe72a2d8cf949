"""The limits of a run: what they are, what is spent of them, and how a person raises one. Pure.

Budgets count over all attempts. A limit is the task's, raised by what people granted, and never
more than a policy of the machine allows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from agentrunner.config.budget_kinds import BUDGET_KINDS
from agentrunner.errors import UsageError
from agentrunner.errors.runs import WrongAnswer
from agentrunner.errors.task_files import PolicyBreach
from agentrunner.text.lazy_regex import lazy_regex

if TYPE_CHECKING:  # screens that only name limits start without these models
    from agentrunner.config.spec import TaskSpec
    from agentrunner.state.run_state import Counters, TaskContext

NAMES = tuple(BUDGET_KINDS)
"""The limits that can be spent, as keys of `runner.budget`; the first that is spent is reported."""
FOR_CALL = tuple(name for name, kind in BUDGET_KINDS.items() if kind.before_call)
FOR_WORKER = tuple(name for name, kind in BUDGET_KINDS.items() if kind.before_worker)
"""Limits that must not be spent before a planner's call, and before a worker run."""
FOR_TALK = tuple(name for name, kind in BUDGET_KINDS.items() if kind.by_talking)
"""Limits that must not be spent before a call about a plan."""
WHOLE = frozenset(name for name, kind in BUDGET_KINDS.items() if kind.whole)
"""Limits that are counted, not measured."""
STOP = "stop"
MOST = 1e15
"""The largest grant: more than any limit, and still exact in the stored form of the state."""

_GRANT = lazy_regex(r"(?:(?P<name>[a-z_]+)=)?\+(?P<amount>\d[\d_]*(?:\.\d+)?)", re.ASCII)


def limits_of(spec: TaskSpec, grants: Mapping[str, float]) -> dict[str, float]:
    """Return the limits in force by name, people's grants included; unset ones are left out."""
    limits = {}
    for name in NAMES:
        own = getattr(spec.runner.budget, name)
        if own is not None:
            cap = spec.budget_caps.get(name, math.inf)
            limits[name] = min(own + grants.get(name, 0), cap)
    return limits


def spent_of(counters: Counters) -> dict[str, float]:
    """Return what is spent, by limit."""
    return {name: getattr(counters, kind.counter or name) for name, kind in BUDGET_KINDS.items()}


def left_of(spec: TaskSpec, state: TaskContext) -> dict[str, float]:
    """Return what is left of each limit that is set, never below 0."""
    limits, spent = limits_of(spec, state.get("grants", {})), spent_of(state["counters"])
    return {name: max(0, limit - spent[name]) for name, limit in limits.items()}


def spent_limit(
    spec: TaskSpec, grants: Mapping[str, float], counters: Counters, names: Iterable[str]
) -> tuple[str, float] | None:
    """Return the first of these limits that leaves no room for another step, with its value."""
    limits, spent = limits_of(spec, grants), spent_of(counters)
    for name in names:
        if name in limits and spent[name] >= limits[name]:
            return name, limits[name]
    return None


def added(grants: Mapping[str, float], more: Mapping[str, float]) -> dict[str, float]:
    """Return the grants with further ones added."""
    return {**grants, **{name: grants.get(name, 0) + amount for name, amount in more.items()}}


def read_grants(
    text: str, spec: TaskSpec, grants: Mapping[str, float], asked: str = ""
) -> dict[str, float]:
    """Return amounts from "usd=+5, tokens=+20000", or "+5" of the limit that is `asked` about.

    `grants` are those given before. Raises UsageError for anything else, for a limit that the task
    does not set, and for one that a policy does not let be raised so far.
    """
    more: dict[str, float] = {}
    for word in re.split(r"[\s,]+", text.strip()):
        name, amount = _one_grant(word, asked, _set_in(spec))
        more[name] = more.get(name, 0) + amount
    for name, amount in more.items():
        _check(name, grants.get(name, 0) + amount, spec, asked)
    return more


def _set_in(spec: TaskSpec) -> list[str]:
    """Return the limits that the task sets: no other can be raised."""
    return [name for name in NAMES if getattr(spec.runner.budget, name) is not None]


def _one_grant(word: str, asked: str, known: Sequence[str]) -> tuple[str, float]:
    match = _GRANT.fullmatch(word)
    name = (match["name"] or asked) if match else ""
    if match is None or not name:
        example = f"{asked or next(iter(known), 'usd')}=+5"
        raise _wrong(
            f"{word!r} raises no limit.",
            f"NAME=+AMOUNT, such as {example}, with NAME one of {', '.join(known or NAMES)}; or"
            f" {STOP}, to an open question, to spend no more",
        )
    if name not in NAMES:
        raise _wrong(f"There is no limit {name!r}.", f"one of {', '.join(known or NAMES)}")
    amount = float(match["amount"])
    if not 0 < amount <= MOST or (name in WHOLE and not amount.is_integer()):
        kind = "a whole number above 0" if name in WHOLE else "a number above 0"
        raise _wrong(f"{word!r}: {name} is raised by {kind}.", f"{name}=+5")
    return name, amount


def _check(name: str, granted: float, spec: TaskSpec, asked: str) -> None:
    own = getattr(spec.runner.budget, name)
    if own is None:
        known = _set_in(spec)
        raise _wrong(
            f"runner.budget.{name} is not set: there is no such limit that could be raised.",
            f"{asked or known[0]}=+AMOUNT; set are {', '.join(known)}" if known else "leave it out",
        )
    cap = spec.budget_caps.get(name)
    if cap is not None and own + granted > cap:
        raise PolicyBreach(
            f"runner.budget.{name} would be {own + granted:,g}; the policy allows {cap:,g}.",
            path=f"runner.budget.{name}",
            remedy=f"{name}=+{cap - own:g} at most, over all grants" if cap > own else STOP,
        )


def _wrong(message: str, remedy: str) -> UsageError:
    return WrongAnswer(message, path="--budget", remedy=remedy)


def figure_of(name: str, value: float) -> str:
    """Return a figure of one limit without its unit: "4,936", "0.52"."""
    if name == "usd":
        return f"{value:,.2f}" if value >= 0.1 or value == 0 else f"{value:.4f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def amount_of(name: str, value: float) -> str:
    """Return a figure of one limit as people read it: "4,936 tokens", "0.52 US dollars"."""
    kind = BUDGET_KINDS[name]
    return f"{figure_of(name, value)} {kind.unit if value == 1 else kind.units}"
