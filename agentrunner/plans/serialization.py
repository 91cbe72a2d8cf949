"""A plan as JSON: for the store, and as files that people and other tools read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrunner.errors import UsageError
from agentrunner.errors.plans import BadPlanFiles
from agentrunner.plans.diff import check_tree
from agentrunner.plans.plan import Plan

if TYPE_CHECKING:
    from pydantic import TypeAdapter

WBS = "wbs.json"
TASKS = "state/tasks.json"
HISTORY = "history/patches.jsonl"
DESIGNS = "design"
FACTS = ("version", "goal", "conflicts", "tasks_made", "nodes_made")
FORMAT = 1


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return what reads and writes objects of a class; pydantic is not for who has no plan."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def plan_to_json(plan: Plan) -> bytes:
    """Return the plan as one line, the same bytes for the same plan."""
    return _adapter(Plan).dump_json(plan)


def plan_from_json(data: bytes) -> Plan:
    """Return the plan from what `plan_to_json` made; raise ValueError for anything else."""
    plan: Plan = _adapter(Plan).validate_json(data, strict=False)
    return plan


def files_of(plan: Plan, history: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield relative path and text of each file of a plan: tree, designs, tasks, history."""
    whole = _adapter(Plan).dump_python(plan, mode="json")
    nodes, designs = whole["nodes"], whole["designs"]
    facts = {name: value for name, value in whole.items() if name in FACTS}
    yield WBS, _text({"format": FORMAT, **facts, "root_node_id": "node-root", "node_index": nodes})
    for node_id, design in designs.items():
        yield f"{DESIGNS}/{node_id}.json", _text(design)
    yield TASKS, _text(whole["tasks"])
    for task_id in plan.task_order():
        node_id = plan.tasks[task_id].node_id
        place = {"node_id": node_id, "parent_id": nodes[node_id]["parent_id"]}
        status = plan.shown_status(task_id).value
        task = {"id": task_id, **place, "status": status, **designs[node_id]}
        yield f"tasks/{task_id}.json", _text(task)
    yield HISTORY, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in history)


def plan_from_files(folder: Path) -> Plan:
    """Return the plan in a folder of such files; `tasks/` and the history are for readers, and
    ignored.

    Raises UsageError (`plan-files`) naming the file that is missing, unreadable or contradicts
    another.
    """
    from pydantic import ValidationError

    wbs = _read(folder / WBS)
    if wbs.get("format") != FORMAT:
        raise _bad(folder / WBS, f"is not of format {FORMAT}")
    tasks = _read(folder / TASKS)
    designs = {}
    for path in sorted((folder / DESIGNS).glob("*.json")):
        designs[path.stem] = _read(path)
    parts = {name: wbs[name] for name in FACTS if name in wbs}
    try:
        plan: Plan = _adapter(Plan).validate_python(
            {**parts, "nodes": wbs.get("node_index"), "designs": designs, "tasks": tasks},
            strict=False,
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise _bad(folder, f"holds no plan: {place}: {first['msg']}") from error
    if wrong := [*check_tree(plan), *_check_designs(plan)]:
        raise _bad(folder, f"holds no plan: {'; '.join(wrong[:5])}")
    return plan


def unread_edits(folder: Path, found: Plan, current: Plan) -> list[tuple[str, str]]:
    """Return the files of `tasks/` that say something else than the design that counts, each with
    the file of that design.

    Where the design itself was edited it is no wonder that its copy for readers is older.
    """
    edited = []
    for name, text in files_of(found, []):
        path = folder / name
        if not name.startswith("tasks/") or not path.is_file():
            continue
        node_id = found.tasks[path.stem].node_id
        design = current.designs.get(node_id)
        if (design is None or design == found.designs[node_id]) and _differs(path, text):
            edited.append((name, f"{DESIGNS}/{node_id}.json"))
    return edited


def _differs(path: Path, text: str) -> bool:
    try:
        there, wanted = json.loads(path.read_bytes()), json.loads(text)
        return {**there, "status": ""} != {**wanted, "status": ""}
    except (OSError, ValueError, TypeError):
        return True


def _check_designs(plan: Plan) -> Iterator[str]:
    """Yield faults that `check_tree` does not look for: designs, dependencies, counters."""
    root = next(iter(plan.nodes))
    for node_id, node in plan.nodes.items():
        if node.parent_id is not None and node_id not in plan.designs:
            yield f"{node_id} has no design"
    for task_id, task in plan.tasks.items():
        if plan.nodes.get(task.node_id, plan.nodes[root]).task_id != task_id:
            yield f"{task_id} says it is {task.node_id}, which is another"
        elif task.node_id in plan.designs:
            for other in plan.design_of(task_id).dependencies:
                if other not in plan.tasks:
                    yield f"{task_id} depends on {other}, which is not there"


def _read(path: Path) -> dict[str, object]:
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise _bad(path, f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _bad(path, f"is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise _bad(path, "is no JSON object")
    return value


def _bad(path: Path, why: str) -> UsageError:
    return BadPlanFiles(
        f"{path} {why}.",
        path=str(path),
        remedy="agentrunner plan export FOLDER writes such files",
    )


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
