"""Which task starts when: after what it needs, in the order of the tree, never on shared files."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.plans.patch import PlanEdit, apply
from agentrunner.plans.plan import Hint, Plan, PlannedTask, PlanTaskStatus, PotentialConflict
from agentrunner.plans.schedule import Schedule, files_of_task, meet
from tests.kit.examples import examples
from tests.kit.plan_project import with_task

A, B, C, D = (f"TASK-000{number}" for number in range(1, 5))


def plan_of(*tasks: dict[str, Any], conflicts: tuple[PotentialConflict, ...] = ()) -> Plan:
    """Tasks in order; `needs` and `files` of each."""
    edits = [
        PlanEdit(
            "create",
            f"t{number}",
            {
                "title": f"t{number}",
                "dependencies": tuple(f"t{other}" for other in task.get("needs", ())),
                "suggested_impl": Hint(file_paths=tuple(task.get("files", ()))),
            },
        )
        for number, task in enumerate(tasks, start=1)
    ]
    return apply(Plan(), edits, conflicts=conflicts)


def test_what_is_needed_comes_first_and_the_order_is_the_trees() -> None:
    schedule = Schedule(plan_of({"needs": [3]}, {}, {}, {}))
    assert schedule.start(2) == [B, C]
    assert schedule.start(9) == [D]
    assert schedule.start(9) == []
    schedule.complete(C)
    assert schedule.start(9) == [A]
    for task_id in (A, B, D):
        assert not schedule.finished
        schedule.complete(task_id)
    assert schedule.finished


def test_tasks_with_the_same_files_do_not_work_at_once() -> None:
    schedule = Schedule(plan_of({"files": ["src/a.py"]}, {"files": ["./src/a.py"]}, {}))
    assert schedule.start(9) == [A, C]
    schedule.complete(A)
    assert schedule.start(9) == [B]


def test_what_was_begun_before_goes_first_so_that_nothing_changes_its_files_meanwhile() -> None:
    plan = plan_of({"files": ["src/a.py"]}, {}, {"files": ["src/a.py"]})
    begun = replace(plan.tasks[C], status=PlanTaskStatus.RUNNING)
    schedule = Schedule(with_task(plan, C, begun))
    assert schedule.start(1) == [C]
    assert schedule.start(9) == [B], "the first has to wait for the third"
    schedule.complete(C)
    assert schedule.start(9) == [A]


def test_what_is_tried_again_goes_before_what_waited_for_its_files() -> None:
    plan = plan_of({"needs": [2], "files": ["a"]}, {}, {"files": ["a"]})
    schedule = Schedule(plan)
    assert schedule.start(2) == [B, C]
    schedule.complete(B)
    assert schedule.start(2) == [], "the first waits for the third"
    schedule.again(C)
    assert schedule.start(1) == [C]


def test_a_folder_holds_all_that_is_in_it() -> None:
    schedule = Schedule(
        plan_of({"files": ["src/a.py", "b"]}, {"files": ["src"]}, {"files": ["b/c"]})
    )
    assert schedule.start(9) == [A]
    schedule.give_up(A)
    assert schedule.start(9) == [B, C]


def test_what_the_planner_calls_a_conflict_is_one() -> None:
    said = (PotentialConflict("x", ("t1", "t2")), PotentialConflict("y", ("OLD-1",)))
    plan = plan_of({}, {}, {}, conflicts=said)
    assert Schedule(plan).start(9) == [A, C]


def test_a_pattern_holds_what_it_matches_and_is_held_by_it() -> None:
    tasks = [["src/**/*.py"], ["src/a/b.py"], ["docs/x.md"], ["*.md"], ["docs/*.md"]]
    schedule = Schedule(plan_of(*({"files": files} for files in tasks)))
    assert schedule.start(9) == [A, C, D]
    schedule.complete(A)
    assert schedule.start(9) == [B]
    schedule.complete(C)
    assert schedule.start(9) == ["TASK-0005"]


def test_a_file_without_a_name_is_none() -> None:
    schedule = Schedule(plan_of({"files": ["", " "]}, {"files": [""]}, {"files": ["a"]}))
    assert schedule.start(9) == [A, B, C]


def test_a_failure_stops_what_needs_it_and_nothing_else() -> None:
    schedule = Schedule(plan_of({}, {"needs": [1]}, {"needs": [2]}, {}))
    assert schedule.start(9) == [A, D]
    schedule.give_up(A)
    schedule.complete(D)
    assert schedule.start(9) == []
    assert schedule.finished
    assert schedule.stopped_by([A]) == [B, C]


def test_what_is_complete_is_not_started_again() -> None:
    plan = plan_of({}, {"needs": [1]}, {"needs": [2]})
    done = PlannedTask(plan.tasks[B].node_id, PlanTaskStatus.COMPLETE)
    schedule = Schedule(with_task(plan, B, done))
    assert schedule.start(9) == [A, C]


def test_only_some_of_it_with_what_they_need() -> None:
    assert Schedule(plan_of({}, {"needs": [1]}, {}), only=[B]).start(9) == [A]


def test_a_task_may_be_started_again() -> None:
    schedule = Schedule(plan_of({"files": ["a"]}, {"files": ["a"]}))
    assert schedule.start(9) == [A]
    schedule.again(A)
    assert schedule.start(9) == [A]
    assert schedule.at_work == {A}


def test_a_task_that_is_ready_already_is_not_started_twice() -> None:
    schedule = Schedule(plan_of({}, {}))
    schedule.again(A)
    assert schedule.start(9) == [A, B]
    schedule.complete(A)
    assert schedule.start(9) == []


def test_what_is_gone_from_the_plan_ends_without_a_trace() -> None:
    schedule = Schedule(plan_of({}), at_work=[B])
    schedule.give_up(B)
    schedule.again(B)
    assert schedule.start(9) == [A]


def test_files_that_a_changed_plan_lets_two_share_are_free_when_both_have_ended() -> None:
    plan = plan_of({"files": ["lib/x"]}, {"files": ["lib/x"]}, {"files": ["lib"]})
    schedule = Schedule(plan, at_work=[A, B])
    schedule.complete(B)
    assert schedule.start(9) == []
    schedule.complete(A)
    assert schedule.start(9) == [C]


tasks_of_plans = st.lists(
    st.fixed_dictionaries(
        {
            "needs": st.sets(st.integers(1, 12), max_size=3),
            "files": st.lists(
                st.sampled_from(["a", "a/b", "a/b/c", "d", "d/e", "f", "d/*"]), max_size=2
            ),
        }
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=examples(150), deadline=None)
@given(tasks_of_plans, st.integers(1, 4), st.data())
def test_every_task_is_started_once_after_what_it_needs(
    tasks: list[dict[str, Any]], parallel: int, data: st.DataObject
) -> None:
    tasks = [
        {**task, "needs": sorted(n for n in task["needs"] if n < number)}
        for number, task in enumerate(tasks, start=1)
    ]
    plan = plan_of(*tasks)
    schedule = Schedule(plan)
    files = {task_id: files_of_task(plan, task_id) for task_id in plan.tasks}
    done: list[str] = []
    while not schedule.finished:
        for started in schedule.start(parallel - len(schedule.at_work)):
            assert set(plan.design_of(started).dependencies) <= set(done)
        at_work = sorted(schedule.at_work)
        assert at_work
        assert len(at_work) <= parallel
        assert not any(
            meet(a, b)
            for one, other in combinations(at_work, 2)
            for a in files[one]
            for b in files[other]
        )
        one = data.draw(st.sampled_from(at_work))
        schedule.complete(one)
        done.append(one)
    assert sorted(done) == sorted(plan.tasks)
