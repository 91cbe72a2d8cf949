"""A plan: a tree of tasks under phases, the design of each node, and the status of each task.

Everything is immutable. Maps are never changed in place: editing a plan makes new ones
(`patch.py`), so that a reader's copy stays as it was. Ids are given in order, `TASK-0001` and
`node-0001`, and never twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentrunner.state.lifecycle import END_STATES, state_word

ROOT = "node-root"


class PlanTaskStatus(StrEnum):
    """The status of a task of a plan: the states of a run, and those that only a plan has.

    BLOCKED is stored for a task that a person has to unblock; one that merely waits for its
    dependencies is PENDING here and shown as BLOCKED (`Plan.shown_status`). People read
    the words of `status_word`.
    """

    PENDING = "PENDING"
    PLANNING = "PLANNING"
    RUNNING = "RUNNING"
    VALIDATING = "VALIDATING"
    FIXING = "FIXING"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    NEEDS_REVIEW = "NEEDS_REVIEW"
    RETRY_WAIT = "RETRY_WAIT"
    BLOCKED = "BLOCKED"
    STOPPED = "STOPPED"
    """Its run was stopped gracefully on the way, and continues with the plan."""
    DELETED = "DELETED"


AT_WORK = frozenset(
    {
        PlanTaskStatus.PLANNING,
        PlanTaskStatus.RUNNING,
        PlanTaskStatus.VALIDATING,
        PlanTaskStatus.FIXING,
    }
)
"""A run works on the task: it is neither deleted nor moved to another parent."""
BEGUN = AT_WORK | {PlanTaskStatus.STOPPED}
"""The task's run has not ended."""
ENDED = frozenset(PlanTaskStatus(end) for end in END_STATES)
AT_REST = ENDED | {PlanTaskStatus.STOPPED}
"""No run works on the task, and no question is open in the middle of one."""
FELL_SHORT = ENDED - {PlanTaskStatus.COMPLETE}
"""The task's run has ended, and not COMPLETE."""


def status_word(status: PlanTaskStatus | str, behind: str = "others", *, driven: bool) -> str:
    """Return the status of a task as people read it, in the words of runs.

    `behind` names the tasks that a BLOCKED one waits for; "" where it waits for a person. A task at
    work, or one that is to be tried again, is stopped where no process drives the plan.
    """
    if status in (PlanTaskStatus.PENDING, PlanTaskStatus.DELETED):
        return "to do" if status == PlanTaskStatus.PENDING else "deleted"
    if status == PlanTaskStatus.BLOCKED and behind:
        return f"behind {behind}"
    return state_word(
        {
            "state": status,
            "running": driven and status != PlanTaskStatus.STOPPED,
            "waiting": status == PlanTaskStatus.BLOCKED,
            "waiting_until": status == PlanTaskStatus.RETRY_WAIT,
        }
    )


@dataclass(frozen=True)
class Hint:
    """A suggestion for how to implement a task."""

    language: str = ""
    file_paths: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeDesign:
    """What a node is about. It is kept after the node is deleted, for history."""

    title: str
    description: str = ""
    acceptance_criteria: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    """Ids of tasks that have to be COMPLETE first."""
    phase_name: str = ""
    milestone: str = ""
    wbs_level: int = 3
    """1 concept, 2 design, 3 implementation."""
    estimated_effort: str = "medium"
    suggested_impl: Hint | None = None
    deleted_in: int = 0
    """The plan's version that deleted it; 0 while it exists."""

    @property
    def asked_for(self) -> tuple[str, str, tuple[str, ...]]:
        """Return what is to be done, and when it is done; if this differs, it is another task."""
        return self.title, self.description, self.acceptance_criteria


@dataclass(frozen=True)
class PlanNode:
    """A place in the tree."""

    parent_id: str | None
    """None only for the root."""
    children: tuple[str, ...] = ()
    task_id: str | None = None
    """None for the root and for phases, which only group."""


@dataclass(frozen=True)
class PlannedTask:
    """A task and its status."""

    node_id: str
    status: PlanTaskStatus = PlanTaskStatus.PENDING


@dataclass(frozen=True)
class PotentialConflict:
    """A file that several tasks may change."""

    file: str
    tasks: tuple[str, ...] = ()
    warning: str = ""


@dataclass(frozen=True)
class Plan:
    """A whole plan at one version."""

    version: int = 0
    """Counts accepted changes."""
    goal: str = ""
    nodes: Mapping[str, PlanNode] = field(default_factory=lambda: {ROOT: PlanNode(None)})
    """The tree by node id, without deleted nodes."""
    designs: Mapping[str, NodeDesign] = field(default_factory=dict)
    """By node id, deleted nodes included."""
    tasks: Mapping[str, PlannedTask] = field(default_factory=dict)
    """By task id, without deleted tasks."""
    conflicts: tuple[PotentialConflict, ...] = ()
    tasks_made: int = 0
    nodes_made: int = 0

    def walk(self) -> Iterator[str]:
        """Yield the ids of all nodes in the order of the tree, each before its children."""
        todo = [ROOT]
        while todo:
            node_id = todo.pop()
            yield node_id
            todo.extend(reversed(self.nodes[node_id].children))

    def outline(self) -> Iterator[tuple[str, int]]:
        """Yield all nodes below the root like `walk`, each with its depth; 0 directly below it."""
        todo = [(child, 0) for child in reversed(self.nodes[ROOT].children)]
        while todo:
            node_id, depth = todo.pop()
            yield node_id, depth
            todo += [(child, depth + 1) for child in reversed(self.nodes[node_id].children)]

    def task_order(self) -> list[str]:
        """Return the ids of all tasks that are not deleted, in the order of the tree."""
        return [task for node in self.walk() if (task := self.nodes[node].task_id) is not None]

    def design_of(self, task_id: str) -> NodeDesign:
        """Return the design of a task; raise KeyError for a deleted or unknown one."""
        return self.designs[self.tasks[task_id].node_id]

    def asks_as(self, other: Plan, task_id: str) -> bool:
        """Whether a task is in both plans, and both say the same of what is to be done.

        Its place in the tree and its dependencies may differ.
        """
        if task_id not in self.tasks or task_id not in other.tasks:
            return False
        return self.design_of(task_id).asked_for == other.design_of(task_id).asked_for

    def waits_for(self, task_id: str) -> tuple[str, ...]:
        """Return the dependencies of a task that are not COMPLETE."""
        return tuple(
            other
            for other in self.design_of(task_id).dependencies
            if self.tasks[other].status != PlanTaskStatus.COMPLETE
        )

    def shown_status(self, task_id: str) -> PlanTaskStatus:
        """Return the status that people see: a pending task that waits for others is BLOCKED."""
        status = self.tasks[task_id].status
        waits = status == PlanTaskStatus.PENDING and self.waits_for(task_id)
        return PlanTaskStatus.BLOCKED if waits else status
