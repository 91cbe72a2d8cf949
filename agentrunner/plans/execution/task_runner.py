"""Executes one task of a plan: an ordinary run in its workspace, then the merge of its work.

Whatever a killed process has left is continued: a run is resumed, the work of a COMPLETE one is
merged, and none is started twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.engine import retention, runs
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.unrecorded import has_worked
from agentrunner.errors import (
    AgentRunnerError,
    EnvironmentNotReady,
    InfraError,
    LockHeld,
    UsageError,
)
from agentrunner.errors.runs import StaleAnswer, WrongAnswer
from agentrunner.errors.task_files import PolicyBreach
from agentrunner.plans.execution.answers import (
    SETTLED,
    TRIED_AGAIN,
    afresh,
    allowance_text,
    answer_of,
    apart_text,
    asked_text,
    ended_text,
    is_yes,
)
from agentrunner.plans.execution.inherited_decisions import (
    SavedRun,
    answered_about_plan,
    decided_before,
    is_begun,
    keep_allowance,
    saved_run,
)
from agentrunner.plans.execution.merging.merge_queue import (
    MergeConflict,
    Merged,
    NoLongerPlanned,
    TestsRed,
)
from agentrunner.plans.execution.merging.merge_verdict import text_of_doubts
from agentrunner.plans.execution.plan_budget import PlanBudget, Spending
from agentrunner.plans.execution.questions import TaskQuestions, first_line
from agentrunner.plans.execution.scheduler import TaskOutcome
from agentrunner.plans.execution.task_runs import ALLOWANCE, LANDING, UNFIT, TaskRun, TaskRunStore
from agentrunner.plans.execution.workspaces import Workspaces
from agentrunner.plans.plan import AT_WORK, FELL_SHORT, Plan, PlanTaskStatus
from agentrunner.plans.store import PlanStore, StoredTask
from agentrunner.results import Result
from agentrunner.state.lifecycle import TERMINAL, TaskState
from agentrunner.state.people import BY_PLAN
from agentrunner.storage.locks import me, run_lock
from agentrunner.storage.run_folder import RunFolder, load_spec, new_run_id
from agentrunner.text.times import stamp

MOST_FIXES = 3
"""Runs for work that could not be merged; then a person looks at it."""
GONE = "is no part of the plan any more"
CHANGED = "was changed, and begins anew"

Event = Mapping[str, Any]
SpecOf = Callable[[Plan, str, TaskRun], TaskSpec]
WRONG_ANSWERS = (WrongAnswer, StaleAnswer, PolicyBreach)


class TaskRuns:
    """Executes tasks of one plan; several at once in one process."""

    def __init__(
        self,
        plan: Callable[[], Plan],
        store: PlanStore,
        task_runs: TaskRunStore,
        workspaces: Workspaces,
        spec_of: SpecOf,
        options: Options,
        spending: Spending,
        budget: PlanBudget,
        *,
        emit: Callable[[Event], None],
        again: frozenset[str] = frozenset(),
    ) -> None:
        """Take `spec_of`, which makes the task of a run, and `emit`, which gets the events of
        tasks.

        Tasks in `again` that FAILED or need review start their next attempt without a question.
        """
        self._plan, self._store, self._task_runs, self._workspaces = (
            plan,
            store,
            task_runs,
            workspaces,
        )
        self._spec_of, self._options = spec_of, options
        self._spending, self._budget = spending, budget
        self._emit, self._again = emit, set(again)
        self._standings = store.standings()
        self._tries: dict[str, int] = {}
        self._questions = TaskQuestions(store, task_runs, options.clock.stamp, emit)

    @property
    def ready(self) -> bool:
        """See `TaskQuestions.ready`."""
        return self._questions.ready

    async def __call__(self, task_id: str, failures: int, stop: asyncio.Event) -> TaskOutcome:
        """Execute a task until it is merged, has ended otherwise, waits for a person, or `stop`
        ends it.

        Raises errors that are neither the run's nor the machine's fault.
        """
        try:
            outcome = await self._execute(task_id, stop)
        except EnvironmentNotReady as error:
            outcome = self._questions.ask_unready(task_id, error)
        except (InfraError, OSError, sqlite3.Error) as error:
            if isinstance(error, InfraError) and not error.passes:
                outcome = self._questions.ask_unfit(task_id, PlanTaskStatus.BLOCKED, error)
            else:
                outcome = TaskOutcome(
                    PlanTaskStatus.RETRY_WAIT,
                    held_by(error) if isinstance(error, LockHeld) else str(error),
                    self._run_of(task_id),
                    busy=isinstance(error, LockHeld),
                )
        except UsageError as error:
            outcome = self._questions.ask_unfit(task_id, PlanTaskStatus.FAILED, error)
        self._spending.count(outcome.run_id)
        self._tries[task_id] = 0 if outcome.busy else failures + 1
        if outcome.status != PlanTaskStatus.RETRY_WAIT:  # `waits` saves that one, with the time
            self._note(task_id, outcome.status, outcome.detail)
        return outcome

    def waits(self, task_id: str, outcome: TaskOutcome, seconds: float | None) -> None:
        """Save an infrastructure error of a task, which is tried again in `seconds`, if any."""
        at = ""
        if seconds is not None:
            at = stamp(self._options.clock.now() + timedelta(seconds=seconds))
        tries = self._tries[task_id]
        self._keep(StoredTask(task_id, outcome.status, outcome.run_id, tries, at, outcome.detail))

    # -- runs -----------------------------------------------------------------------------------

    async def _execute(self, task_id: str, stop: asyncio.Event) -> TaskOutcome:
        if task_id not in self._plan().tasks:
            return TaskOutcome(PlanTaskStatus.PENDING, GONE, self._run_of(task_id))
        task_run, paid = await self._current_run(task_id), ""
        while (plan := self._plan_of(task_run)) is not None:
            result = await self._run(task_run, plan, stop)
            task_run = self._task_runs.latest(task_id) or task_run
            if result is None:
                return self._still_open(task_run)
            self._spending.count(str(result.run_id))
            if (plan := self._plan_of(task_run)) is None:
                break
            if result.state != TaskState.COMPLETE:
                bill = await self._asks_for_budget(task_run, result)
                if bill in ("", paid):
                    return await self._unfinished(task_run, result)
                if self._spending.reached:
                    return self._unpaid(task_run)
                paid = bill
                continue
            task_run = self._allowed(task_run)
            self._note(task_id, PlanTaskStatus.VALIDATING, self._workspaces.landing)
            try:
                landed = await self._workspaces.merge(
                    task_run, _title(plan, task_id), result, partial(self._wanted, task_run)
                )
            except NoLongerPlanned:
                break
            if isinstance(landed, Merged):
                return await self._on_merged(task_run, landed)
            words = self._answer_about_merge(task_run)
            if isinstance(landed, TestsRed) and landed.asks and words is None:
                asked = replace(task_run, asked=ALLOWANCE, hollow=landed.unproven)
                text = allowance_text(landed.asks)
                return self._questions.ask(task_id, PlanTaskStatus.NEEDS_REVIEW, text, asked)
            if task_run.fixes >= MOST_FIXES and words is None:
                text = apart_text(MOST_FIXES, first_line(landed.evidence))
                asked = replace(task_run, asked=LANDING)
                return self._questions.ask(task_id, PlanTaskStatus.NEEDS_REVIEW, text, asked)
            task_run = await self._next(task_run, landed, words)
        return await self._leave(task_run)

    async def _current_run(self, task_id: str) -> TaskRun:
        """Return the run that the task is in; a new one where none can be continued."""
        task_run = self._task_runs.latest(task_id)
        if task_run is None:
            return await self._open(TaskRun(task_id, 1))
        if self._plan_of(task_run) is None:
            await self._leave(task_run)
        elif self._workspaces.folder(task_run).is_dir():
            return await self._from_the_head(task_run)
        self._questions.settle(task_run, TRIED_AGAIN)
        return await self._open(TaskRun(task_id, task_run.number + 1))

    async def _from_the_head(self, task_run: TaskRun) -> TaskRun:
        """Return the run, begun anew where the branch has gone on and nothing of it would be lost.

        A commit of the person's may have what kept it from starting, or what it failed for.
        """
        state_dir, unfit = self._options.state_dir, task_run.asked == UNFIT
        begun = is_begun(state_dir, task_run.run_id)
        if begun:
            await asyncio.to_thread(self._check_free, task_run)
        task_run = self._questions.taken_up(task_run)
        if begun and not unfit:
            return await self._afresh(task_run) or task_run
        if begun and await asyncio.to_thread(
            lambda: has_worked(RunFolder.open(state_dir, task_run.run_id))
        ):
            return task_run
        if not await self._workspaces.is_behind(task_run):
            return task_run
        if begun:
            await asyncio.to_thread(retention.forget, state_dir, task_run.run_id)
        if not is_begun(state_dir, task_run.run_id):
            return await self._open(replace(task_run, run_id=""))
        await self._leave(task_run)  # its planner was asked: what that cost is kept
        return await self._open(TaskRun(task_run.task_id, task_run.number + 1))

    def _check_free(self, task_run: TaskRun) -> None:
        """Raise LockHeld where another process drives the run: answers about it are kept until it
        has ended there.
        """
        folder = RunFolder.open(self._options.state_dir, task_run.run_id)
        with contextlib.closing(run_lock(folder)) as lock:
            lock.acquire(me(task_run.run_id, self._options.clock.stamp()))

    async def _afresh(self, task_run: TaskRun) -> TaskRun | None:
        """Return a new run from the branch's head where a person wants one tried again that ended,
        or whose worker could not work.

        With their answer, if any. None where nobody wants that, where the head is the same, where
        its workers changed something and the person does not say that it is to begin afresh. Raises
        LockHeld where another process drives it.
        """
        answer = self._questions.answer(task_run) or ""
        if not answer and task_run.task_id not in self._again:
            return None
        if not await self._workspaces.is_behind(task_run):
            return None
        saved = await saved_run(self._options.state_dir, task_run.run_id)
        waits, result, words = saved.question is not None, saved.result, afresh(answer)
        if result is None or not (_unable(saved, answer) if waits else _ended(task_run, result)):
            return None
        if words is None and result.changed_files:
            return None
        if waits:
            answer = "" if is_yes(answer) else answer
            await self._cancel(task_run)
            await asyncio.to_thread(self._check_free, task_run)  # taken up before it could be ended
        fresh = TaskRun(
            task_run.task_id,
            task_run.number + 1,
            words=answer if words is None else words,
            words_for=self._questions.asked(task_run) if answer else "",
        )
        self._again.discard(task_run.task_id)
        self._questions.settle(task_run, TRIED_AGAIN)
        opened = await self._open(fresh)
        await self._workspaces.close(task_run)
        return opened

    def _plan_of(self, task_run: TaskRun) -> Plan | None:
        """Return the present plan; None where the run's task is gone from it or has changed."""
        plan = self._plan()
        if task_run.task_id not in plan.tasks:
            return None
        return plan if task_run.asked_for in ("", asked_for(plan, task_run.task_id)) else None

    def _wanted(self, task_run: TaskRun) -> bool:
        return self._plan_of(task_run) is not None

    async def _leave(self, task_run: TaskRun) -> TaskOutcome:
        """End a run that the plan no longer wants; what it made stays in its run's folder."""
        await self._cancel(task_run)
        self._questions.settle(task_run, SETTLED)
        await self._workspaces.close(task_run)
        detail = CHANGED if task_run.task_id in self._plan().tasks else GONE
        return TaskOutcome(PlanTaskStatus.PENDING, detail, task_run.run_id)

    async def _cancel(self, task_run: TaskRun) -> None:
        options = replace(self._options, stop=asyncio.Event())
        with contextlib.suppress(AgentRunnerError, OSError):  # it is dropped in any case
            if is_begun(self._options.state_dir, task_run.run_id):
                await runs.cancel(task_run.run_id, options)

    async def _next(
        self, task_run: TaskRun, refused: MergeConflict | TestsRed, words: str | None = None
    ) -> TaskRun:
        """Open another run for refused work; a person's `words` reset the number of fixes."""
        comment = f"\n\nA person has looked at it and says: {words}" if words else ""
        evidence = refused.evidence + comment
        self._note(task_run.task_id, PlanTaskStatus.FIXING, first_line(refused.evidence))
        self._emit({"event": "plan_fixing", "task_id": task_run.task_id, "evidence": evidence})
        broken = refused.broken if isinstance(refused, TestsRed) else ()
        fresh = TaskRun(
            task_run.task_id,
            task_run.number + 1,
            evidence=evidence,
            broken=tuple(p.as_criterion().model_dump(exclude_defaults=True) for p in broken),
            fixes=1 if words is not None else task_run.fixes + 1,
            words=words or "",
            words_for=self._questions.asked(task_run) if words else "",
        )
        opened = await self._open(fresh, refused)
        await self._workspaces.close(task_run)
        return opened

    async def _open(
        self, task_run: TaskRun, refused: MergeConflict | TestsRed | None = None
    ) -> TaskRun:
        opened = await self._workspaces.open(task_run, refused)
        folder = str(self._workspaces.folder(opened))
        self._emit({"event": "plan_opened", "task_id": task_run.task_id, "folder": folder})
        return opened

    async def _on_merged(self, task_run: TaskRun, landed: Merged) -> TaskOutcome:
        self._questions.settle(task_run, SETTLED)
        ending = TaskOutcome(
            PlanTaskStatus.COMPLETE, text_of_doubts(landed.doubts), task_run.run_id
        )
        self._note(task_run.task_id, ending.status, ending.detail)
        what = {"commit": landed.commit, "files": list(landed.files)}
        self._emit({"event": "plan_landed", "task_id": task_run.task_id, **what})
        if ending.detail:
            fields = {
                "message": f"{task_run.task_id}: {ending.detail}",
                "task_id": task_run.task_id,
            }
            self._emit({"event": "warning", "code": "fresh-checkout", **fields})
        await self._workspaces.close(task_run)
        return ending

    # -- one run --------------------------------------------------------------------------------

    async def _run(self, task_run: TaskRun, plan: Plan, stop: asyncio.Event) -> Result | None:
        """Drive the task's run as far as it goes; return None where it waits for a person."""
        options = replace(
            self._options, on_event=lambda event: self._on_event(task_run.task_id, event), stop=stop
        )
        if not is_begun(self._options.state_dir, task_run.run_id):
            return await self._start(task_run, plan, options)
        saved = await saved_run(self._options.state_dir, task_run.run_id)
        if saved.result is not None and saved.result.state == TaskState.COMPLETE:
            return None if self._waits_to_land(task_run) else saved.result
        ended = saved.state is not None and saved.state["state"] in TERMINAL
        changed_spec = await self._changed_spec(task_run, plan)
        arguments: dict[str, Any] = {"on_change": "continue", "instead": changed_spec}
        if not ended and saved.question is None:
            return await runs.resume(task_run.run_id, options, **arguments)
        if saved.question is not None and self._budget.is_asked(saved.question):
            return await self._pay(task_run, saved, options)
        answer = self._questions.answer(task_run)
        if saved.question is not None and changed_spec is None:
            if task_run.asked != saved.question.id or answer == "":
                return saved.result
            return None if answer is None else await self._respond(task_run, saved, answer, options)
        if (
            answer is None
            and task_run.task_id not in self._again
            and (ended or changed_spec is None)
        ):
            return None if task_run.question else saved.result
        self._again.discard(task_run.task_id)
        asked = self._questions.asked(task_run) if answer else ""
        self._questions.settle(task_run, TRIED_AGAIN)
        self._task_runs.save(replace(task_run, question=0))
        arguments |= {"message": answer, "asked": asked}
        return await runs.resume(task_run.run_id, options, **arguments)

    async def _changed_spec(self, task_run: TaskRun, plan: Plan) -> TaskSpec | None:
        """Return the task if its settings, or files that they name, differ from those its run began
        with, else None.
        """
        kept = load_spec(RunFolder.open(self._options.state_dir, task_run.run_id))
        spec = self._spec_of(plan, task_run.task_id, task_run)
        same = kept.plan_settings in ("", spec.plan_settings) and kept.texts == spec.texts
        return None if same else await self._with_earlier(spec, task_run)

    async def _with_earlier(self, spec: TaskSpec, task_run: TaskRun) -> TaskSpec:
        """Return the task with what other workers wrote before its run."""
        earlier = await self._workspaces.earlier_work(task_run)
        return spec.model_copy(update={"earlier": earlier}) if earlier else spec

    async def _start(self, task_run: TaskRun, plan: Plan, options: Options) -> Result:
        """Start the run, under an id that is saved before anything else of it exists."""
        spec = self._within_limits(self._spec_of(plan, task_run.task_id, task_run))
        spec = await self._with_earlier(spec, task_run)
        name = task_run.run_id or new_run_id(task_run.task_id, secrets.token_bytes(4))
        self._task_runs.save(
            replace(task_run, run_id=name, asked_for=asked_for(plan, task_run.task_id))
        )
        rounds, at = self._task_runs.of(task_run.task_id), self._options.clock.stamp()
        answers = answered_about_plan(self._store)
        before = await decided_before(self._options.state_dir, rounds, task_run, at, answers)
        return await runs.start(spec, options, run_id=name, people=before)

    async def _respond(
        self, task_run: TaskRun, saved: SavedRun, answer: str, options: Options, by: str = ""
    ) -> Result:
        """Give the run its answer; where it does not fit the question, ask once more."""
        assert saved.question is not None and saved.result is not None
        try:
            words = answer_of(saved.question, answer).model_copy(update={"by": by})
            return await runs.respond(task_run.run_id, words, options)
        except WRONG_ANSWERS as error:
            assert saved.result.waiting is not None
            again = {"text": f"{error.in_one_text}\n{saved.question.text}"}
            waiting = saved.result.waiting.model_copy(update=again)
            return saved.result.model_copy(update={"waiting": waiting})

    async def _pay(self, task_run: TaskRun, saved: SavedRun, options: Options) -> Result | None:
        """Grant a run that has spent its part of the plan's budget what the plan has left."""
        assert saved.question is not None and saved.state is not None
        spec = load_spec(RunFolder.open(self._options.state_dir, task_run.run_id))
        more = self._budget.more(saved.question, spec, saved.state["counters"])
        if not more:
            return saved.result
        return await self._respond(task_run, saved, more, options, by=BY_PLAN)

    async def _asks_for_budget(self, task_run: TaskRun, result: Result) -> str:
        """Return the id of the run's question about the plan's budget; "" for none."""
        if result.waiting is None or result.waiting.kind != "budget":
            return ""
        question = (await saved_run(self._options.state_dir, task_run.run_id)).question
        return question.id if question is not None and self._budget.is_asked(question) else ""

    def _within_limits(self, spec: TaskSpec) -> TaskSpec:
        """Return the task within the plan's budget; its folder is kept until the merge."""
        left, days = self._spending.left(spec.runner.budget), spec.runner.retention_days or 1
        return spec.with_runner(budget=left, retention_days=days)

    def _on_event(self, task_id: str, event: dict[str, Any]) -> None:
        """Pass an event of the run on, and save the task's new status."""
        self._options.on_event(event)
        if event["event"] == "run_started":
            self._note(task_id, PlanTaskStatus.PLANNING)
        elif event["event"] == "run_resumed":
            self._note(task_id, PlanTaskStatus.RUNNING)
        elif event["event"] == "state_changed":
            status = PlanTaskStatus.__members__.get(event["to"])
            if status in AT_WORK:
                self._note(task_id, status)

    # -- what a person is asked -----------------------------------------------------------------

    async def _unfinished(self, task_run: TaskRun, result: Result) -> TaskOutcome:
        if result.waiting is not None:
            asked = replace(task_run, asked=result.waiting.id)
            return self._questions.ask(
                task_run.task_id, PlanTaskStatus.BLOCKED, asked_text(result.waiting), asked
            )
        if result.state in TERMINAL:
            status = PlanTaskStatus(result.state)
            text = ended_text(result, behind=await self._workspaces.is_behind(task_run))
            return self._questions.ask(task_run.task_id, status, text, task_run)
        return TaskOutcome(PlanTaskStatus.STOPPED, run_id=task_run.run_id)

    def _unpaid(self, task_run: TaskRun) -> TaskOutcome:
        """Return BLOCKED: the plan's budget is spent. All such tasks share one question."""
        number = self._budget.question()
        return TaskOutcome(
            PlanTaskStatus.BLOCKED, "the plan's budget is spent", task_run.run_id, number
        )

    def _still_open(self, task_run: TaskRun) -> TaskOutcome:
        """Return the earlier outcome: a question was asked before, and is not answered."""
        earlier = self._standings.get(task_run.task_id)
        detail = earlier.detail if earlier else ""
        ended = earlier and earlier.status in FELL_SHORT
        status = earlier.status if earlier and ended else PlanTaskStatus.BLOCKED
        return TaskOutcome(status, detail, task_run.run_id, task_run.question)

    def _waits_to_land(self, task_run: TaskRun) -> bool:
        """Whether a person was asked about work that could not be merged, and has not answered."""
        answered = self._questions.answer(task_run) is not None or task_run.task_id in self._again
        return task_run.asked in (LANDING, ALLOWANCE) and not answered

    def _allowed(self, task_run: TaskRun) -> TaskRun:
        """Return the run; if a person agreed, it may change what proves other tasks."""
        if task_run.asked != ALLOWANCE or not is_yes(self._questions.answer(task_run) or ""):
            return task_run
        keep_allowance(
            self._options.state_dir,
            task_run,
            self._questions.asked(task_run),
            self._options.clock.stamp(),
        )
        allowed = (*task_run.allowed, *task_run.hollow)
        task_run = replace(task_run, allowed=allowed, hollow=(), question=0, asked="")
        self._task_runs.save(task_run)
        return task_run

    def _answer_about_merge(self, task_run: TaskRun) -> str | None:
        """Return a person's answer about refused work, "" to just try again; else None."""
        if task_run.asked not in (LANDING, ALLOWANCE) or self._waits_to_land(task_run):
            return None
        words = self._questions.answer(task_run)
        self._again.discard(task_run.task_id)
        self._questions.settle(task_run, TRIED_AGAIN)
        return words or ""

    # -- notes ----------------------------------------------------------------------------------

    def _note(self, task_id: str, status: PlanTaskStatus, detail: str = "") -> None:
        standing = StoredTask(task_id, status, self._run_of(task_id), detail=detail)
        if standing != self._standings.get(task_id):
            self._keep(standing)

    def _keep(self, standing: StoredTask) -> None:
        self._standings[standing.task_id] = standing
        self._store.note(standing, self._options.clock.stamp())
        self._emit({"event": "plan_task", **asdict(standing), "status": str(standing.status)})

    def _run_of(self, task_id: str) -> str:
        task_run = self._task_runs.latest(task_id)
        return task_run.run_id if task_run else ""


def _ended(task_run: TaskRun, result: Result) -> bool:
    """Whether a run ended otherwise than COMPLETE, and nothing else is asked about it."""
    return not task_run.asked and result.state in TERMINAL - {TaskState.COMPLETE}


def _unable(saved: SavedRun, answer: str) -> bool:
    """Whether a run waits as its worker could not work, and a person wants that tried again."""
    assert saved.question is not None
    again = not answer or is_yes(answer) or afresh(answer) is not None
    return again and saved.question.kind == "worker_failed"


def _title(plan: Plan, task_id: str) -> str:
    return " ".join(plan.design_of(task_id).title.split())


def asked_for(plan: Plan, task_id: str) -> str:
    """Return a short digest of what a task has to do: it differs for another task."""
    return hashlib.sha256(repr(plan.design_of(task_id).asked_for).encode()).hexdigest()[:16]


def held_by(error: LockHeld) -> str:
    """Return who holds the lock that a task waits for, and how that is looked at or ended."""
    facts = ", ".join(f"{label} {text}" for label, text in error.details)
    return f"{error.message}{f' ({facts})' if facts else ''}: {error.remedy}"
