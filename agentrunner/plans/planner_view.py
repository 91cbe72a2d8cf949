"""What the planner sees of a plan: cut by rule, the same bytes for the same plan.

Of more than 200 tasks it sees the most urgent, of more than 200 nodes the nearest to the root, of
the conversation the latest ten messages. An update replaces a whole list, so tasks that may be
updated are shown with their criteria: a planner that did not see them would lose them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentrunner.plans.plan import AT_WORK, BEGUN, ROOT, Plan, PlanTaskStatus
from agentrunner.state.lifecycle import END_STATES, NextStep
from agentrunner.text.cut import cut

if TYPE_CHECKING:
    from agentrunner.protocol.plan_schema import PlanIds

MAX_TASKS = 200
MAX_NODES = 200
MAX_MESSAGES = 10
MAX_MESSAGE_CHARS = 300
MAX_CRITERION_CHARS = 300

_END_RANKS: Mapping[NextStep, int] = {"review": 3, "retry": 4, "use": 5}
_RANKS = {
    **dict.fromkeys(BEGUN, 0),
    PlanTaskStatus.BLOCKED: 1,
    PlanTaskStatus.PENDING: 2,
    **{PlanTaskStatus(name): _END_RANKS[end.next_step] for name, end in END_STATES.items()},
}
_LAST = 6

View = dict[str, Any]


class ConversationMessage(Struct, frozen=True):
    """One message of a conversation about a plan."""

    role: str
    """`user` or `planner`."""
    text: str


def plan_facts(plan: Plan, history: Sequence[ConversationMessage]) -> View:
    """Return tasks, tree and conversation as JSON-native values."""
    return {
        "goal": plan.goal,
        "tasks": _tasks(plan),
        "wbs": _tree(plan),
        "history": _history(history),
    }


def plan_ids(plan: Plan) -> PlanIds:
    """Return the ids that a reply's schema allows, by what may be done with each task."""
    from agentrunner.protocol.plan_schema import PlanIds  # not for who only looks at a plan

    order = plan.task_order()
    nodes = list(plan.walk())
    return PlanIds(
        tasks=tuple(order),
        phases=tuple(node for node in nodes if node != ROOT and plan.nodes[node].task_id is None),
        parents=tuple(nodes),
        at_work=tuple(task for task in order if plan.tasks[task].status in AT_WORK),
    )


def _listed(items: Sequence[Any], total: int) -> View:
    return {"total": total, "truncated": len(items) < total, "items": list(items)}


def _tasks(plan: Plan) -> View:
    order = plan.task_order()
    shown = {task_id: plan.shown_status(task_id) for task_id in order}
    if len(order) > MAX_TASKS:
        order = sorted(order, key=lambda task_id: (_RANKS.get(shown[task_id], _LAST), task_id))
    kept = [_task(plan, task_id, shown[task_id]) for task_id in order[:MAX_TASKS]]
    return _listed(kept, len(shown))


def _task(plan: Plan, task_id: str, status: PlanTaskStatus) -> View:
    node_id = plan.tasks[task_id].node_id
    design = plan.designs[node_id]
    values = {
        "id": task_id,
        "title": design.title,
        "status": status.value,
        "dependencies": list(design.dependencies),
        "phase": design.phase_name,
        "milestone": design.milestone,
        "wbs_level": design.wbs_level,
        "parent_id": plan.nodes[node_id].parent_id,
    }
    if status != PlanTaskStatus.COMPLETE:
        criteria = design.acceptance_criteria
        values["acceptance_criteria"] = [cut(text, MAX_CRITERION_CHARS) for text in criteria]
    return values


def _tree(plan: Plan) -> View:
    """Return the tree breadth first; nodes that are left out are no children of shown ones."""
    kept: dict[str, None] = {}
    todo = deque([ROOT])
    while todo and len(kept) < MAX_NODES:
        here = todo.popleft()
        kept[here] = None
        todo.extend(plan.nodes[here].children)
    index = [
        {
            "node_id": node_id,
            "parent_id": plan.nodes[node_id].parent_id,
            "task_id": plan.nodes[node_id].task_id,
            "title": plan.designs[node_id].title if node_id in plan.designs else "",
            "children": [c for c in plan.nodes[node_id].children if c in kept],
        }
        for node_id in kept
    ]
    return {"root_node_id": ROOT, "node_index": _listed(index, len(plan.nodes))}


def _history(history: Sequence[ConversationMessage]) -> View:
    latest = history[-MAX_MESSAGES:]
    return _listed(
        [{"role": m.role, "text": cut(m.text, MAX_MESSAGE_CHARS)} for m in latest], len(history)
    )
