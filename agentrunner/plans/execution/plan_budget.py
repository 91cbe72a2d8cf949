"""The spent budget of a plan: a person is asked once, and an answer raises it.

The question is in the plan's store, like those of tasks, and takes the same answers as that about
the budget of a run: "usd=+5", or "+5" of the limit that is spent, or "stop". The raised limit is
saved with the plan's settings, so that it applies from then on, in every process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from agentrunner.config.budget import BudgetSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.engine.policies import capped_as_far
from agentrunner.errors import UsageError
from agentrunner.errors.runs import WrongAnswer
from agentrunner.execution.budget_questions import wanted
from agentrunner.money.amount import Amount, total
from agentrunner.money.bill import spent_by
from agentrunner.plans.execution.answers import RAISED
from agentrunner.plans.execution.plan_settings import load_settings, save_settings
from agentrunner.plans.execution.task_runs import TaskRunStore
from agentrunner.plans.execution.task_spec import task_spec
from agentrunner.plans.plan import Plan, PlanTaskStatus
from agentrunner.plans.store import BUDGET, OpenQuestion, PlanStore
from agentrunner.state.budget import STOP, WHOLE, amount_of, limits_of, read_grants, spent_of
from agentrunner.state.people import Question
from agentrunner.state.run_state import Counters
from agentrunner.storage.plan_folder import PlanFolder

LIMITS = ("usd", "tokens")
"""Limits of a plan's budget that count over all its runs."""


class Spending:
    """The plan's budget while the plan is executed."""

    def __init__(self, state_dir: Path, budget: BudgetSpec, run_ids: Iterable[str]) -> None:
        """`run_ids` are the runs of earlier processes."""
        self._state_dir = state_dir
        self.budget = budget
        """The limits."""
        self._by_run = {run_id: spent_by(state_dir, run_id) for run_id in run_ids if run_id}

    @property
    def spent(self) -> Amount:
        """Return what all runs of the plan have spent."""
        return total(self._by_run.values())

    @property
    def reached(self) -> str:
        """Return the name of a limit that is reached; "" while there is room."""
        for name in LIMITS:
            limit = getattr(self.budget, name)
            if limit is not None and getattr(self.spent, name) >= limit:
                return name
        return ""

    def left(self, budget: BudgetSpec) -> BudgetSpec:
        """Return the limits of the next run: no more than the plan has left."""
        most, spent = self.budget, self.spent
        tokens = None if most.tokens is None else max(0, most.tokens - spent.tokens)
        usd = None if most.usd is None else round(max(0.0, most.usd - spent.usd), 6)
        return budget.model_copy(update={"tokens": tokens, "usd": usd})

    def count(self, run_id: str) -> None:
        """Read again what a run has used."""
        self._by_run[run_id] = spent_by(self._state_dir, run_id)


class PlanBudget:
    """The budget of a plan while it is executed."""

    def __init__(
        self,
        spending: Spending,
        store: PlanStore,
        kept: Callable[[], BudgetSpec],
        stamp: Callable[[], str],
        emit: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """`kept` reads the limits that are saved with the plan now; it may raise UsageError."""
        self._spending, self._store, self._kept = spending, store, kept
        self._stamp, self._emit = stamp, emit
        self._asked = 0
        self._stopped = False

    def room(self) -> bool:
        """Whether a further task may start. If not, a person is asked, unless one said stop."""
        if self._spending.reached:
            self._read_answer()
        if self._spending.reached:
            self.question()
            return False
        if (question := self._open()) is not None:
            self._store.answer(question.id, RAISED, self._stamp())
        self._asked = 0
        return True

    def question(self) -> int:
        """Return the number of the question, asked now if needed; 0 where a person said stop."""
        if self._stopped:
            return 0
        known = self._open()
        if known is not None:
            self._asked = known.id
        elif self._spending.reached:
            text = asked_text(self._spending)
            self._asked = self._store.ask(text, self._stamp(), BUDGET)
            fields = {"task_id": BUDGET, "question": self._asked, "text": text}
            self._emit({"event": "plan_question", **fields, "status": str(PlanTaskStatus.BLOCKED)})
        return self._asked

    def more(self, question: Question, spec: TaskSpec, counters: Counters) -> str:
        """Return the grant for a run that asks about a limit of the plan's: all that the plan has
        left.

        "" for any other question, and where the plan has nothing left.
        """
        if not self.is_asked(question) or self._spending.reached:
            return ""
        subject = json.loads(question.subject)
        name = str(subject["limit"])
        left = getattr(self._spending.left(spec.runner.budget), name)
        amount = spent_of(counters)[name] + left - float(subject["of"])
        return f"{name}=+{amount:.0f}" if name in WHOLE else f"{name}=+{max(amount, 1e-6):.6f}"

    def is_asked(self, question: Question | None) -> bool:
        """Whether a run asks about a limit that is the plan's."""
        if question is None or question.kind != "budget":
            return False
        name = str(json.loads(question.subject)["limit"])
        return name in LIMITS and getattr(self._spending.budget, name) is not None

    def _read_answer(self) -> None:
        """Apply a person's answer to the question, given here or with another `plan run`."""
        if not self._asked or self._open() is not None:
            return
        answer = next(q.answer for q in self._store.questions() if q.id == self._asked)
        self._asked = 0
        if (answer or "").strip().lower() == STOP:
            self._stopped = True
            return
        try:
            self._spending.budget = self._kept()
        except UsageError as error:
            self._emit({"event": "warning", "code": error.code, "message": error.in_one_text})

    def _open(self) -> OpenQuestion | None:
        asked = (q for q in self._store.questions() if q.task_id == BUDGET and q.answer is None)
        return next(asked, None)


def asked_text(spending: Spending) -> str:
    """Return the question about the limit that is reached."""
    name = spending.reached
    limit, used = getattr(spending.budget, name), getattr(spending.spent, name)
    least, more = wanted(name, limit, used)
    return (
        f"The plan's budget runner.budget.{name} is spent: {amount_of(name, used)} of "
        f"{amount_of(name, limit)}. No further task begins. Another one needs at least "
        f"{name}=+{least:.12g}. Raise it, such as {name}=+{more:.12g}, or {STOP}?"
    )


def raise_budget(
    folder: PlanFolder,
    plan: Plan,
    text: str,
    *,
    repo: Path,
    state_dir: Path,
    environ: Mapping[str, str],
) -> None:
    """Save with the plan's settings what an answer to the question about the budget grants.

    A stop changes nothing, nor does an answer where the plan has no task. Raises UsageError
    (`wrong-answer`, `policy-breach`) for an answer that raises no limit of the plan, or one further
    than a policy allows. Blocks.
    """
    if text.strip().lower() == STOP or not plan.tasks:
        return
    settings = load_settings(folder, repo)
    spec = task_spec(plan, plan.task_order()[0], settings, repo=repo, environ=environ)
    spec, _ = capped_as_far(spec, environ, state_dir)
    runs = [task_run.run_id for task_run in TaskRunStore(folder).all()]
    asked = Spending(state_dir, spec.runner.budget, runs).reached
    grants = read_grants(text, spec, {}, asked)
    if other := [name for name in grants if name not in LIMITS]:
        raise WrongAnswer(
            f"{other[0]} is no limit of the whole plan.",
            remedy=f"one of {', '.join(LIMITS)}",
        )
    limits = limits_of(spec, {})
    given = [
        f"runner.budget.{name}={_plain(name, limits[name] + amount)}"
        for name, amount in grants.items()
    ]
    save_settings(folder, settings.with_given({}, None, given, Path(settings.base_dir)))


def _plain(name: str, amount: float) -> str:
    return str(int(amount)) if name in WHOLE else f"{amount:.6f}"
