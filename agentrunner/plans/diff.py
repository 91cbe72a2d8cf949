"""The difference between two plans, and going back to an earlier one."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, fields, replace

from msgspec import Struct

from agentrunner.plans.patch import EditError, PatchRejected
from agentrunner.plans.plan import AT_WORK, ROOT, NodeDesign, Plan, PlanNode


@dataclass(frozen=True)
class FieldChange:
    """One field of a design, before and after."""

    name: str
    before: object
    after: object


class PlanDiff(Struct, frozen=True):
    """Nodes by what happened to them, each list in the order of its tree."""

    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    """Under another parent, or past a sibling that is in both plans."""
    changed: tuple[tuple[str, tuple[FieldChange, ...]], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the plans are the same except for their version."""
        return not (self.created or self.deleted or self.moved or self.changed)


def diff(before: Plan, after: Plan) -> PlanDiff:
    """Return the difference between two plans."""
    both = [node_id for node_id in after.walk() if node_id in before.nodes]
    changes = []
    for node_id in both:
        old, new = before.designs.get(node_id), after.designs.get(node_id)
        if old is not None and new is not None and (found := _changed(old, new)):
            changes.append((node_id, found))
    return PlanDiff(
        created=tuple(n for n in after.walk() if n not in before.nodes),
        deleted=tuple(n for n in before.walk() if n not in after.nodes),
        moved=tuple(_moved(before, after, both)),
        changed=tuple(changes),
    )


def _changed(old: NodeDesign, new: NodeDesign) -> tuple[FieldChange, ...]:
    return tuple(
        FieldChange(field.name, getattr(old, field.name), getattr(new, field.name))
        for field in fields(NodeDesign)
        if getattr(old, field.name) != getattr(new, field.name)
    )


def _moved(before: Plan, after: Plan, both: list[str]) -> list[str]:
    """Return nodes under another parent, and the fewest whose moves explain a new order of
    siblings.

    A child of a deleted node takes its place: that does not count as a move of the child.
    """
    moved = []
    for node_id in both:
        old, new = before.nodes[node_id].parent_id, after.nodes[node_id].parent_id
        spliced = (
            old is not None
            and old not in after.nodes
            and _nearest_kept_ancestor(before, after, old) == new
        )
        if old != new and not spliced:
            moved.append(node_id)
    out_of_line = set(moved)
    for parent in both:
        stayed = [c for c in after.nodes[parent].children if c in before.nodes]
        order = {child: index for index, child in enumerate(before.nodes[parent].children)}
        line = [order[c] for c in stayed if c in order and c not in out_of_line]
        kept = _longest_increasing(line)
        moved += [c for c in stayed if c in order and c not in out_of_line and order[c] not in kept]
    order_in_tree = {node_id: index for index, node_id in enumerate(both)}
    return sorted(moved, key=order_in_tree.__getitem__)


def _nearest_kept_ancestor(before: Plan, after: Plan, node_id: str) -> str | None:
    """Return the nearest node above a deleted one that still exists."""
    here: str | None = node_id
    while here is not None and here not in after.nodes:
        here = before.nodes[here].parent_id
    return here


def _longest_increasing(numbers: list[int]) -> set[int]:
    """Return the members of a longest increasing subsequence of different numbers."""
    tails: list[int] = []
    before: dict[int, int | None] = {}
    for number in numbers:
        index = bisect_left(tails, number)
        before[number] = tails[index - 1] if index else None
        tails[index : index + 1] = [number]
    kept: set[int] = set()
    here = tails[-1] if tails else None
    while here is not None:
        kept.add(here)
        here = before[here]
    return kept


def undo(current: Plan, earlier: Plan, *, force: bool = False) -> Plan:
    """Return the earlier plan as a new version: tasks that are in both keep their present status.

    No id is given twice, so counters continue. Raises PatchRejected where that would delete a task
    that is being worked on, unless forced.
    """
    removed = [task_id for task_id in current.tasks if task_id not in earlier.tasks]
    at_work = [task_id for task_id in removed if current.tasks[task_id].status in AT_WORK]
    if at_work and not force:
        message = (
            f"{', '.join(at_work)} would go, and is being worked on; "
            "agentrunner plan undo --force takes it away all the same"
        )
        raise PatchRejected([EditError(-1, "at_work", message)])
    return replace(
        earlier,
        version=current.version + 1,
        designs={**designs_deleted_by(earlier, current), **earlier.designs},
        tasks={
            task_id: current.tasks.get(task_id, task) for task_id, task in earlier.tasks.items()
        },
        tasks_made=current.tasks_made,
        nodes_made=current.nodes_made,
    )


def designs_deleted_by(plan: Plan, current: Plan) -> dict[str, NodeDesign]:
    """Return designs, marked as deleted, whose nodes a plan from elsewhere does not have."""
    return {
        node_id: design if design.deleted_in else replace(design, deleted_in=current.version + 1)
        for node_id, design in current.designs.items()
        if node_id not in plan.nodes
    }


def check_tree(plan: Plan) -> list[str]:
    """Return what is wrong with a plan from elsewhere; nothing for one that `apply` made."""
    wrong = []
    if ROOT not in plan.nodes or plan.nodes[ROOT].parent_id is not None:
        return [f"there is no root {ROOT}"]
    seen: dict[str, str] = {}
    todo = [ROOT]
    while todo:
        here = todo.pop()
        for child in plan.nodes[here].children:
            if child in seen or child == ROOT:
                wrong.append(f"{child} is in the tree twice")
            elif child not in plan.nodes:
                wrong.append(f"{here} has a child {child} that is not there")
            else:
                seen[child] = here
                todo.append(child)
    wrong += [f"{n} cannot be reached from the root" for n in plan.nodes if n not in {ROOT, *seen}]
    wrong += [
        _misplaced(n, node) for n, node in plan.nodes.items() if node.parent_id != seen.get(n)
    ]
    of_nodes = [node.task_id for node in plan.nodes.values() if node.task_id is not None]
    if sorted(of_nodes) != sorted(plan.tasks):
        wrong.append("the tasks are not those of the tree")
    return wrong


def _misplaced(node_id: str, node: PlanNode) -> str:
    return f"{node_id} says its parent is {node.parent_id}, and is not below it"
