"""Edits of a plan: what each does, what is refused, and that nothing is ever half done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.plans.diff import check_tree, diff, undo
from agentrunner.plans.patch import (
    MAX_EDITS,
    PatchRejected,
    PlanEdit,
    SiblingPlace,
    apply,
    edits_of_decompose,
    edits_of_patch,
)
from agentrunner.plans.plan import ROOT, Plan, PlannedTask, PlanTaskStatus, PotentialConflict
from agentrunner.plans.planner_view import plan_facts
from agentrunner.protocol import Decompose, PlanPatch, parse_reply
from agentrunner.screens.plan_tree import plan_screen
from tests.kit.examples import examples
from tests.kit.plan_project import with_task


def create(
    name: str, parent: str | None = None, place: SiblingPlace | None = None, **given: Any
) -> PlanEdit:
    return PlanEdit("create", name, {"title": name, **given}, parent_id=parent, place=place)


def small() -> Plan:
    """A phase with three tasks, of which each needs the one before; and a task beside it."""
    return apply(
        Plan(),
        [
            PlanEdit("create", "p", {"title": "Phase"}, phase=True),
            create("a", "p"),
            create("b", "p", dependencies=("a",)),
            create("c", "p", dependencies=("b",)),
            create("d"),
        ],
    )


def tree(plan: Plan, node: str = ROOT) -> Any:
    """Titles, nested."""
    return [
        (plan.designs[child].title, tree(plan, child)) if plan.nodes[child].children
        else plan.designs[child].title
        for child in plan.nodes[node].children
    ]  # fmt: skip


def codes(plan: Plan, *edits: PlanEdit) -> list[tuple[int, str]]:
    with pytest.raises(PatchRejected) as refused:
        apply(plan, edits)
    return [(error.op_index, error.code) for error in refused.value.errors]


def test_a_criterion_written_as_it_was_shown_stays_whole() -> None:
    long, twin, other = "a" * 900, "a" * 899 + "b", "c" * 400
    plan = apply(Plan(), [create("t", acceptance_criteria=(long, "short", twin, other))])
    shown = [one["acceptance_criteria"] for one in plan_facts(plan, [])["tasks"]["items"]]
    assert shown == [["a" * 299 + "…", "short", "a" * 299 + "…", "c" * 299 + "…"]]
    written = (*shown[0][:3], "new", "d" * 299 + "…")
    after = apply(plan, [PlanEdit("update", "TASK-0001", {"acceptance_criteria": written})])
    kept = after.design_of("TASK-0001").acceptance_criteria
    assert kept == (long, "short", twin, "new", "d" * 299 + "…")


def test_ids_are_given_in_order_and_dependencies_point_anywhere_in_the_patch() -> None:
    plan = apply(Plan(), [create("late", dependencies=("early",)), create("early")])
    assert plan.task_order() == ["TASK-0001", "TASK-0002"]
    assert plan.design_of("TASK-0001").dependencies == ("TASK-0002",)
    assert plan.version == 1


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (PlanEdit("delete", "TASK-0002"), [("Phase", ["a", "c"]), "d"]),
        (PlanEdit("delete", "node-0001"), ["a", "b", "c", "d"]),
        (PlanEdit("delete", "node-0001", cascade=True), ["d"]),
        (
            PlanEdit("move", "TASK-0004", place=SiblingPlace(index=0)),
            ["d", ("Phase", ["a", "b", "c"])],
        ),
        (
            PlanEdit("move", "TASK-0004", parent_id="node-0001", place=SiblingPlace(index=-5)),
            [("Phase", ["d", "a", "b", "c"])],
        ),
        (
            PlanEdit("move", "TASK-0001", place=SiblingPlace(after="TASK-0003")),
            [("Phase", ["b", "c", "a"]), "d"],
        ),
        (
            PlanEdit("move", "TASK-0001", place=SiblingPlace(before="TASK-0004")),
            [("Phase", ["b", "c"]), "a", "d"],
        ),
        (PlanEdit("move", "node-0001"), ["d", ("Phase", ["a", "b", "c"])]),
        (create("e", "TASK-0001"), [("Phase", [("a", ["e"]), "b", "c"]), "d"]),
        (
            create("e", place=SiblingPlace(before="TASK-0002")),
            [("Phase", ["a", "e", "b", "c"]), "d"],
        ),
        (create("e", "node-root", SiblingPlace(index=99)), [("Phase", ["a", "b", "c"]), "d", "e"]),
    ],
)
def test_where_things_go(edit: PlanEdit, expected: Any) -> None:
    plan = small()
    after = apply(plan, [edit])
    assert tree(after) == expected
    assert check_tree(after) == []


def test_what_is_deleted_is_a_dependency_of_nothing_that_stays() -> None:
    plan = apply(small(), [PlanEdit("delete", "TASK-0002")])
    assert plan.design_of("TASK-0003").dependencies == ()
    assert plan.designs["node-0003"].deleted_in == 2
    assert "TASK-0002" not in plan.tasks


def test_only_what_is_written_down_is_changed() -> None:
    plan = apply(small(), [PlanEdit("update", "TASK-0002", {"description": "More."})])
    assert plan.design_of("TASK-0002").dependencies == ("TASK-0001",)
    cleared = apply(plan, [PlanEdit("update", "node-0003", {"dependencies": ()})])
    assert cleared.design_of("TASK-0002").dependencies == ()
    assert cleared.design_of("TASK-0002").description == "More."


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([PlanEdit("delete", ROOT)], [(0, "root")]),
        ([PlanEdit("move", ROOT, place=SiblingPlace(index=0))], [(0, "root")]),
        ([PlanEdit("update", "TASK-9999", {"title": "x"})], [(0, "unknown_id")]),
        (
            [PlanEdit("delete", "TASK-0001"), PlanEdit("update", "TASK-0001", {"title": "x"})],
            [(1, "deleted")],
        ),
        ([create("x"), PlanEdit("delete", "x"), PlanEdit("delete", "x")], [(2, "deleted")]),
        ([PlanEdit("move", "node-0001", parent_id="TASK-0001")], [(0, "cycle")]),
        ([PlanEdit("move", "TASK-0001", parent_id="TASK-0001")], [(0, "cycle")]),
        ([create("x", "TASK-0004", SiblingPlace(before="TASK-0001"))], [(0, "position")]),
        ([create("x"), create("x")], [(1, "duplicate_id")]),
        ([PlanEdit("create", "x")], [(0, "missing")]),
        ([create("x", "later"), create("later")], [(0, "unknown_id")]),
        ([create("x", dependencies=("x",))], [(0, "self_dependency")]),
        ([create("x", dependencies=("nobody",))], [(0, "unknown_id")]),
        ([create("x", dependencies=("node-0001",))], [(0, "unknown_id")]),
        ([PlanEdit("update", "node-0001", {"dependencies": ("TASK-0001",)})], [(0, "unknown_id")]),
        (
            [create("x", dependencies=("y",)), create("y", dependencies=("x",))],
            [(1, "dependency_cycle")],
        ),
        (
            [PlanEdit("update", "TASK-0001", {"dependencies": ("TASK-0003",)})],
            [(0, "dependency_cycle")],
        ),
        (
            [create("x", dependencies=("TASK-0001",)), PlanEdit("delete", "TASK-0001")],
            [(0, "dependency_deleted")],
        ),
        ([PlanEdit("delete", "TASK-0001")] * (MAX_EDITS + 1), [(-1, "too_many")]),
        (
            [PlanEdit("delete", "nobody"), create("x", "nowhere")],
            [(0, "unknown_id"), (1, "unknown_id")],
        ),
    ],
)
def test_every_bad_edit_is_named_and_nothing_is_changed(
    edits: Sequence[PlanEdit], expected: list[tuple[int, str]]
) -> None:
    plan = small()
    assert codes(plan, *edits) == expected
    assert plan == small()


def test_a_task_that_is_being_worked_on_stays() -> None:
    plan = with_task(small(), "TASK-0001", PlannedTask("node-0002", PlanTaskStatus.RUNNING))
    for edit in (
        PlanEdit("delete", "TASK-0001"),
        PlanEdit("delete", "node-0001", cascade=True),
        PlanEdit("move", "TASK-0001", parent_id=ROOT),
    ):
        assert codes(plan, edit) == [(0, "at_work")]
    assert tree(apply(plan, [PlanEdit("move", "TASK-0001", place=SiblingPlace(index=2))])) == [
        ("Phase", ["b", "c", "a"]),
        "d",
    ]


def test_a_wish_becomes_phases_with_tasks() -> None:
    reply = """
type: decompose
understanding: A product list page is wanted.
phases:
  - name: Design
    milestone: M1
    tasks:
      - {id: t1, title: Design it, description: Props, wbs_level: 2, estimated_effort: small,
         acceptance_criteria: [Props are defined], suggested_impl: {file_paths: [a.ts]}}
  - name: Build
    milestone: M2
    tasks:
      - {id: t2, title: Build it, description: From the design, dependencies: [t1], wbs_level: 3,
         estimated_effort: medium, acceptance_criteria: []}
potential_conflicts: [{file: a.ts, tasks: [t1, OLD-1], warning: may be changing}]
"""
    message = parse_reply(reply, "decompose").payload
    assert isinstance(message, Decompose)
    said = PotentialConflict("a.ts", ("t1", "OLD-1"), "may be changing")
    plan = apply(Plan(), edits_of_decompose(message), conflicts=[said], goal="A page")
    assert tree(plan) == [("Design", ["Design it"]), ("Build", ["Build it"])]
    assert plan.design_of("TASK-0002").dependencies == ("TASK-0001",)
    assert plan.design_of("TASK-0002").phase_name == "Build"
    assert plan.conflicts == (replace(said, tasks=("TASK-0001", "OLD-1")),)


def test_a_conflict_with_tasks_of_elsewhere_is_kept_and_one_of_deleted_tasks_is_not() -> None:
    make = [PlanEdit("create", name, given={"title": name}) for name in ("a", "b")]
    elsewhere = PotentialConflict("page.svelte", ("TASK-001",), "may be under change")
    ours = PotentialConflict("a.ts", ("b",), "both")
    plan = apply(Plan(), make, conflicts=[elsewhere, ours])
    assert plan.conflicts == (elsewhere, replace(ours, tasks=("TASK-0002",)))
    assert "page.svelte (TASK-001): may be under change" in plan_screen(
        plan, (), driven=True, width=80
    )
    later = apply(plan, [PlanEdit("delete", "TASK-0002")])
    assert later.conflicts == (elsewhere,)


def test_the_reply_says_what_it_leaves_alone() -> None:
    reply = """{"type": "plan_patch", "version": 1, "payload": {"understanding": "u",
      "operations": [
      {"op": "update", "task_id": "TASK-0002", "dependencies": []},
      {"op": "update", "task_id": "TASK-0003", "title": "C", "dependencies": null,
       "description": null, "suggested_impl": null, "position": null, "cascade": null}]}}"""
    message = parse_reply(reply, "plan_patch").payload
    assert isinstance(message, PlanPatch)
    after = apply(small(), edits_of_patch(message))
    assert after.design_of("TASK-0002").dependencies == ()
    assert after.design_of("TASK-0003").dependencies == ("TASK-0002",)
    assert after.design_of("TASK-0003").title == "C"


def test_a_diff_names_the_fewest_moves() -> None:
    plan = small()
    after = apply(
        plan,
        [
            PlanEdit("move", "TASK-0003", place=SiblingPlace(index=0)),
            PlanEdit("update", "TASK-0001", {"title": "A"}),
            PlanEdit("delete", "TASK-0004"),
            create("e", "p2"),
        ][:3],
    )
    found = diff(plan, after)
    assert found.moved == ("node-0004",)
    assert found.deleted == ("node-0005",)
    assert [(node, [c.name for c in changes]) for node, changes in found.changed] == [
        ("node-0002", ["title"])
    ]
    assert diff(plan, apply(plan, [])).empty


def test_children_that_take_a_deleted_nodes_place_have_not_moved() -> None:
    plan = small()
    assert diff(plan, apply(plan, [PlanEdit("delete", "node-0001")])).moved == ()


def test_undo_gives_the_earlier_plan_under_a_new_version_and_no_id_twice() -> None:
    first = small()
    second = apply(first, [PlanEdit("delete", "TASK-0002"), create("e")])
    second = with_task(second, "TASK-0001", PlannedTask("node-0002", PlanTaskStatus.COMPLETE))
    back = undo(second, first)
    assert tree(back) == tree(first)
    assert back.version == 3
    assert back.tasks["TASK-0001"].status == PlanTaskStatus.COMPLETE
    assert back.designs["node-0006"].deleted_in == 3
    assert apply(back, [create("f")]).task_order()[-1] == "TASK-0006"
    at_work = with_task(second, "TASK-0005", PlannedTask("node-0006", PlanTaskStatus.RUNNING))
    with pytest.raises(PatchRejected):
        undo(at_work, first)


numbers = range(1, 9)
names = st.sampled_from(
    [ROOT, "t1", "t2", "t3", *(f"{kind}-{n:04d}" for kind in ("TASK", "node") for n in numbers)]
)
places = st.one_of(
    st.none(),
    st.builds(SiblingPlace, index=st.integers(-3, 9)),
    st.builds(SiblingPlace, before=names),
    st.builds(SiblingPlace, after=names),
)
designs = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["x", "y"]),
        "dependencies": st.lists(names, max_size=3).map(tuple),
        "description": st.text(max_size=5),
    },
)
edits = st.builds(
    PlanEdit,
    op=st.sampled_from(["create", "update", "move", "delete"]),
    target=names,
    given=designs,
    parent_id=st.none() | names,
    place=places,
    cascade=st.booleans(),
    phase=st.booleans(),
)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.lists(edits, max_size=6), max_size=6), st.sets(st.integers(1, 8)))
def test_whatever_is_asked_the_plan_stays_a_plan(
    patches: list[list[PlanEdit]], running: set[int]
) -> None:
    """One root, all reachable, children unique, no cycle, every dependency alive."""
    plan = small()
    for patch in patches:
        for number in running:
            task_id = f"TASK-{number:04d}"
            if task_id in plan.tasks:
                at_work = replace(plan.tasks[task_id], status=PlanTaskStatus.RUNNING)
                plan = with_task(plan, task_id, at_work)
        before = repr(plan)
        try:
            after = apply(plan, patch)
        except PatchRejected:
            assert repr(plan) == before
            continue
        assert repr(plan) == before
        assert check_tree(after) == []
        for task_id in after.tasks:
            assert set(after.design_of(task_id).dependencies) <= after.tasks.keys() - {task_id}
        assert all(waits_end(after, task_id, set()) for task_id in after.tasks)
        assert tree(undo(after, plan, force=True)) == tree(plan)
        plan = after


def waits_end(plan: Plan, task_id: str, path: set[str]) -> bool:
    return task_id not in path and all(
        waits_end(plan, other, path | {task_id}) for other in plan.design_of(task_id).dependencies
    )
