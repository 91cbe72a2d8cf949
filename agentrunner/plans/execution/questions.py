"""Questions of tasks to a person: each is saved with the plan, and with the run it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agentrunner.errors import AgentRunnerError, EnvironmentNotReady
from agentrunner.plans.execution.answers import (
    ASKED_AGAIN,
    BY_ITSELF,
    TRIED_AGAIN,
    head_of,
    unfit_text,
)
from agentrunner.plans.execution.scheduler import TaskOutcome
from agentrunner.plans.execution.task_runs import UNFIT, TaskRun, TaskRunStore
from agentrunner.plans.plan import PlanTaskStatus
from agentrunner.plans.store import PlanStore


class TaskQuestions:
    """Asks about the tasks of one plan, while one process executes it."""

    def __init__(
        self,
        store: PlanStore,
        task_runs: TaskRunStore,
        stamp: Callable[[], str],
        emit: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._store, self._task_runs, self._stamp, self._emit = store, task_runs, stamp, emit
        self._unready = 0
        """The question about set-up or tests, which all tasks share; 0 for none."""

    @property
    def ready(self) -> bool:
        """Whether no question is open about a set-up or tests that keep every task from running."""
        return not (self._unready and self._is_open(self._unready))

    def ask(
        self, task_id: str, status: PlanTaskStatus, text: str, task_run: TaskRun | None = None
    ) -> TaskOutcome:
        """Save a question about a task; `task_run` is the run to be saved with it."""
        task_run = task_run or self._task_runs.latest(task_id)
        number = self._store.ask(text, self._stamp(), task_id)
        if task_run is not None:
            self._task_runs.save(replace(task_run, question=number))
            self.settle(task_run, ASKED_AGAIN, but=number)
        asked = {"task_id": task_id, "question": number, "text": text, "status": str(status)}
        self._emit({"event": "plan_question", **asked})
        detail = first_line(text).removeprefix(head_of(status))
        return TaskOutcome(status, detail, task_run.run_id if task_run else "", number)

    def ask_unfit(
        self, task_id: str, status: PlanTaskStatus, error: AgentRunnerError
    ) -> TaskOutcome:
        """Ask about a task that cannot start or continue as it is."""
        task_run = self._task_runs.latest(task_id)
        asked = replace(task_run, asked=UNFIT) if task_run else None
        return self.ask(task_id, status, unfit_text(error), asked)

    def ask_unready(self, task_id: str, error: EnvironmentNotReady) -> TaskOutcome:
        """Ask about a task without a usable environment; once, if all tasks share the fault."""
        status = PlanTaskStatus.BLOCKED
        if not error.path.startswith("task."):
            return self.ask_unfit(task_id, status, error)
        if self.ready:
            outcome = self.ask_unfit(task_id, status, error)
            self._unready = outcome.question
            return outcome
        task_run = self._task_runs.latest(task_id)
        if task_run is not None:
            self._task_runs.save(replace(task_run, question=self._unready, asked=UNFIT))
        return TaskOutcome(
            status, error.message, task_run.run_id if task_run else "", self._unready
        )

    def taken_up(self, task_run: TaskRun) -> TaskRun:
        """Return the run, without its question where it is tried again without an answer."""
        if task_run.asked != UNFIT:
            return task_run
        self.settle(task_run, TRIED_AGAIN)
        task_run = replace(task_run, question=0, asked="")
        self._task_runs.save(task_run)
        return task_run

    def answer(self, task_run: TaskRun) -> str | None:
        """Return a person's answer to the run's question; "" where it no longer needs one.

        A process that was killed may have settled the question without saving the run.
        """
        reply = next((q.answer for q in self._store.questions() if q.id == task_run.question), None)
        return "" if reply in BY_ITSELF else reply

    def asked(self, task_run: TaskRun) -> str:
        """Return the first line of the run's question; "" where it has none."""
        texts = (q.text for q in self._store.questions() if q.id == task_run.question)
        return first_line(next(texts, ""))

    def settle(self, task_run: TaskRun, how: str, *, but: int = 0) -> None:
        """Close the run's question, as it needs no answer any more, and all others about its task
        except `but`: a killed process may have left one.
        """
        for q in self._store.questions():
            about = q.id == task_run.question or q.task_id == task_run.task_id
            if about and q.answer is None and q.id != but:
                self._store.answer(q.id, how, self._stamp())

    def _is_open(self, question: int) -> bool:
        return any(q.id == question and q.answer is None for q in self._store.questions())


def first_line(text: str) -> str:
    """Return the first line of a text."""
    return text.strip().partition("\n")[0]
