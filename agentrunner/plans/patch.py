"""(Plan, edits) -> Plan: all of them or none.

Every edit that cannot be applied is named, so that the planner can fix the whole patch at once.
Edits are applied in order; dependencies may name tasks that are created later in the patch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from agentrunner.errors.plans import BadPatch
from agentrunner.plans.plan import (
    AT_WORK,
    ROOT,
    Hint,
    NodeDesign,
    Plan,
    PlannedTask,
    PlanNode,
    PotentialConflict,
)
from agentrunner.plans.planner_view import MAX_CRITERION_CHARS
from agentrunner.text.cut import cut

if TYPE_CHECKING:
    from agentrunner.protocol import Decompose, PlanPatch
    from agentrunner.protocol.planning import Conflict, PlanOperation, SuggestedImpl

LISTS = ("acceptance_criteria", "dependencies")
FACETS = ("phase_name", "milestone", "wbs_level", "estimated_effort")


class SiblingPlace(Struct, frozen=True):
    """A position among siblings: exactly one of the three is given."""

    index: int | None = None
    before: str | None = None
    after: str | None = None

    @property
    def anchor(self) -> str | None:
        """Return the sibling that the position refers to."""
        return self.before or self.after


class PlanEdit(Struct, frozen=True):
    """One operation. Ids may be temporary, of a task, or of a node."""

    op: Literal["create", "update", "delete", "move"]
    target: str
    """The temporary id of what is created, else the id of the task or node."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the design that are set, none of them None: a field that is missing stays as it is,
    and an empty list clears."""
    parent_id: str | None = None
    place: SiblingPlace | None = None
    cascade: bool = False
    phase: bool = False
    """For create: a node that only groups, without a task."""


class Slot(Struct):
    """A node of the tree, changed in place; it knows the tree but not dependencies."""

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


MAX_EDITS = 200
MAX_PLAN_TASKS = 20_000
TITLE_CHARS = 60


class EditError(Struct, frozen=True):
    """Why one edit cannot be applied."""

    op_index: int
    """Index in the patch, from 0; -1 for the patch as a whole."""
    code: str
    """`unknown_id`, `deleted`, `root`, `cycle`, `at_work`, `position`, `missing`, `duplicate_id`,
    `self_dependency`, `dependency_cycle`, `dependency_deleted`, `too_many`."""
    message: str

    def __str__(self) -> str:
        place = f"operation {self.op_index}: " if self.op_index >= 0 else ""
        return f"{place}{self.message}"


class PatchRejected(BadPatch):
    """A patch that changes nothing; `errors` has a reason for each bad edit."""

    def __init__(self, errors: Sequence[EditError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = tuple(errors)


class _Refused(Exception):
    """An edit that cannot be applied."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def apply(
    plan: Plan,
    edits: Sequence[PlanEdit],
    *,
    conflicts: Iterable[PotentialConflict] = (),
    goal: str | None = None,
) -> Plan:
    """Return the plan after all the edits, one version later.

    Raises PatchRejected; `plan` is never changed.
    """
    if len(edits) > MAX_EDITS:
        raise PatchRejected([_too_many(f"{len(edits)} operations; at most {MAX_EDITS} at once")])
    return _Patch(plan, edits).applied(tuple(conflicts), goal)


def _too_many(message: str) -> EditError:
    return EditError(-1, "too_many", message)


class _Patch:
    """A patch while it is applied."""

    def __init__(self, plan: Plan, edits: Sequence[PlanEdit]) -> None:
        self._plan = plan
        self._edits = edits
        self._draft = Draft(plan)
        self._errors: list[EditError] = []
        self._made: dict[str, tuple[str, str | None]] = {}
        """Temporary id to the ids of node and task."""
        self._deleted_tasks: set[str] = set()
        """Tasks that this patch deletes."""
        self._named: dict[str, int] = {}
        """Tasks whose dependencies this patch sets, and the index of the edit."""

    def applied(self, conflicts: tuple[PotentialConflict, ...], goal: str | None) -> Plan:
        """Return the plan after the patch; raise PatchRejected."""
        self._give_ids()
        if self._errors:
            raise PatchRejected(self._errors)
        for index, edit in enumerate(self._edits):
            try:
                self._apply_edit(edit, index)
            except _Refused as refusal:
                self._errors.append(EditError(index, refusal.code, str(refusal)))
        self._settle_dependencies()
        if len(self._draft.tasks) > MAX_PLAN_TASKS:
            self._errors.append(_too_many(f"a plan has at most {MAX_PLAN_TASKS} tasks"))
        if self._errors:
            raise PatchRejected(sorted(self._errors, key=lambda error: error.op_index))
        known = dict.fromkeys((*self._plan.conflicts, *map(self._resolved, conflicts)))
        living = [c for c in known if self._still_warns(c)]
        return self._draft.finish(
            conflicts=tuple(living), goal=self._plan.goal if goal is None else goal
        )

    def _give_ids(self) -> None:
        """Give official ids to everything that is created, so that any edit may name it."""
        for index, edit in enumerate(self._edits):
            if edit.op != "create":
                continue
            if edit.target in self._made:
                message = f"{edit.target} is created twice"
                self._errors.append(EditError(index, "duplicate_id", message))
                continue
            self._made[edit.target] = self._draft.new_ids(phase=edit.phase)

    # -- ids ------------------------------------------------------------------------------------

    def _node(self, name: str) -> str:
        """Return the existing node that a temporary, task or node id names."""
        node_id = self._made[name][0] if name in self._made else self._official(name)
        if node_id not in self._draft.slots:
            if node_id in self._draft.designs:
                raise _Refused("deleted", f"{name} is deleted")
            if name in self._made:
                raise _Refused("unknown_id", f"{name} is created later in this patch")
            raise _Refused("unknown_id", f"there is no task or node {name}")
        return node_id

    def _official(self, name: str) -> str:
        known = self._plan.tasks.get(name)
        return known.node_id if known is not None else name

    def _task(self, name: str) -> str:
        """Return the task that a dependency names, deleted or not."""
        if name in self._made:
            task_id = self._made[name][1]
        elif name in self._plan.tasks:
            task_id = name
        elif name in self._plan.nodes:
            task_id = self._plan.nodes[name].task_id
        else:
            raise _Refused("unknown_id", f"the dependency {name} is no task")
        if task_id is None:
            raise _Refused("unknown_id", f"the dependency {name} is a phase, not a task")
        return task_id

    def _still_warns(self, conflict: PotentialConflict) -> bool:
        """Whether a named task is in the plan, or no named task ever was."""
        named = [name for name in conflict.tasks if self._was_made(name)]
        return not named or any(name in self._draft.tasks for name in named)

    def _was_made(self, name: str) -> bool:
        """Whether it is the official id of a task, deleted or not."""
        number = name.removeprefix("TASK-")
        if not (number.isascii() and number.isdecimal() and name == f"TASK-{int(number):04d}"):
            return False
        return 1 <= int(number) <= self._draft.tasks_made

    def _resolved(self, conflict: PotentialConflict) -> PotentialConflict:
        """Return the conflict with official ids; names that are no task's stay as they are."""
        tasks = []
        for name in conflict.tasks:
            try:
                tasks.append(self._task(name))
            except _Refused:
                tasks.append(name)
        return PotentialConflict(conflict.file, tuple(tasks), conflict.warning)

    # -- the four operations --------------------------------------------------------------------

    def _apply_edit(self, edit: PlanEdit, index: int) -> None:
        if edit.op == "create":
            self._create(edit, index)
            return
        node_id = self._node(edit.target)
        if node_id == ROOT:
            raise _Refused("root", "the root of the plan stays as it is")
        match edit.op:
            case "update":
                self._update(node_id, edit, index)
            case "move":
                self._move(node_id, edit)
            case "delete":
                self._delete(node_id, edit)

    def _create(self, edit: PlanEdit, index: int) -> None:
        parent = self._node(edit.parent_id) if edit.parent_id else self._parent_of_anchor(edit)
        given = dict(edit.given)
        title = given.pop("title", "") or str(given.get("description", ""))[:TITLE_CHARS]
        if not title:
            raise _Refused("missing", f"{edit.target} needs a title")
        node_id, task_id = self._made[edit.target]
        self._draft.add(node_id, task_id, NodeDesign(title=title, **given))
        try:
            self._draft.insert(node_id, parent, self._index(parent, edit.place))
        except _Refused:
            self._draft.insert(node_id, parent, len(self._draft.slots[parent].children))
            raise
        finally:
            if task_id is not None:
                self._named[task_id] = index

    def _parent_of_anchor(self, edit: PlanEdit) -> str:
        """Return the parent where none is given: the sibling's it is put beside, else the root."""
        if edit.place is None or edit.place.anchor is None:
            return ROOT
        return self._draft.slots[self._node(edit.place.anchor)].parent_id or ROOT

    def _update(self, node_id: str, edit: PlanEdit, index: int) -> None:
        given = dict(edit.given)
        if "acceptance_criteria" in given:
            known = self._draft.designs[node_id].acceptance_criteria
            given["acceptance_criteria"] = _uncut(given["acceptance_criteria"], known)
        self._draft.change(node_id, **given)
        task_id = self._draft.slots[node_id].task_id
        if "dependencies" in edit.given:
            if task_id is None:
                raise _Refused("unknown_id", f"{edit.target} is a phase and has no dependencies")
            self._named[task_id] = index

    def _move(self, node_id: str, edit: PlanEdit) -> None:
        old = self._draft.slots[node_id].parent_id
        assert old is not None
        parent = old
        if edit.parent_id:
            parent = self._node(edit.parent_id)
        elif edit.place is not None and edit.place.anchor is not None:
            parent = self._parent_of_anchor(edit)
        if self._draft.is_below(parent, node_id):
            raise _Refused("cycle", f"{edit.target} cannot be put below itself")
        if parent != old:
            self._refuse_at_work([node_id], "moved to another parent")
        siblings = self._draft.slots[old].children
        old_index = siblings.index(node_id)
        self._draft.detach(node_id)
        try:
            index = self._index(parent, edit.place)
        except _Refused:
            siblings.insert(old_index, node_id)
            raise
        self._draft.insert(node_id, parent, index)

    def _delete(self, node_id: str, edit: PlanEdit) -> None:
        nodes = list(self._draft.below(node_id)) if edit.cascade else [node_id]
        self._refuse_at_work(nodes, "deleted")
        self._deleted_tasks.update(self._draft.remove(node_id, cascade=edit.cascade))

    def _refuse_at_work(self, nodes: Iterable[str], what: str) -> None:
        for node_id in nodes:
            task_id = self._draft.slots[node_id].task_id
            if task_id is not None and self._draft.tasks[task_id].status in AT_WORK:
                raise _Refused("at_work", f"{task_id} is being worked on and cannot be {what}")

    def _index(self, parent: str, place: SiblingPlace | None) -> int:
        siblings = self._draft.slots[parent].children
        if place is None:
            return len(siblings)
        if place.index is not None:
            return min(max(place.index, 0), len(siblings))
        assert place.anchor is not None
        anchor = self._node(place.anchor)
        if anchor not in siblings:
            raise _Refused("position", f"{place.anchor} is not below the same parent")
        return siblings.index(anchor) + (place.after is not None)

    # -- dependencies ---------------------------------------------------------------------------

    def _settle_dependencies(self) -> None:
        """Resolve dependencies that the patch sets, drop deleted ones elsewhere, refuse cycles."""
        for task_id, task in list(self._draft.tasks.items()):
            design = self._draft.designs[task.node_id]
            if task_id in self._named:
                kept = self._written(task_id, design.dependencies, self._named[task_id])
            elif self._deleted_tasks.isdisjoint(design.dependencies):
                continue
            else:
                kept = tuple(d for d in design.dependencies if d not in self._deleted_tasks)
            if kept != design.dependencies:
                self._draft.change(task.node_id, dependencies=kept)
        if self._named and not self._errors:
            self._refuse_cycle()

    def _written(self, task_id: str, names: tuple[str, ...], index: int) -> tuple[str, ...]:
        """Return the dependencies that an edit names; each invalid one is an error of the edit."""
        kept: dict[str, None] = {}
        for name in names:
            try:
                other = self._task(name)
                if other == task_id:
                    raise _Refused("self_dependency", f"{task_id} cannot depend on itself")
                if other not in self._draft.tasks:
                    raise _Refused("dependency_deleted", f"the dependency {name} is deleted")
            except _Refused as refusal:
                self._errors.append(EditError(index, refusal.code, str(refusal)))
                continue
            kept[other] = None
        return tuple(kept)

    def _refuse_cycle(self) -> None:
        graph: Mapping[str, tuple[str, ...]] = {
            task_id: self._draft.designs[task.node_id].dependencies
            for task_id, task in self._draft.tasks.items()
        }
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle: list[str] = error.args[1]
            index = max((self._named[task] for task in circle if task in self._named), default=-1)
            message = f"the dependencies go in a circle: {' → '.join(reversed(circle))}"
            self._errors.append(EditError(index, "dependency_cycle", message))


def _uncut(criteria: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return criteria, those restored that were shown cut: written as shown, they stay whole."""
    long = [text for text in known if len(text) > MAX_CRITERION_CHARS]
    kept = []
    for text in criteria:
        whole = next((one for one in long if cut(one, MAX_CRITERION_CHARS) == text), None)
        if whole is not None:
            long.remove(whole)
        kept.append(whole or text)
    return tuple(kept)


def edits_of_patch(patch: PlanPatch) -> list[PlanEdit]:
    """Return the operations of a plan_patch, in order."""
    return [_edit(operation) for operation in patch.operations]


def edits_of_decompose(message: Decompose) -> list[PlanEdit]:
    """Return a decomposition as creates: a node for each phase, its tasks below it."""
    edits = []
    for number, phase in enumerate(message.phases):
        group = f"phase {number + 1}"
        facets = {"phase_name": phase.name, "milestone": phase.milestone}
        edits.append(PlanEdit("create", group, {"title": phase.name, **facets}, phase=True))
        for task in phase.tasks:
            given: dict[str, object] = {
                "title": task.title,
                "description": task.description,
                "acceptance_criteria": tuple(task.acceptance_criteria),
                "dependencies": tuple(task.dependencies),
                "wbs_level": task.wbs_level,
                "estimated_effort": task.estimated_effort,
                **facets,
            }
            if task.suggested_impl is not None:
                given["suggested_impl"] = _hint(task.suggested_impl)
            edits.append(PlanEdit("create", task.id, given, parent_id=group))
    return edits


def conflicts_of(conflicts: list[Conflict]) -> tuple[PotentialConflict, ...]:
    """Return files that several tasks may change, as the planner listed them."""
    return tuple(PotentialConflict(c.file, tuple(c.tasks), c.warning) for c in conflicts)


def _edit(operation: PlanOperation) -> PlanEdit:
    # A strict schema requires every key, so null means the same as a missing key.
    values: dict[str, object] = {
        **{name: getattr(operation, name) for name in ("title", "description", *FACETS)},
        **{name: tuple(found) for name in LISTS if (found := getattr(operation, name)) is not None},
        "suggested_impl": _hint(operation.suggested_impl),
    }
    given = {name: value for name, value in values.items() if value is not None}
    target = operation.temp_id if operation.op == "create" else operation.task_id
    assert target is not None
    return PlanEdit(
        operation.op,
        target,
        given,
        parent_id=operation.parent_id,
        place=SiblingPlace(at.index, at.before, at.after) if (at := operation.position) else None,
        cascade=operation.cascade,
    )


def _hint(hint: SuggestedImpl | None) -> Hint | None:
    if hint is None:
        return None
    return Hint(hint.language or "", tuple(hint.file_paths), tuple(hint.constraints))
