"""A limit of the run that is spent: where that is noticed, and what a person is asked then.

Code that is about to spend calls `check_budget`. The wrapper around the nodes turns its error into
a question, and once a person has raised the limit the same node runs again from its top.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.types import Command

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import UsageError
from agentrunner.errors.runs import OutOfBudget
from agentrunner.execution.decisions import record_answer
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.questions import question
from agentrunner.execution.tries import begun_again
from agentrunner.money.counters import granted
from agentrunner.state.budget import (
    FOR_CALL,
    FOR_WORKER,
    STOP,
    amount_of,
    figure_of,
    read_grants,
    spent_limit,
    spent_of,
)
from agentrunner.state.people import Answer, Question
from agentrunner.state.run_state import Counters, TaskContext, Verdict
from agentrunner.state.worker_runs import WorkerOrder, WorkerRun

__all__ = [
    "FOR_CALL", "FOR_WORKER", "BudgetSpent", "check_budget", "decided", "goes_on",
    "limits_for", "pause", "stopped_by_budget",
]  # fmt: skip


class BudgetSpent(OutOfBudget):
    """A limit of the run leaves no room for the next step."""

    def __init__(self, name: str, limit: float, counters: Counters) -> None:
        """`counters` are the present ones, with what the node has spent so far."""
        super().__init__(
            f"The budget runner.budget.{name} of {limit:,.12g} is spent.",
            code=f"{OutOfBudget.code}: {name}",
            remedy=f"agentrunner resume --budget {name}=+AMOUNT",
        )
        self.name = name
        self.limit = limit
        self.counters = counters


def check_budget(
    state: TaskContext, deps: Deps, counters: Counters, names: Iterable[str] = FOR_CALL
) -> None:
    """Raise BudgetSpent where another step of this kind may not be taken."""
    found = spent_limit(deps.spec, state.get("grants", {}), counters, names)
    if found is not None:
        raise BudgetSpent(*found, counters)


def limits_for(names: Iterable[str], *, free: bool) -> tuple[str, ...]:
    """Return those of the limits that the next step needs: what costs nothing needs no money."""
    return tuple(name for name in names if not free or name != "usd")


# -- the question ---------------------------------------------------------------------------------


def pause(spent: BudgetSpent, state: TaskContext, deps: Deps, back_to: str) -> Update | None:
    """Return the update that asks a person about a spent limit (`ask_human`); None where nobody is
    asked.

    `back_to` is the node that was about to spend. The question that it may have been answering is
    kept in the subject, and restored with the person's answer.
    """
    if deps.spec.runner.budget.on_spent != "ask":
        return None
    # A person's message counts as read only once a node has used it.
    messages = state["counters"].messages
    counters = spent.counters.model_copy(update={"messages": messages})
    return {"counters": counters, "question": _asked(spent, state, back_to)}


def _asked(spent: BudgetSpent, state: TaskContext, back_to: str) -> Question:
    name, limit, counters = spent.name, spent.limit, spent.counters
    used = spent_of(counters)[name]
    least, more = wanted(name, limit, used)
    before = state.get("question")
    subject = {
        "limit": name,
        "of": limit,
        "spent": used,
        "back_to": back_to,
        "asked": before.model_dump(mode="json") if before else None,
    }
    step = "worker run" if back_to == "run_worker" else "call of the planner"
    spent_now = f"is spent: {figure_of(name, used)} of {amount_of(name, limit)}"
    if not limit:
        spent_now = f"is 0, and {amount_of(name, used)} {'is' if used == 1 else 'are'} spent"
    text = (
        f"The budget runner.budget.{name} {spent_now}. {_spent_on(counters)} The next "
        f"{step} needs at least {name}=+{least:.12g}. Raise it, or stop here?"
    )
    return question("budget", text, subject, state, options=[f"{name}=+{more:.12g}", STOP])


def wanted(name: str, limit: float, used: float) -> tuple[float, float]:
    """Return the least amount that lets one more step begin, and a round number that lets some."""
    over = used - limit
    least = math.floor(over * 100 + 1) / 100 if name == "usd" else math.floor(over) + 1
    more = max(limit, least)
    unit = 10.0 ** max(0, math.floor(math.log10(more)) - 1)
    return least, math.ceil(more / unit) * unit


def _spent_on(counters: Counters) -> str:
    meta = counters.meta_input_tokens + counters.meta_output_tokens
    worker = counters.worker_input_tokens + counters.worker_output_tokens
    text = (
        f"Planner: {amount_of('meta_calls', counters.calls)}, {amount_of('tokens', meta)}; "
        f"workers: {amount_of('worker_runs', counters.worker_runs)}, "
        f"{amount_of('tokens', worker)}"
    )
    if counters.priced_calls:
        text += f"; {amount_of('usd', counters.usd)}"
    if counters.unpriced_calls or counters.unknown_calls:
        text += ", as far as is known"
    return f"{text}; {counters.wall_sec:,.0f} s of work."


def read_answer(
    text: str, asked: Question, spec: TaskSpec, grants: Mapping[str, float]
) -> dict[str, float]:
    """Return amounts by name, {} for a stop; raise UsageError for anything else."""
    if text.strip().lower() == STOP:
        return {}
    return read_grants(text, spec, grants, str(json.loads(asked.subject)["limit"]))


def decided(state: TaskContext, deps: Deps, answer: Answer) -> Command[str]:
    """Return the step after a person's answer about a spent limit; ask again if unreadable."""
    asked = state["question"]
    assert asked is not None
    subject: dict[str, Any] = json.loads(asked.subject)
    grants = granted(deps.log)
    try:
        amounts = read_answer(answer.text, asked, deps.spec, grants)
    except UsageError:
        return Command(goto="ask_human")
    _, kept = record_answer(state, deps, asked, answer)
    if not amounts:
        name, limit = str(subject["limit"]), float(subject["of"])
        failed = BudgetSpent(name, limit, state["counters"])
        verdict = Verdict(state="FAILED", reason=failed.code, text=failed.message)
        return Command(update={**kept, "verdict": verdict}, goto="note")
    # Under the question's id: a node that runs again after a crash grants nothing twice.
    deps.record(state, "grant", asked.id, {"amounts": amounts})
    before = Question.model_validate(subject["asked"]) if subject["asked"] else None
    update = {**kept, "grants": granted(deps.log), "question": before}
    return Command(update=update, goto=str(subject["back_to"]))


# -- a worker that its gateway stopped -------------------------------------------------------------


def stopped_by_budget(
    state: TaskContext, deps: Deps, order: WorkerOrder, run: WorkerRun, update: Update
) -> Command[str] | None:
    """Return the pause after a worker run whose gateway refused a call because a budget is spent.

    `update` is the update of the worker run. None where it ended for another reason, and where
    nobody is asked: then the next call of the planner ends the run.
    """
    counters: Counters = update["counters"]
    if run.outcome != "budget":
        return None
    needed = limits_for(FOR_WORKER, free=not deps.member(order.member).may_cost)
    found = spent_limit(deps.spec, state.get("grants", {}), counters, needed)
    if found is None:
        return None
    paused = pause(BudgetSpent(*found, counters), state, deps, "run_worker")
    if paused is None:
        return None
    again = {"state": state["state"], "order": goes_on(order, run)}
    return Command(update={**update, **again, **paused}, goto="ask_human")


def goes_on(order: WorkerOrder, run: WorkerRun) -> WorkerOrder:
    """Return the same order under a new id, in its session if it had begun one."""
    tries = order.tries + 1
    return order.model_copy(
        update={
            "worker_run_id": begun_again(order.worker_run_id, tries),
            "mode": "resume" if run.session_id else order.mode,
            "tries": tries,
        }
    )
