"""Executes a plan in one process, from its store to a branch in the user's repository.

`kill -9` at any point loses nothing: everything is saved in the plan's folder and in those of the
runs, and the next process continues from there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from agentrunner.config.budget import BudgetSpec
from agentrunner.config.markdown import detect_language
from agentrunner.config.spec import EarlierWork, TaskSpec
from agentrunner.engine.policies import capped
from agentrunner.errors import AgentRunnerError
from agentrunner.execution.credentials import secrets_in
from agentrunner.git.private_clone import CloneStore
from agentrunner.notes.plan_note import write_plan_note
from agentrunner.plans.execution.branch_target import BranchTarget
from agentrunner.plans.execution.delivery import Delivered
from agentrunner.plans.execution.forecast import forecast_of
from agentrunner.plans.execution.instructions import PlanInstructions, check_order
from agentrunner.plans.execution.merging.merge_queue import MergeConflict, Merged, TestsRed
from agentrunner.plans.execution.plan_budget import PlanBudget, Spending
from agentrunner.plans.execution.plan_notes import facts_of, leave_notes
from agentrunner.plans.execution.plan_settings import left_text, load_settings
from agentrunner.plans.execution.preflight import check_no_branch
from agentrunner.plans.execution.scheduler import PlanOutcome, Scheduler, exit_code
from agentrunner.plans.execution.task_runner import TaskRuns
from agentrunner.plans.execution.task_runs import TaskRun, TaskRunStore, accepted_apart
from agentrunner.plans.execution.waiting_questions import waiting_questions
from agentrunner.plans.execution.workspaces import MergeOutcome, Workspaces
from agentrunner.plans.plan import Plan
from agentrunner.plans.store import PlanStore
from agentrunner.results import PlanQuestionEntry, PlanResult, PlanUsage, Problem, Result
from agentrunner.storage.events import Event
from agentrunner.storage.index import RunIndex
from agentrunner.storage.locks import me
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.storage.run_folder import refuse_inside
from agentrunner.storage.run_log import append_line, read_lines
from agentrunner.text.redaction import Redactor


class PlanTarget(Protocol):
    """Where a plan is executed in one process, and how its result is delivered."""

    @property
    def workspaces(self) -> Workspaces:
        """Return the workspaces of its tasks; available after `begin`."""

    @property
    def most(self) -> int:
        """Return how many tasks may be at work at once."""

    @property
    def unpublished(self) -> bool:
        """Whether merged work could not be published in the user's repository."""

    async def begin(self, plan: Plan, spec: TaskSpec) -> list[str]:
        """Prepare it, and return notices for a person. `spec` is any task of the plan.

        Raises UsageError where the plan cannot be executed here, or its result not delivered.
        """

    def publish(self) -> None:
        """Publish merged work in the user's repository; warn where that fails. Blocks."""

    async def deliver(self, plan: Plan, questions: list[str]) -> Delivered | None:
        """Deliver the complete result as requested.

        Returns None where nothing was requested.
        """

    def result(self) -> Delivered:
        """Return where the work is."""


class FolderTarget:
    """A folder without git, and the workspace of all tasks, one after another; that is all."""

    most = 1
    unpublished = False
    landing = ""

    def __init__(self, repo: Path, clone: CloneStore, task_runs: TaskRunStore) -> None:
        """`clone` is the private clone that the plan has or would have."""
        self._repo, self._clone, self._task_runs = repo, clone, task_runs

    @property
    def workspaces(self) -> Workspaces:
        return self

    async def begin(self, plan: Plan, spec: TaskSpec) -> list[str]:
        """Raise UsageError (`in-place`) where the plan has begun on a branch."""
        await asyncio.to_thread(check_no_branch, self._clone)
        return ["Not a git repository: tasks work in the folder itself, one after another."]

    def publish(self) -> None:
        """Do nothing: the work is there already."""

    async def deliver(self, plan: Plan, questions: list[str]) -> Delivered | None:
        return None

    def result(self) -> Delivered:
        return Delivered()

    def folder(self, task_run: TaskRun) -> Path:
        return self._repo

    async def open(
        self, task_run: TaskRun, refused: MergeConflict | TestsRed | None = None
    ) -> TaskRun:
        """Only save the run: there is nothing to make."""
        self._task_runs.save(task_run)
        return task_run

    async def is_behind(self, task_run: TaskRun) -> bool:
        return False

    async def earlier_work(self, task_run: TaskRun) -> EarlierWork | None:
        """Nothing is known of that without a repository."""
        return None

    async def merge(
        self, task_run: TaskRun, title: str, result: Result, wanted: Callable[[], bool]
    ) -> MergeOutcome:
        """Do nothing: the work is there already."""
        return Merged("", tuple(result.changed_files))

    async def close(self, task_run: TaskRun) -> None:
        """Do nothing: the files stay."""


KEPT_BACK = 5
"""The exit code where all tasks are done, but the result is not in the user's repository."""


class StoreInbox:
    """The scheduler's inbox: changes and answers in the plan's store, and accepted runs."""

    def __init__(self, store: PlanStore, task_runs: TaskRunStore, state_dir: Path) -> None:
        self._store, self._task_runs, self._index = store, task_runs, RunIndex(state_dir)
        self.plan = store.load()

    def plan_after(self, version: int) -> Plan | None:
        """Return the plan if it has changed since a version; with -1 whether or not it has."""
        if version >= 0 and not self._store.changes(since=version):
            return None
        self.plan = self._store.load()
        return self.plan

    def answered(self, questions: Collection[int]) -> set[int]:
        """Return those of the questions that need no answer any more."""
        known = {q.id for q in self._store.questions() if q.answer is not None}
        known |= accepted_apart(self._task_runs.all(), self._index)
        return known.intersection(questions)


async def execute_plan(
    order: PlanInstructions,
    emit: Callable[[Event], None],
    may_start: Callable[[], bool] = lambda: True,
) -> PlanResult:
    """Execute the plan of a repository as far as it goes without a person.

    `emit` gets the events of the plan and its tasks; no further task starts while `may_start`
    returns False. Raises UsageError where there is nothing to do or the settings are not valid,
    Busy where another process executes the plan, and InfraError where no planner or worker is
    available.
    """
    folder = order.folder
    store = PlanStore(folder.plan)
    refuse_inside(order.options.state_dir, order.repo)
    check_order(order, store.load())
    folder.make()
    lock = folder.lock()
    lock.acquire(me("", order.options.clock.stamp()))
    with contextlib.closing(lock):
        return await _Execution(order, folder, store, emit).to_the_end(may_start)


class _Execution:
    """One process's part in executing a plan; it holds the plan's lock."""

    def __init__(
        self,
        order: PlanInstructions,
        folder: PlanFolder,
        store: PlanStore,
        emit: Callable[[Event], None],
    ) -> None:
        self._order, self._folder, self._store, self._listener = order, folder, store, emit
        self._task_runs = TaskRunStore(folder)
        self._inbox = StoreInbox(store, self._task_runs, order.options.state_dir)
        self._clock = order.options.clock
        self._stop = order.options.stop or asyncio.Event()
        self._seq = max((int(line.get("seq", 0)) for line in read_lines(folder.log)), default=0)
        clone = CloneStore(folder.clone, order.repo)
        self._target: PlanTarget = (
            FolderTarget(order.repo, clone, self._task_runs)
            if order.in_place
            else BranchTarget(order, folder, clone, store, self._task_runs, self._emit)
        )

    async def to_the_end(self, may_start: Callable[[], bool]) -> PlanResult:
        tasks, spec = check_order(self._order, self._inbox.plan)
        notices = await self._target.begin(self._inbox.plan, spec)
        spending = Spending(
            self._order.options.state_dir,
            spec.runner.budget,
            [task_run.run_id for task_run in self._task_runs.all()],
        )
        notices = [*left_text(self._order.settings), *notices]
        forecast = {"notices": notices, **self._forecast(tasks)}
        self._emit({"event": "plan_started", "tasks": tasks, **forecast})
        budget = PlanBudget(spending, self._store, self._kept_budget, self._clock.stamp, self._emit)
        runs = self._runs(spending, budget)
        scheduler = Scheduler(
            self._inbox.plan,
            runs,
            parallel=self._target.most,
            inbox=self._inbox,
            stop=self._stop,
            clock=self._clock,
            only=self._order.only or None,
            may_start=lambda: may_start() and budget.room() and runs.ready,
            on_wait=runs.waits,
        )
        outcome = await scheduler.run()
        self._target.publish()
        result = self._result(outcome, spending)
        try:
            if result.exit_code == 0:
                asked = [question.text for question in result.questions]
                if delivered := await self._target.deliver(self._store.load(), asked):
                    result = result.model_copy(update=asdict(delivered))
        except AgentRunnerError as error:
            failed = {"exit_code": error.exit_code, "error": Problem(**error.as_dict())}
            await self._emit_result(spec, result.model_copy(update=failed))
            raise
        return await self._emit_result(spec, result)

    async def _emit_result(self, spec: TaskSpec, result: PlanResult) -> PlanResult:
        """Write the plan's note and emit the result, also where that was not delivered."""
        note = await self._leave_note(spec, result)
        result = result.model_copy(update={"note": note})
        self._emit({"event": "plan_result", **result.as_dict()})
        return result

    def _forecast(self, tasks: list[str]) -> dict[str, object]:
        state_dir, again = self._order.options.state_dir, self._order.again(self._inbox.plan)
        runs = (
            task_run
            for task_run in self._task_runs.all()
            if self._target.workspaces.folder(task_run).is_dir()
        )
        return asdict(forecast_of(state_dir, self._store, runs, tasks, again))

    async def _leave_note(self, spec: TaskSpec, result: PlanResult) -> str:
        """Write the plan's note, once no task is at work: until then the checkout is left alone."""
        state_dir, now = self._order.options.state_dir, self._clock.now().astimezone()
        redact = Redactor(secrets_in(self._order.options.environ)).redact
        target = (self._order.repo, spec.runner.note.dir)
        notes = await asyncio.to_thread(leave_notes, state_dir, self._folder, *target, redact)
        squashed = self._order.wishes.squash
        facts = await asyncio.to_thread(
            facts_of, state_dir, self._folder, result, notes, squashed=squashed
        )
        written = await asyncio.to_thread(
            write_plan_note,
            *target,
            facts,
            detect_language(facts.goal),
            now=now,
            fallback=self._folder.root / "note.md",
            redact=redact,
        )
        if written.warning:
            self._emit({"event": "warning", "code": "note-elsewhere", "message": written.warning})
        return str(written.path)

    def _kept_budget(self) -> BudgetSpec:
        """Return the budget that is saved with the plan's settings now, within the policies."""
        order = self._order
        kept = load_settings(self._folder, order.repo)
        plan = self._store.load()
        spec = replace(order, settings=kept).spec_of(plan, plan.task_order()[0], order.repo)
        options = order.options
        spec = capped(spec, options.environ, options.state_dir, options.policy)
        return spec.runner.budget

    def _runs(self, spending: Spending, budget: PlanBudget) -> TaskRuns:
        workspaces = self._target.workspaces

        def spec_of(plan: Plan, task_id: str, task_run: TaskRun) -> TaskSpec:
            refused = {
                "evidence": task_run.evidence,
                "marked": task_run.marked,
                "broken": task_run.broken,
            }
            return self._order.spec_of(plan, task_id, workspaces.folder(task_run), **refused)

        return TaskRuns(
            self._store.load,
            self._store,
            self._task_runs,
            workspaces,
            spec_of,
            replace(self._order.options, ask=None, confirm=None, stop=self._stop),
            spending,
            budget,
            emit=self._emit,
            again=self._order.again(self._inbox.plan),
        )

    def _emit(self, event: Mapping[str, Any]) -> None:
        self._seq += 1
        line = {"ts": self._clock.stamp(), "seq": self._seq, **event}
        append_line(self._folder.log, line, sync=False)
        self._listener(line)
        if event["event"] == "plan_landed":
            self._target.publish()

    def _result(self, outcome: PlanOutcome, spending: Spending) -> PlanResult:
        plan = self._store.load()
        wanted = self._order.wanted(plan)
        statuses = {task: plan.tasks[task].status for task in wanted}
        return PlanResult(
            exit_code=exit_code(outcome, statuses)
            or (KEPT_BACK if self._target.unpublished else 0),
            tasks={task: str(plan.shown_status(task)) for task in wanted},
            blocked=list(outcome.blocked),
            questions=[
                PlanQuestionEntry(id=q.id, task_id=q.task_id, text=q.text)
                for q in waiting_questions(self._store)
                if q.task_id
            ],
            budget_spent=spending.reached or None,
            usage=PlanUsage(tokens=spending.spent.tokens, usd=round(spending.spent.usd, 6)),
            interrupted=outcome.interrupted,
            **asdict(self._target.result()),
        )
