"""The loop that carries a plan out: starts what may start, waits, and takes in what has ended.

It knows nothing of runs and of git: what carrying a task out means is handed to it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agentrunner.execution.deps import Clock
from agentrunner.plans.plan import Plan, PlanTaskStatus
from agentrunner.plans.schedule import Schedule
from agentrunner.state.lifecycle import END_STATES, KEPT_EXIT, WAITING_EXIT

BACK_OFF_SEC = (30.0, 120.0, 600.0)
"""How long a task waits whose surroundings failed, by how often in a row they have."""
LOOK_SEC = 2.0
"""How often a changed plan and answers of people are looked for."""
_WORST_FIRST = [
    (PlanTaskStatus(name), end.exit_code) for name, end in reversed(tuple(END_STATES.items()))
]
_WORST_FIRST.insert(1, (PlanTaskStatus.RETRY_WAIT, KEPT_EXIT))
"""What a task that stands so has its plan end with. Only the worst end goes before a machine that
fails: it stays when the machine is well again."""


@dataclass(frozen=True)
class TaskOutcome:
    """What carrying a task out has come to, for now."""

    status: PlanTaskStatus
    """COMPLETE, FAILED, NEEDS_REVIEW, BLOCKED (a person is asked), RETRY_WAIT (the surroundings
    failed), or PENDING where it was stopped in order."""
    detail: str = ""
    """One sentence for people."""
    run_id: str = ""
    question: int = 0
    """The plan's question that a person may answer; 0 for none."""


class Inbox(Protocol):
    """What comes from outside while a plan is carried out."""

    def plan_after(self, version: int) -> Plan | None:
        """The plan as it is now; None where it is still of that version."""

    def answered(self, questions: Collection[int]) -> set[int]:
        """Those of these questions that a person has answered."""


@dataclass
class PlanOutcome:
    """What carrying a plan out has come to."""

    endings: dict[str, TaskOutcome] = field(default_factory=dict)
    """How each task ended that was worked on."""
    blocked: list[str] = field(default_factory=list)
    """Tasks that wait for one that has not become COMPLETE."""
    interrupted: bool = False


CarryOut = Callable[[str, int, asyncio.Event], Awaitable[TaskOutcome]]
"""Carries a task out: its id, how often its surroundings have failed in a row, and what is set once
it is to stop."""


class Scheduler:
    """One plan on its way."""

    def __init__(
        self,
        plan: Plan,
        carry_out: CarryOut,
        *,
        parallel: int,
        post: Inbox,
        stop: asyncio.Event,
        clock: Clock,
        only: Collection[str] | None = None,
        may_start: Callable[[], bool] = lambda: True,
        on_wait: Callable[[str, TaskOutcome, float | None], None] = lambda task_id, ending, sec: (
            None
        ),
    ) -> None:
        """`carry_out` returns whatever happens to the run, and soon once its event is set.

        That is so for all tasks once `stop` is set, and for one that a change of the plan takes
        out or makes another task. `may_start` is asked before a task that is ready begins, and
        `on_wait` hears of one in RETRY_WAIT, and after how many seconds it is tried again; None
        where it is not, because there is a stop or it has failed too often.
        """
        self._plan, self._only = plan, only
        self._carry_out, self._may_start, self._on_wait = carry_out, may_start, on_wait
        self._parallel, self._post, self._clock, self._stop = parallel, post, clock, stop
        self._schedule = Schedule(plan, only=only)
        self._running: dict[asyncio.Task[TaskOutcome], str] = {}
        self._stops: dict[str, asyncio.Event] = {}
        """Set to stop one of the running."""
        self._waiting: dict[asyncio.Task[None], str] = {}
        self._failures: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        """The question that a task waits for, by task: some wait for the same one."""
        self._over: set[str] = set()
        """Tasks that have ended here and are not COMPLETE."""
        self._stale: set[str] = set()
        """Tasks that were at work when the plan was changed."""
        self._outcome = PlanOutcome()

    async def run(self) -> PlanOutcome:
        """Until nothing can be started any more, or it is stopped; then all has ended in order."""
        stopping = asyncio.create_task(self._stop.wait())
        ticking = asyncio.create_task(self._tick())
        try:
            while not self._stop.is_set():
                self._start()
                if not (self._running or self._waiting) and not self._look():
                    break
                await self._something(stopping, ticking)
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
            await self._let_end()
        self._outcome.blocked = self._schedule.stopped_by(self._over)
        return self._outcome

    async def _tick(self) -> None:
        await self._clock.sleep(LOOK_SEC)

    async def _something(self, *more: asyncio.Task[object] | asyncio.Task[None]) -> None:
        """Wait for the first thing to happen, and take in what it is."""
        await asyncio.wait(
            {*self._running, *self._waiting, *more}, return_when=asyncio.FIRST_COMPLETED
        )
        for run in [run for run in self._running if run.done()]:
            self._ended(self._running.pop(run), run.result())
        for wait in [wait for wait in self._waiting if wait.done()]:
            self._schedule.again(self._waiting.pop(wait))

    async def _let_end(self) -> None:
        """After a stop: every run ends in order, and none is lost sight of."""
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
                work = self._carry_out(task_id, self._failures.get(task_id, 0), stop)
                self._running[asyncio.ensure_future(work)] = task_id

    def _ended(self, task_id: str, ending: TaskOutcome) -> None:
        self._outcome.endings[task_id] = ending
        stopped = self._stops.pop(task_id).is_set()
        if stopped and not self._stop.is_set() and ending.status == PlanTaskStatus.PENDING:
            self._failures.pop(task_id, None)
            self._schedule.again(task_id)  # as what the plan has it for now, if it still has it
            return
        failures = self._failures.get(task_id, 0)
        if ending.status == PlanTaskStatus.RETRY_WAIT:
            more = failures < len(BACK_OFF_SEC)
            again = more and not self._stop.is_set()
            self._on_wait(task_id, ending, BACK_OFF_SEC[failures] if again else None)
            if again:
                self._failures[task_id] = failures + 1
                pause = asyncio.create_task(self._clock.sleep(BACK_OFF_SEC[failures]))
                self._waiting[pause] = task_id
            if more:
                return
        self._failures.pop(task_id, None)
        if ending.status == PlanTaskStatus.COMPLETE:
            self._completed(task_id)
            return
        self._over.add(task_id)
        if ending.question:
            self._asked[task_id] = ending.question
        self._schedule.give_up(task_id)

    def _completed(self, task_id: str) -> None:
        if task_id in self._stale:  # it may not be what the changed plan has ready
            self._stale.discard(task_id)
            self._take_in(self._post.plan_after(-1) or self._plan)
        else:
            self._schedule.complete(task_id)

    def _look(self) -> bool:
        """Take in what people did meanwhile; whether that was anything."""
        changed = self._post.plan_after(self._plan.version)
        if changed is not None:
            self._take_in(changed)
        numbers = set(self._asked.values())
        answered = self._post.answered(numbers) if numbers else set[int]()
        for task_id in [task for task, number in self._asked.items() if number in answered]:
            del self._asked[task_id]
            self._over.discard(task_id)
            self._schedule.again(task_id)
        return changed is not None or bool(answered)

    def _take_in(self, plan: Plan) -> None:
        """A plan that was changed, while what is at work goes on unless it is another task now."""
        before, self._plan = self._plan, plan
        for task_id, stop in self._stops.items():
            if not plan.asks_as(before, task_id):
                stop.set()
        for task_id in [t for t in self._over if not plan.asks_as(before, t)]:
            self._over.discard(task_id)  # it ended as another task than it is now
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
    """What a plan ends with, from how every task that was wanted stands.

    0: all are part of the plan's branch; 1: one failed; 3: one needs a person's review; 4: a
    person is asked; 5: the surroundings failed.
    """
    if outcome.interrupted:
        return 130
    found = set(statuses.values())
    for status, code in _WORST_FIRST:
        if status in found and code:
            return code
    return 0 if found <= {PlanTaskStatus.COMPLETE} else WAITING_EXIT
