"""The loop that executes a plan: it starts tasks that may start, waits, and handles those that
ended.

It knows nothing of runs and git: how a task is executed is passed in.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from msgspec import Struct, field

from agentrunner.execution.deps import Clock
from agentrunner.plans.plan import Plan, PlanTaskStatus
from agentrunner.plans.schedule import Schedule
from agentrunner.state.lifecycle import END_STATES, KEPT_EXIT, WAITING_EXIT

BACK_OFF_SEC = (30.0, 120.0, 600.0)
"""How long a task waits after an infrastructure error, by the number of them in a row."""
LOOK_SEC = 2.0
"""How often it looks for a changed plan and answers of people."""
_WORST_FIRST = [
    (PlanTaskStatus(name), end.exit_code) for name, end in reversed(tuple(END_STATES.items()))
]
_WORST_FIRST.insert(1, (PlanTaskStatus.RETRY_WAIT, KEPT_EXIT))
"""The plan's exit code for each end state of a task, worst first. Only the worst end comes before
an infrastructure error: it remains when the machine works again."""

STOPPED = (PlanTaskStatus.STOPPED, PlanTaskStatus.PENDING)


class TaskOutcome(Struct, frozen=True):
    """The outcome of executing a task, for now."""

    status: PlanTaskStatus
    """COMPLETE, FAILED, NEEDS_REVIEW, BLOCKED (a person is asked), RETRY_WAIT (an infrastructure
    error), or where it was stopped gracefully STOPPED, or PENDING with a run that is dropped."""
    detail: str = ""
    """One sentence for people."""
    run_id: str = ""
    question: int = 0
    """The plan's question that a person may answer; 0 for none."""
    busy: bool = False
    """For RETRY_WAIT: whether another process is at work on it. That is no failure, and may take
    hours."""


class Inbox(Protocol):
    """Changes and answers from outside while a plan is executed."""

    def plan_after(self, version: int) -> Plan | None:
        """Return the present plan; None where it still has that version."""

    def answered(self, questions: Collection[int]) -> set[int]:
        """Return those of these questions that a person has answered."""


class PlanOutcome(Struct):
    """The outcome of executing a plan."""

    outcomes: dict[str, TaskOutcome] = field(default_factory=dict)
    """The outcome of each task that was worked on."""
    blocked: list[str] = field(default_factory=list)
    """Tasks that wait for one that has not become COMPLETE."""
    interrupted: bool = False


ExecuteTask = Callable[[str, int, asyncio.Event], Awaitable[TaskOutcome]]
"""Executes a task, given its id, how many infrastructure errors it had in a row, and an event that
is set when it has to stop."""


class Scheduler:
    """Executes one plan."""

    def __init__(
        self,
        plan: Plan,
        execute: ExecuteTask,
        *,
        parallel: int,
        inbox: Inbox,
        stop: asyncio.Event,
        clock: Clock,
        only: Collection[str] | None = None,
        may_start: Callable[[], bool] = lambda: True,
        on_wait: Callable[[str, TaskOutcome, float | None], None] = lambda task_id, outcome, sec: (
            None
        ),
    ) -> None:
        """Take `execute`, which returns whatever happens to the run, and soon once its event is
        set.

        The event is set for all tasks once `stop` is set, and for a task that a change of the plan
        removes or makes another task. `may_start` is asked before a task that is ready starts.
        `on_wait` gets a task in RETRY_WAIT and the seconds until it is tried again, or None if it
        is not, because of a stop or too many failures.
        """
        self._plan, self._only = plan, only
        self._execute, self._may_start, self._on_wait = execute, may_start, on_wait
        self._parallel, self._inbox, self._clock, self._stop = parallel, inbox, clock, stop
        self._schedule = Schedule(plan, only=only)
        self._running: dict[asyncio.Task[TaskOutcome], str] = {}
        self._stops: dict[str, asyncio.Event] = {}
        """The event that stops a running task, by task."""
        self._waiting: dict[asyncio.Task[None], str] = {}
        self._failures: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        """The question that a task waits for, by task; several may wait for the same one."""
        self._over: set[str] = set()
        """Tasks that have ended in this process and are not COMPLETE."""
        self._stale: set[str] = set()
        """Tasks that were at work when the plan was changed."""
        self._outcome = PlanOutcome()

    async def run(self) -> PlanOutcome:
        """Run until no task can be started any more, or it is stopped; then all end gracefully."""
        stopping = asyncio.create_task(self._stop.wait())
        ticking = asyncio.create_task(self._tick())
        try:
            while not self._stop.is_set():
                self._start()
                if not (self._running or self._waiting) and not self._look():
                    break
                await self._next_event(stopping, ticking)
                if ticking.done():
                    self._look()
                    ticking = asyncio.create_task(self._tick())
            self._outcome.interrupted = self._stop.is_set()
        except BaseException:
            self._stop.set()
            raise
        finally:
            for stop in self._stops.values():
                stop.set()
            await _end([stopping, ticking, *self._waiting])
            await self._wait_for_running()
        self._outcome.blocked = self._schedule.stopped_by(self._over)
        return self._outcome

    async def _tick(self) -> None:
        await self._clock.sleep(LOOK_SEC)

    async def _next_event(self, *others: asyncio.Task[object] | asyncio.Task[None]) -> None:
        """Wait for the first thing to happen, and handle it."""
        await asyncio.wait(
            {*self._running, *self._waiting, *others}, return_when=asyncio.FIRST_COMPLETED
        )
        for run in [run for run in self._running if run.done()]:
            self._ended(self._running.pop(run), run.result())
        for wait in [wait for wait in self._waiting if wait.done()]:
            self._schedule.again(self._waiting.pop(wait))

    async def _wait_for_running(self) -> None:
        """After a stop, wait until every running task has ended gracefully, and record it."""
        results = await asyncio.gather(*self._running, return_exceptions=True)
        for task_id, result in zip(self._running.values(), results, strict=True):
            if isinstance(result, TaskOutcome):
                self._ended(task_id, result)
        self._running.clear()

    def _start(self) -> None:
        while len(self._running) < self._parallel and self._schedule.ready:
            if not self._may_start():
                return
            started = self._schedule.start(self._parallel - len(self._running))
            if not started:
                return
            for task_id in started:
                if task_id in self._over:
                    self._schedule.give_up(task_id)
                    continue
                stop = self._stops[task_id] = asyncio.Event()
                work = self._execute(task_id, self._failures.get(task_id, 0), stop)
                self._running[asyncio.ensure_future(work)] = task_id

    def _ended(self, task_id: str, outcome: TaskOutcome) -> None:
        self._outcome.outcomes[task_id] = outcome
        stopped = self._stops.pop(task_id).is_set()
        if stopped and not self._stop.is_set() and outcome.status in STOPPED:
            self._failures.pop(task_id, None)
            self._schedule.again(task_id)  # as the changed plan has it, if it is still there
            return
        failures = 0 if outcome.busy else self._failures.get(task_id, 0)
        if outcome.status == PlanTaskStatus.RETRY_WAIT:
            more = failures < len(BACK_OFF_SEC)
            again = more and not self._stop.is_set()
            self._on_wait(task_id, outcome, BACK_OFF_SEC[failures] if again else None)
            if again:
                self._failures[task_id] = 0 if outcome.busy else failures + 1
                pause = asyncio.create_task(self._clock.sleep(BACK_OFF_SEC[failures]))
                self._waiting[pause] = task_id
            if more:
                return
        self._failures.pop(task_id, None)
        if outcome.status == PlanTaskStatus.COMPLETE:
            self._completed(task_id)
            return
        self._over.add(task_id)
        if outcome.question:
            self._asked[task_id] = outcome.question
        self._schedule.give_up(task_id)

    def _completed(self, task_id: str) -> None:
        if task_id in self._stale:  # the changed plan may have other tasks ready
            self._stale.discard(task_id)
            self._take_in(self._inbox.plan_after(-1) or self._plan)
        else:
            self._schedule.complete(task_id)

    def _look(self) -> bool:
        """Handle changes and answers of people; return whether there were any."""
        changed = self._inbox.plan_after(self._plan.version)
        if changed is not None:
            self._take_in(changed)
        numbers = set(self._asked.values())
        answered = self._inbox.answered(numbers) if numbers else set[int]()
        for task_id in [task for task, number in self._asked.items() if number in answered]:
            del self._asked[task_id]
            self._over.discard(task_id)
            self._schedule.again(task_id)
        return changed is not None or bool(answered)

    def _take_in(self, plan: Plan) -> None:
        """Switch to a changed plan; tasks at work continue unless they are other tasks now."""
        before, self._plan = self._plan, plan
        for task_id, stop in self._stops.items():
            if not plan.asks_as(before, task_id):
                stop.set()
        for task_id in [t for t in self._over if not plan.asks_as(before, t)]:
            self._over.discard(task_id)  # it is another task now than the one that ended
            self._asked.pop(task_id, None)
        for wait in [wait for wait, task_id in self._waiting.items() if task_id not in plan.tasks]:
            del self._waiting[wait]
            wait.cancel()
        at_work = [*self._running.values(), *self._waiting.values()]
        only = None if self._only is None else [t for t in self._only if t in plan.tasks]
        self._schedule = Schedule(plan, only=only, at_work=at_work)
        self._stale.update(at_work)


async def _end(tasks: Collection[asyncio.Task[object]] | Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task


def exit_code(outcome: PlanOutcome, statuses: Mapping[str, PlanTaskStatus]) -> int:
    """Return the exit code of a plan, from the status of every task that was wanted.

    0: all are part of the plan's branch; 1: one failed; 3: one needs a person's review; 4: a person
    is asked; 5: an infrastructure error.
    """
    if outcome.interrupted:
        return 130
    found = set(statuses.values())
    for status, code in _WORST_FIRST:
        if status in found and code:
            return code
    return 0 if found <= {PlanTaskStatus.COMPLETE} else WAITING_EXIT
