"""Where tasks ask a person: each question is kept with the plan, and with the run it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agentrunner.errors import AgentRunnerError, EnvironmentNotReady
from agentrunner.plans.execution.answers import ASKED_AGAIN, BY_ITSELF, TRIED_AGAIN, unfit_text
from agentrunner.plans.execution.scheduler import TaskOutcome
from agentrunner.plans.execution.task_runs import TaskRun, TaskRunStore
from agentrunner.plans.plan import PlanTaskStatus
from agentrunner.plans.store import PlanStore

UNFIT = "unfit"
"""In place of a question of the run: it cannot begin or go on, and each process tries it again."""


class TaskQuestions:
    """Asks about the tasks of one plan, while one process carries it out."""

    def __init__(
        self,
        store: PlanStore,
        book: TaskRunStore,
        stamp: Callable[[], str],
        tell: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._store, self._book, self._stamp, self._tell = store, book, stamp, tell
        self._unready = 0
        """The question about what all tasks share; 0 for none."""

    @property
    def ready(self) -> bool:
        """False while a person is asked about a set-up or tests that no task can be run with."""
        return not (self._unready and self._is_open(self._unready))

    def ask(
        self, task_id: str, status: PlanTaskStatus, text: str, task_run: TaskRun | None = None
    ) -> TaskOutcome:
        """Keep a question about a task; `task_run` is its run as it is to be kept with it."""
        task_run = task_run or self._book.latest(task_id)
        number = self._store.ask(text, self._stamp(), task_id)
        if task_run is not None:
            self._book.save(replace(task_run, question=number))
            self._settle(task_run, ASKED_AGAIN, but=number)
        asked = {"task_id": task_id, "question": number, "text": text, "status": str(status)}
        self._tell({"event": "plan_question", **asked})
        detail = first_line(text).removeprefix(f"{status}: ")
        return TaskOutcome(status, detail, task_run.run_id if task_run else "", number)

    def ask_unfit(
        self, task_id: str, status: PlanTaskStatus, error: AgentRunnerError
    ) -> TaskOutcome:
        """Ask about one that cannot begin or go on as it is."""
        task_run = self._book.latest(task_id)
        asked = replace(task_run, asked=UNFIT) if task_run else None
        return self.ask(task_id, status, unfit_text(error), asked)

    def ask_unready(self, task_id: str, error: EnvironmentNotReady) -> TaskOutcome:
        """Ask about one that cannot be decided about; what all tasks share is asked about once."""
        status = PlanTaskStatus.BLOCKED
        if not error.path.startswith("task."):
            return self.ask_unfit(task_id, status, error)
        if self.ready:
            ending = self.ask_unfit(task_id, status, error)
            self._unready = ending.question
            return ending
        task_run = self._book.latest(task_id)
        if task_run is not None:
            self._book.save(replace(task_run, question=self._unready, asked=UNFIT))
        return TaskOutcome(
            status, error.message, task_run.run_id if task_run else "", self._unready
        )

    def taken_up(self, task_run: TaskRun) -> TaskRun:
        """The run, without its question where it is tried again unasked."""
        if task_run.asked != UNFIT:
            return task_run
        self.settle(task_run, TRIED_AGAIN)
        task_run = replace(task_run, question=0, asked="")
        self._book.save(task_run)
        return task_run

    def answer(self, task_run: TaskRun) -> str | None:
        """What a person said to the run's question; "" where it came to need no answer.

        A process that was killed may have settled it, and not have kept the run without it.
        """
        reply = next((q.answer for q in self._store.questions() if q.id == task_run.question), None)
        return "" if reply in BY_ITSELF else reply

    def asked(self, task_run: TaskRun) -> str:
        """The run's question, its first line; "" where it has none."""
        texts = (q.text for q in self._store.questions() if q.id == task_run.question)
        return first_line(next(texts, ""))

    def settle(self, task_run: TaskRun, how: str) -> None:
        """The run's question needs no answer any more.

        Neither does any other one about its task: one that a process, killed too soon, had asked.
        """
        self._settle(task_run, how)

    def _settle(self, task_run: TaskRun, how: str, but: int = 0) -> None:
        for q in self._store.questions():
            about = q.id == task_run.question or q.task_id == task_run.task_id
            if about and q.answer is None and q.id != but:
                self._store.answer(q.id, how, self._stamp())

    def _is_open(self, question: int) -> bool:
        return any(q.id == question and q.answer is None for q in self._store.questions())


def first_line(text: str) -> str:
    """Of what is told in several."""
    return text.strip().partition("\n")[0]
