"""A plan while it is edited: a copy that one patch works on, and that becomes the next plan.

It knows the tree but not dependencies; `patch.py` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from msgspec import Struct

from agentrunner.plans.plan import NodeDesign, Plan, PlannedTask, PlanNode


class Slot(Struct):
    """A node of the tree, changed in place."""

    parent_id: str | None
    children: list[str]
    task_id: str | None


class Draft:
    """An editable copy of a plan; the plan itself stays as it is."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.version = plan.version + 1
        self.slots = {
            node_id: Slot(node.parent_id, list(node.children), node.task_id)
            for node_id, node in plan.nodes.items()
        }
        self.designs = dict(plan.designs)
        self.tasks = dict(plan.tasks)
        self.tasks_made = plan.tasks_made
        self.nodes_made = plan.nodes_made

    def new_ids(self, *, phase: bool) -> tuple[str, str | None]:
        """Return the next node id, and the next task id unless it is a phase."""
        self.nodes_made += 1
        node_id = f"node-{self.nodes_made:04d}"
        if phase:
            return node_id, None
        self.tasks_made += 1
        return node_id, f"TASK-{self.tasks_made:04d}"

    def insert(self, node_id: str, parent_id: str, index: int) -> None:
        """Put a node among its siblings."""
        self.slots[parent_id].children.insert(index, node_id)
        self.slots[node_id].parent_id = parent_id

    def detach(self, node_id: str) -> None:
        """Remove a node, with what is below it, from its parent."""
        parent = self.slots[node_id].parent_id
        assert parent is not None
        self.slots[parent].children.remove(node_id)

    def add(self, node_id: str, task_id: str | None, design: NodeDesign) -> None:
        """Add a new node that has no place in the tree yet."""
        self.slots[node_id] = Slot(None, [], task_id)
        self.designs[node_id] = design
        if task_id is not None:
            self.tasks[task_id] = PlannedTask(node_id)

    def change(self, node_id: str, **given: Any) -> None:
        """Set fields of a design."""
        self.designs[node_id] = replace(self.designs[node_id], **given)

    def below(self, node_id: str) -> Iterator[str]:
        """Yield a node and all that is below it."""
        todo = [node_id]
        while todo:
            here = todo.pop()
            yield here
            todo.extend(self.slots[here].children)

    def is_below(self, node_id: str, ancestor: str) -> bool:
        """Whether a node is the other one, or below it."""
        here: str | None = node_id
        while here is not None:
            if here == ancestor:
                return True
            here = self.slots[here].parent_id
        return False

    def remove(self, node_id: str, *, cascade: bool) -> list[str]:
        """Remove a node from the tree; its children take its place, or go too with `cascade`.

        Returns the ids of the tasks that were removed. Designs stay, marked as deleted.
        """
        parent = self.slots[node_id].parent_id
        assert parent is not None
        siblings = self.slots[parent].children
        index = siblings.index(node_id)
        removed = list(self.below(node_id)) if cascade else [node_id]
        kept = [] if cascade else self.slots[node_id].children
        siblings[index : index + 1] = kept
        for child in kept:
            self.slots[child].parent_id = parent
        tasks = []
        for removed_id in removed:
            task_id = self.slots.pop(removed_id).task_id
            self.change(removed_id, deleted_in=self.version)
            if task_id is not None:
                tasks.append(task_id)
                del self.tasks[task_id]
        return tasks

    def finish(self, **changes: Any) -> Plan:
        """Return the edited plan, one version later."""
        return replace(
            self.plan,
            version=self.version,
            nodes={
                node_id: PlanNode(slot.parent_id, tuple(slot.children), slot.task_id)
                for node_id, slot in self.slots.items()
            },
            designs=self.designs,
            tasks=self.tasks,
            tasks_made=self.tasks_made,
            nodes_made=self.nodes_made,
            **changes,
        )
