"""One task of a plan, carried out: an ordinary run in its work tree, then its landing.

Whatever a process that was killed has left is gone on with: a run is resumed, one that is COMPLETE
is landed, and none is begun twice.
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
from agentrunner.engine import runs
from agentrunner.engine.attempt_run import Options
from agentrunner.errors import AgentRunnerError, EnvironmentNotReady, InfraError, UsageError
from agentrunner.errors.runs import StaleAnswer, WrongAnswer
from agentrunner.errors.task_files import PolicyBreach
from agentrunner.plans.execution.answers import (
    SETTLED,
    TRIED_AGAIN,
    allowance_text,
    answer_of,
    apart_text,
    asked_text,
    ended_text,
    is_yes,
)
from agentrunner.plans.execution.decisions import decided_before, keep_allowance
from agentrunner.plans.execution.merging.merge_queue import (
    Conflict,
    Merged,
    NoLongerPlanned,
    TestsRed,
)
from agentrunner.plans.execution.merging.merge_verdict import text_of_doubts
from agentrunner.plans.execution.plan_budget import PlanBudget
from agentrunner.plans.execution.questions import TaskQuestions, first_line
from agentrunner.plans.execution.rounds import Round, RoundBook
from agentrunner.plans.execution.saved_run import SavedRun, is_begun, saved_run
from agentrunner.plans.execution.scheduler import TaskOutcome
from agentrunner.plans.execution.spending import Spending
from agentrunner.plans.execution.workspaces import Workspaces
from agentrunner.plans.plan import AT_WORK, FELL_SHORT, Plan, PlanTaskStatus
from agentrunner.plans.store import PlanStore, StoredTask
from agentrunner.results import Result
from agentrunner.state.lifecycle import TERMINAL, TaskState
from agentrunner.state.run_state import BY_PLAN
from agentrunner.storage.events import timestamp
from agentrunner.storage.run_folder import RunFolder, load_spec, new_run_id

MOST_FIXES = 3
"""Rounds for work that could not be brought together; then a person looks at it."""
GONE = "is no part of the plan any more"
CHANGED = "was changed, and begins anew"
LANDING, ALLOWANCE = "landing", "allowance"
"""In place of a question of the run: it is asked about work that is COMPLETE and does not land,
as it does not go together with the rest, or as it changes what proves others."""
WRONG_ANSWERS = (WrongAnswer, StaleAnswer, PolicyBreach)

Event = Mapping[str, Any]
SpecOf = Callable[[Plan, str, Round], TaskSpec]


class TaskRuns:
    """Carries tasks of one plan out; several at once in one process."""

    def __init__(
        self,
        plan: Callable[[], Plan],
        store: PlanStore,
        book: RoundBook,
        places: Workspaces,
        spec_of: SpecOf,
        options: Options,
        purse: Spending,
        budget: PlanBudget,
        *,
        tell: Callable[[Event], None],
        again: frozenset[str] = frozenset(),
    ) -> None:
        """`spec_of` makes a round's task; `tell` hears what happens to tasks.

        Tasks in `again` have their next attempt where they FAILED or need review, unasked.
        """
        self._plan, self._store, self._book, self._places = plan, store, book, places
        self._spec_of, self._options = spec_of, options
        self._purse, self._budget = purse, budget
        self._tell, self._again = tell, set(again)
        self._standings = store.standings()
        self._tries: dict[str, int] = {}
        self._desk = TaskQuestions(store, book, options.clock.stamp, tell)

    @property
    def ready(self) -> bool:
        """See `TaskQuestions.ready`."""
        return self._desk.ready

    async def __call__(self, task_id: str, failures: int, stop: asyncio.Event) -> TaskOutcome:
        """Until it has landed, ended otherwise, waits for a person, or `stop` ended it in order.

        Raises what is neither the run's nor the machine's fault.
        """
        try:
            ending = await self._carry_out(task_id, stop)
        except EnvironmentNotReady as error:
            ending = self._desk.ask_unready(task_id, error)
        except (InfraError, OSError, sqlite3.Error) as error:
            ending = TaskOutcome(PlanTaskStatus.RETRY_WAIT, str(error), self._run_of(task_id))
        except UsageError as error:
            ending = self._desk.ask_unfit(task_id, PlanTaskStatus.FAILED, error)
        self._purse.count(ending.run_id)
        self._tries[task_id] = failures + 1
        if ending.status != PlanTaskStatus.RETRY_WAIT:  # that `waits` says, with the time
            self._note(task_id, ending.status, ending.detail)
        return ending

    def waits(self, task_id: str, ending: TaskOutcome, seconds: float | None) -> None:
        """Its surroundings have failed; it is tried again after so many seconds, None: not now."""
        at = ""
        if seconds is not None:
            at = timestamp(self._options.clock.now() + timedelta(seconds=seconds))
        tries = self._tries[task_id]
        self._keep(StoredTask(task_id, ending.status, ending.run_id, tries, at, ending.detail))

    # -- rounds ---------------------------------------------------------------------------------

    async def _carry_out(self, task_id: str, stop: asyncio.Event) -> TaskOutcome:
        if task_id not in self._plan().tasks:
            return TaskOutcome(PlanTaskStatus.PENDING, GONE, self._run_of(task_id))
        turn, paid = await self._round(task_id), ""
        while (plan := self._plan_of(turn)) is not None:
            result = await self._run(turn, plan, stop)
            turn = self._book.latest(task_id) or turn
            if result is None:
                return self._still_open(turn)
            self._purse.count(str(result.run_id))
            if (plan := self._plan_of(turn)) is None:
                break
            if result.state != TaskState.COMPLETE:
                bill = await self._asks_for_budget(turn, result)
                if bill in ("", paid):
                    return self._unfinished(turn, result)
                if self._purse.reached:
                    return self._unpaid(turn)
                paid = bill
                continue
            turn = self._allowed(turn)
            self._note(task_id, PlanTaskStatus.VALIDATING, self._places.landing)
            try:
                landed = await self._places.land(
                    turn, _title(plan, task_id), result, partial(self._wanted, turn)
                )
            except NoLongerPlanned:
                break
            if isinstance(landed, Merged):
                return await self._landed(turn, landed)
            words = self._more_rounds(turn)
            if isinstance(landed, TestsRed) and landed.asks and words is None:
                asked = replace(turn, asked=ALLOWANCE, hollow=landed.hollow)
                text = allowance_text(landed.asks)
                return self._desk.ask(task_id, PlanTaskStatus.NEEDS_REVIEW, text, asked)
            if turn.fixes >= MOST_FIXES and words is None:
                text = apart_text(MOST_FIXES, first_line(landed.evidence))
                asked = replace(turn, asked=LANDING)
                return self._desk.ask(task_id, PlanTaskStatus.NEEDS_REVIEW, text, asked)
            turn = await self._next(turn, landed, words)
        return await self._leave(turn)

    async def _round(self, task_id: str) -> Round:
        """The round that the task is in; a new one where there is none that it can go on with."""
        turn = self._book.latest(task_id)
        if turn is None:
            return await self._open(Round(task_id, 1))
        if self._plan_of(turn) is None:
            await self._leave(turn)
        elif self._places.folder(turn).is_dir():
            return self._desk.taken_up(turn)
        self._desk.settle(turn, TRIED_AGAIN)
        return await self._open(Round(task_id, turn.number + 1))

    def _plan_of(self, turn: Round) -> Plan | None:
        """The plan as it is now; None where a round is for a task that it has not, or not so."""
        plan = self._plan()
        if turn.task_id not in plan.tasks:
            return None
        return plan if turn.asked_for in ("", asked_for(plan, turn.task_id)) else None

    def _wanted(self, turn: Round) -> bool:
        return self._plan_of(turn) is not None

    async def _leave(self, turn: Round) -> TaskOutcome:
        """End a round that nobody wants any more; what it made is in its run's folder."""
        options = replace(self._options, stop=asyncio.Event())
        with contextlib.suppress(AgentRunnerError, OSError):  # it is wanted no more all the same
            if is_begun(self._options.state_dir, turn.run_id):
                await runs.cancel(turn.run_id, options)
        self._desk.settle(turn, SETTLED)
        await self._places.close(turn)
        detail = CHANGED if turn.task_id in self._plan().tasks else GONE
        return TaskOutcome(PlanTaskStatus.PENDING, detail, turn.run_id)

    async def _next(
        self, turn: Round, refused: Conflict | TestsRed, words: str | None = None
    ) -> Round:
        """Another round for what was refused; with a person's `words`, the first of as many."""
        comment = f"\n\nA person has looked at it and says: {words}" if words else ""
        evidence = refused.evidence + comment
        self._note(turn.task_id, PlanTaskStatus.FIXING, first_line(refused.evidence))
        self._tell({"event": "plan_fixing", "task_id": turn.task_id, "evidence": evidence})
        broken = refused.broken if isinstance(refused, TestsRed) else ()
        fresh = Round(
            turn.task_id,
            turn.number + 1,
            evidence=evidence,
            broken=tuple(p.as_criterion().model_dump(exclude_defaults=True) for p in broken),
            fixes=1 if words is not None else turn.fixes + 1,
            words=words or "",
            words_for=self._desk.asked(turn) if words else "",
        )
        opened = await self._open(fresh, refused)
        await self._places.close(turn)
        return opened

    async def _open(self, turn: Round, refused: Conflict | TestsRed | None = None) -> Round:
        opened = await self._places.open(turn, refused)
        folder = str(self._places.folder(opened))
        self._tell({"event": "plan_opened", "task_id": turn.task_id, "folder": folder})
        return opened

    async def _landed(self, turn: Round, landed: Merged) -> TaskOutcome:
        self._desk.settle(turn, SETTLED)
        ending = TaskOutcome(PlanTaskStatus.COMPLETE, text_of_doubts(landed.doubts), turn.run_id)
        self._note(turn.task_id, ending.status, ending.detail)
        what = {"commit": landed.commit, "files": list(landed.files)}
        self._tell({"event": "plan_landed", "task_id": turn.task_id, **what})
        if ending.detail:
            fields = {"message": f"{turn.task_id}: {ending.detail}", "task_id": turn.task_id}
            self._tell({"event": "warning", "code": "fresh-checkout", **fields})
        await self._places.close(turn)
        return ending

    # -- one run --------------------------------------------------------------------------------

    async def _run(self, turn: Round, plan: Plan, stop: asyncio.Event) -> Result | None:
        """Drive the round's run as far as it goes now; None where it still waits for a person."""
        options = replace(
            self._options, on_event=lambda event: self._hear(turn.task_id, event), stop=stop
        )
        if not is_begun(self._options.state_dir, turn.run_id):
            return await self._start(turn, plan, options)
        saved = await saved_run(self._options.state_dir, turn.run_id)
        if saved.result is not None and saved.result.state == TaskState.COMPLETE:
            return None if self._waits_to_land(turn) else saved.result
        ended = saved.state is not None and saved.state["state"] in TERMINAL
        anew = self._anew(turn, plan)
        how: dict[str, Any] = {"on_change": "continue", "instead": anew}
        if not ended and saved.question is None:
            return await runs.resume(turn.run_id, options, **how)
        if saved.question is not None and self._budget.is_asked(saved.question):
            return await self._pay(turn, saved, options)
        answer = self._desk.answer(turn)
        if saved.question is not None and anew is None:
            if turn.asked != saved.question.id or answer == "":
                return saved.result
            return None if answer is None else await self._respond(turn, saved, answer, options)
        if answer is None and turn.task_id not in self._again and (ended or anew is None):
            return None if turn.question else saved.result
        self._again.discard(turn.task_id)
        asked = self._desk.asked(turn) if answer else ""
        self._desk.settle(turn, TRIED_AGAIN)
        self._book.save(replace(turn, question=0))
        how |= {"message": answer, "asked": asked}
        return await runs.resume(turn.run_id, options, **how)

    def _anew(self, turn: Round, plan: Plan) -> TaskSpec | None:
        """The task under other settings than its run began with; None where they are the same."""
        kept = load_spec(RunFolder.open(self._options.state_dir, turn.run_id)).plan_settings
        spec = self._spec_of(plan, turn.task_id, turn)
        return None if kept in ("", spec.plan_settings) else spec

    async def _start(self, turn: Round, plan: Plan, options: Options) -> Result:
        """Begin the run, under a name that is kept before there is anything of it."""
        spec = self._within_limits(self._spec_of(plan, turn.task_id, turn))
        name = turn.run_id or new_run_id(turn.task_id, secrets.token_bytes(4))
        self._book.save(replace(turn, run_id=name, asked_for=asked_for(plan, turn.task_id)))
        rounds, at = self._book.of(turn.task_id), self._options.clock.stamp()
        before = await decided_before(self._options.state_dir, rounds, turn, at)
        return await runs.start(spec, options, run_id=name, people=before)

    async def _respond(
        self, turn: Round, saved: SavedRun, answer: str, options: Options, by: str = ""
    ) -> Result:
        """Give the run its answer; asked once more where it is none to its question."""
        assert saved.question is not None and saved.result is not None
        try:
            words = answer_of(saved.question, answer).model_copy(update={"by": by})
            return await runs.respond(turn.run_id, words, options)
        except WRONG_ANSWERS as error:
            message = f"{error.message} {error.remedy}".strip()
            assert saved.result.waiting is not None
            again = {"text": f"{message}\n{saved.question.text}"}
            waiting = saved.result.waiting.model_copy(update=again)
            return saved.result.model_copy(update={"waiting": waiting})

    async def _pay(self, turn: Round, saved: SavedRun, options: Options) -> Result | None:
        """Grant a run that has spent its part of the plan's budget what the plan has left."""
        assert saved.question is not None and saved.state is not None
        spec = load_spec(RunFolder.open(self._options.state_dir, turn.run_id))
        more = self._budget.more(saved.question, spec, saved.state["counters"])
        if not more:
            return saved.result
        return await self._respond(turn, saved, more, options, by=BY_PLAN)

    async def _asks_for_budget(self, turn: Round, result: Result) -> str:
        """The id of the question about the plan's budget that its run waits with; "" for none."""
        if result.waiting is None or result.waiting.kind != "budget":
            return ""
        question = (await saved_run(self._options.state_dir, turn.run_id)).question
        return question.id if question is not None and self._budget.is_asked(question) else ""

    def _within_limits(self, spec: TaskSpec) -> TaskSpec:
        """With what the plan has left to spend; its folder is needed until it has landed."""
        limits = {
            "budget": self._purse.left(spec.runner.budget),
            "retention_days": spec.runner.retention_days or 1,
        }
        return spec.model_copy(update={"runner": spec.runner.model_copy(update=limits)})

    def _hear(self, task_id: str, event: dict[str, Any]) -> None:
        """An event of the run."""
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

    def _unfinished(self, turn: Round, result: Result) -> TaskOutcome:
        if result.waiting is not None:
            asked = replace(turn, asked=result.waiting.id)
            return self._desk.ask(
                turn.task_id, PlanTaskStatus.BLOCKED, asked_text(result.waiting), asked
            )
        if result.state in TERMINAL:
            status = PlanTaskStatus(result.state)
            return self._desk.ask(turn.task_id, status, ended_text(result), turn)
        return TaskOutcome(PlanTaskStatus.PENDING, "stopped on the way", turn.run_id)

    def _unpaid(self, turn: Round) -> TaskOutcome:
        """It waits for more than the plan has left: one question for all such tasks."""
        number = self._budget.question()
        return TaskOutcome(
            PlanTaskStatus.BLOCKED, "the plan's budget is spent", turn.run_id, number
        )

    def _still_open(self, turn: Round) -> TaskOutcome:
        """It was asked before, and nobody has answered."""
        before = self._standings.get(turn.task_id)
        detail = before.detail if before else ""
        ended = before and before.status in FELL_SHORT
        status = before.status if before and ended else PlanTaskStatus.BLOCKED
        return TaskOutcome(status, detail, turn.run_id, turn.question)

    def _waits_to_land(self, turn: Round) -> bool:
        """Whether a person has been asked about work that does not go together with the rest."""
        answered = self._desk.answer(turn) is not None or turn.task_id in self._again
        return turn.asked in (LANDING, ALLOWANCE) and not answered

    def _allowed(self, turn: Round) -> Round:
        """The round, allowed to change what proves others where a person has said yes to that."""
        if turn.asked != ALLOWANCE or not is_yes(self._desk.answer(turn) or ""):
            return turn
        keep_allowance(
            self._options.state_dir, turn, self._desk.asked(turn), self._options.clock.stamp()
        )
        allowed = (*turn.allowed, *turn.hollow)
        turn = replace(turn, allowed=allowed, hollow=(), question=0, asked="")
        self._book.save(turn)
        return turn

    def _more_rounds(self, turn: Round) -> str | None:
        """What a person said to such work, "" for nothing but that it be tried again."""
        if turn.asked not in (LANDING, ALLOWANCE) or self._waits_to_land(turn):
            return None
        words = self._desk.answer(turn)
        self._again.discard(turn.task_id)
        self._desk.settle(turn, TRIED_AGAIN)
        return words or ""

    # -- notes ----------------------------------------------------------------------------------

    def _note(self, task_id: str, status: PlanTaskStatus, detail: str = "") -> None:
        standing = StoredTask(task_id, status, self._run_of(task_id), detail=detail)
        if standing != self._standings.get(task_id):
            self._keep(standing)

    def _keep(self, standing: StoredTask) -> None:
        self._standings[standing.task_id] = standing
        self._store.note(standing, self._options.clock.stamp())
        self._tell({"event": "plan_task", **asdict(standing), "status": str(standing.status)})

    def _run_of(self, task_id: str) -> str:
        turn = self._book.latest(task_id)
        return turn.run_id if turn else ""


def _title(plan: Plan, task_id: str) -> str:
    return " ".join(plan.design_of(task_id).title.split())


def asked_for(plan: Plan, task_id: str) -> str:
    """What a task is to do, as one short word: another one for another task."""
    return hashlib.sha256(repr(plan.design_of(task_id).asked_for).encode()).hexdigest()[:16]
