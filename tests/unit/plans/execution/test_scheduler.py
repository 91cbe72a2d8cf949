"""The loop that carries a plan out, with tasks that end as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import pytest

from agentrunner.execution.deps import Clock
from agentrunner.plans.execution import scheduler
from agentrunner.plans.execution.scheduler import PlanOutcome, Scheduler, TaskOutcome, exit_code
from agentrunner.plans.patch import PlanEdit, apply
from agentrunner.plans.plan import Plan, PlanTaskStatus
from tests.kit.plan_project import Work, plan_of, with_task

A, B, C = (f"TASK-000{number}" for number in (1, 2, 3))
DONE, FAILED = TaskOutcome(PlanTaskStatus.COMPLETE), TaskOutcome(PlanTaskStatus.FAILED)
RETRY = TaskOutcome(PlanTaskStatus.RETRY_WAIT)


class Waits(Clock):
    """Nothing takes time; what was waited for is known."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        await asyncio.sleep(0)


class Post:
    """Answers to questions, and a plan that may be exchanged once."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.changed, self.answers = plan, set[int]()

    def plan_after(self, version: int) -> Plan | None:
        changed = self.changed
        return changed if changed is not None and version < changed.version else None

    def answered(self, questions: Collection[int]) -> set[int]:
        return self.answers.intersection(questions)


class Play:
    """Tasks end as the script says, each entry once; then COMPLETE."""

    def __init__(self, **script: list[TaskOutcome]) -> None:
        self.script = {name.replace("_", "-"): iter(ends) for name, ends in script.items()}
        self.began: list[str] = []
        self.most = self.now = 0

    async def __call__(self, task_id: str, failures: int, stop: asyncio.Event) -> TaskOutcome:
        self.began.append(task_id)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        ends: Iterator[TaskOutcome] = self.script.get(task_id, iter(()))
        return next(ends, DONE)


def conduct(plan: Plan, play: Play, **how: Any) -> Scheduler:
    known = {"parallel": 2, "inbox": Post(), "stop": asyncio.Event(), "clock": Waits()}
    return Scheduler(plan, play, **{**known, **how})


async def test_no_more_than_so_many_are_at_work() -> None:
    play = Play()
    outcome = await conduct(plan_of([Work()] * 9), play, parallel=3).run()
    assert (len(outcome.outcomes), play.most) == (9, 3)
    assert play.began == [f"TASK-000{n}" for n in range(1, 10)]


async def test_what_depends_on_a_failure_is_blocked_and_the_rest_goes_on() -> None:
    plan = plan_of([Work(), Work(needs=[1]), Work()])
    play = Play(TASK_0001=[FAILED])
    outcome = await conduct(plan, play).run()
    assert play.began == [A, C] and outcome.blocked == [B]


async def test_surroundings_are_tried_three_times_more() -> None:
    clock, told = Waits(), list[float | None]()
    play = Play(TASK_0001=[RETRY] * 4)
    plan = plan_of([Work(), Work(needs=[1])])
    outcome = await conduct(
        plan, play, clock=clock, on_wait=lambda task, end, seconds: told.append(seconds)
    ).run()
    assert play.began == [A] * 4 and told == [30, 120, 600, None]
    assert outcome.outcomes[A] == RETRY and outcome.blocked == [B]


async def test_what_another_process_works_on_is_waited_for_however_long_that_takes() -> None:
    clock, busy = Waits(), TaskOutcome(PlanTaskStatus.RETRY_WAIT, busy=True)
    play = Play(TASK_0001=[RETRY, *[busy] * 9, RETRY, RETRY])
    outcome = await conduct(plan_of([Work()]), play, clock=clock).run()
    assert outcome.outcomes[A] == DONE
    waited = [seconds for seconds in clock.waited if seconds in scheduler.BACK_OFF_SEC]
    assert waited == [30.0] * 11 + [120.0]


async def test_a_task_that_waits_to_be_tried_again_takes_no_place() -> None:
    play = Play(TASK_0001=[RETRY])
    await conduct(plan_of([Work(), Work()]), play, parallel=1).run()
    assert sorted(play.began) == [A, A, B]


async def test_an_answer_lets_a_task_go_on() -> None:
    post = Post()
    play = Play(TASK_0001=[TaskOutcome(PlanTaskStatus.BLOCKED, question=7)])
    post.answers.add(7)
    outcome = await conduct(plan_of([Work(), Work(needs=[1])]), play, inbox=post).run()
    assert play.began == [A, A, B] and outcome.blocked == []


@pytest.mark.parametrize(
    ("given", "began"), [({"description": "Else."}, [A, A, B]), ({"milestone": "M2"}, [A])]
)
async def test_a_task_that_ended_and_is_another_one_now_begins_anew(
    given: dict[str, str], began: list[str]
) -> None:
    plan = plan_of([Work(), Work(needs=[1])])
    play = Play(TASK_0001=[TaskOutcome(PlanTaskStatus.FAILED, question=7)])
    changed = apply(plan, [PlanEdit("update", A, given)])
    await conduct(plan, play, inbox=Post(changed)).run()
    assert play.began == began


async def test_tasks_of_a_changed_plan_are_carried_out() -> None:
    plan = plan_of([Work()])
    grown = plan_of([Work(), Work(), Work(needs=[1])])
    post = Post()
    play = Play()

    async def carry_out(task_id: str, failures: int, stop: asyncio.Event) -> TaskOutcome:
        tasks = {k: replace(t, status=PlanTaskStatus.COMPLETE) for k, t in grown.tasks.items()}
        done = {name: tasks[name] for name in {A, *play.began}}
        post.changed = replace(grown, version=plan.version + 1, tasks={**grown.tasks, **done})
        return await play(task_id, failures, stop)

    how: Any = {"parallel": 2, "inbox": post, "stop": asyncio.Event(), "clock": Waits()}
    outcome = await Scheduler(plan, carry_out, **how).run()
    assert set(outcome.outcomes) == {A, B, C}


@pytest.mark.parametrize("ending", [FAILED, RETRY, DONE])
async def test_a_task_that_is_taken_out_of_the_plan_while_at_work_ends(ending: TaskOutcome) -> None:
    plan, post = plan_of([Work(), Work()]), Post()
    began: list[str] = []

    async def carry_out(task_id: str, failures: int, stop: asyncio.Event) -> TaskOutcome:
        began.append(task_id)
        if task_id == A:
            post.changed = replace(plan_of([]), version=plan.version + 1)
        await asyncio.sleep(0.01)  # the loop looks meanwhile, as its clock takes no time
        return ending if task_id == B else FAILED

    how: Any = {"parallel": 2, "inbox": post, "stop": asyncio.Event(), "clock": Waits()}
    outcome = await Scheduler(plan, carry_out, **how).run()
    assert began == [A, B] and set(outcome.outcomes) == {A, B}


def changed(plan: Plan, task_id: str, **how: Any) -> Plan:
    node_id = plan.tasks[task_id].node_id
    designs = {**plan.designs, node_id: replace(plan.designs[node_id], **how)}
    return replace(plan, version=plan.version + 1, designs=designs)


@pytest.mark.parametrize(
    ("after", "began"),
    [
        (lambda plan: replace(plan_of([]), version=9), [A, B]),
        (lambda plan: changed(plan, A, description="Another one."), [A, B, A]),
        (lambda plan: changed(plan, A, acceptance_criteria=("is new",)), [A, B, A]),
    ],
)
async def test_only_a_task_that_is_another_one_now_is_stopped(after: Any, began: list[str]) -> None:
    """B is in both plans, or is gone with A: then it is stopped, too."""
    plan, post = plan_of([Work(), Work()]), Post()
    seen, stopped = list[str](), list[str]()
    others = asyncio.Event()

    async def carry_out(task_id: str, failures: int, stop: asyncio.Event) -> TaskOutcome:
        seen.append(task_id)
        if seen == [A]:
            post.changed = after(plan)
        if seen.count(task_id) > 1:
            assert post.changed is not None
            post.changed = with_task(
                post.changed, A, replace(plan.tasks[A], status=PlanTaskStatus.COMPLETE)
            )
            others.set()
            return DONE
        waits = [asyncio.ensure_future(stop.wait())]
        if task_id == B:
            waits.append(asyncio.ensure_future(others.wait()))
        _, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for one in left:
            one.cancel()
        if stop.is_set():
            stopped.append(task_id)
            return TaskOutcome(PlanTaskStatus.PENDING)
        return DONE

    how: Any = {"parallel": 2, "inbox": post, "stop": asyncio.Event(), "clock": Waits()}
    outcome = await Scheduler(plan, carry_out, **how).run()
    assert seen[: len(began)] == began and not outcome.interrupted
    assert stopped == ([A, B] if began == [A, B] else [A])


async def test_where_it_stands_in_the_tree_makes_no_other_task_of_it() -> None:
    plan, post = plan_of([Work(), Work()]), Post()
    stopped: list[bool] = []

    async def carry_out(task_id: str, failures: int, stop: asyncio.Event) -> TaskOutcome:
        post.changed = changed(plan, A, phase_name="Later", dependencies=())
        await asyncio.sleep(0.01)  # the loop looks meanwhile, as its clock takes no time
        stopped.append(stop.is_set())
        return DONE

    how: Any = {"parallel": 1, "inbox": post, "stop": asyncio.Event(), "clock": Waits()}
    await Scheduler(plan, carry_out, only=[A], **how).run()
    assert not any(stopped)


async def test_a_task_that_is_gone_is_not_waited_for() -> None:
    """Its surroundings failed, and it would have been tried again in half a minute."""
    plan, post = plan_of([Work()]), Post()

    class Looks(Waits):
        async def sleep(self, seconds: float) -> None:
            post.changed = replace(plan_of([]), version=9)
            await asyncio.sleep(0 if seconds < 30 else 3600)

    play = Play(TASK_0001=[RETRY])
    async with asyncio.timeout(10):
        await conduct(plan, play, inbox=post, clock=Looks()).run()
    assert play.began == [A]


async def test_one_answer_lets_all_go_on_that_wait_for_it() -> None:
    post = Post()
    wait = TaskOutcome(PlanTaskStatus.BLOCKED, question=7)
    play = Play(TASK_0001=[wait], TASK_0002=[wait])
    post.answers.add(7)
    outcome = await conduct(plan_of([Work(), Work()]), play, inbox=post).run()
    assert sorted(play.began) == [A, A, B, B] and set(outcome.outcomes.values()) == {DONE}


async def test_nobody_is_asked_for_leave_where_nothing_could_begin() -> None:
    asked = list[bool]()

    def may_start() -> bool:
        asked.append(True)
        return True

    play = Play(TASK_0001=[FAILED])
    await conduct(plan_of([Work(), Work(needs=[1])]), play, may_start=may_start).run()
    assert len(asked) == 1


async def test_a_stop_ends_all_in_order() -> None:
    stop = asyncio.Event()
    ended: list[str] = []

    async def carry_out(task_id: str, failures: int, mine: asyncio.Event) -> TaskOutcome:
        if task_id == B:
            stop.set()
        await mine.wait()
        await asyncio.sleep(0)
        ended.append(task_id)
        return TaskOutcome(PlanTaskStatus.PENDING)

    how: Any = {"parallel": 2, "inbox": Post(), "stop": stop, "clock": Waits()}
    outcome = await Scheduler(plan_of([Work()] * 3), carry_out, **how).run()
    assert outcome.interrupted and sorted(ended) == [A, B]
    assert exit_code(outcome, {}) == 130


async def test_what_nobody_foresaw_stops_the_others_and_is_raised() -> None:
    stop = asyncio.Event()

    async def carry_out(task_id: str, failures: int, mine: asyncio.Event) -> TaskOutcome:
        if task_id == A:
            raise ZeroDivisionError
        await mine.wait()
        return TaskOutcome(PlanTaskStatus.PENDING)

    how: Any = {"parallel": 2, "inbox": Post(), "stop": stop, "clock": Waits()}
    with pytest.raises(ZeroDivisionError):
        await Scheduler(plan_of([Work()] * 2), carry_out, **how).run()
    assert stop.is_set()


async def test_nothing_begins_while_it_may_not() -> None:
    play = Play()
    outcome = await conduct(plan_of([Work()]), play, may_start=lambda: False).run()
    assert play.began == [] and outcome.outcomes == {}


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["COMPLETE"], 0),
        (["COMPLETE", "FAILED", "NEEDS_REVIEW"], 1),
        (["NEEDS_REVIEW", "BLOCKED"], 3),
        (["BLOCKED", "COMPLETE"], 4),
        (["PENDING"], 4),
        (["RETRY_WAIT", "BLOCKED"], 5),
    ],
)
def test_exit_codes(statuses: list[str], code: int) -> None:
    known = {str(n): PlanTaskStatus(name) for n, name in enumerate(statuses)}
    assert exit_code(PlanOutcome(), known) == code
