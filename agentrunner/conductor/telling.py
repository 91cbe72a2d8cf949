"""What the note of a plan tells, from its store, its log and the folders of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from agentrunner.conductor.rounds import RoundBook
from agentrunner.notes.bill import bill_of
from agentrunner.notes.plan_note import EventKind, PlanEvent, PlanFacts, PlanQuestion, PlanRow
from agentrunner.planning.plan import ROOT, Plan, PlanTaskStatus
from agentrunner.planning.store import PlanStore
from agentrunner.runs.folder import RunFolder, runs_root
from agentrunner.runs.index import RunIndex, RunRow
from agentrunner.runs.log import RunLog, read_lines
from agentrunner.runs.plan_folder import PlanFolder
from agentrunner.task.naming import slug

_ENDS = (PlanTaskStatus.FAILED, PlanTaskStatus.NEEDS_REVIEW)
_KINDS: Mapping[str, EventKind] = {
    "plan_opened": "started",
    "plan_landed": "merged",
    "plan_fixing": "conflict",
    "plan_question": "asked",
}


def facts_of(
    state_dir: Path, folder: PlanFolder, result: Mapping[str, Any], now: datetime
) -> PlanFacts:
    """All that the note of a plan tells; `result` is its `plan_result`. Blocking."""
    store = PlanStore(folder.plan)
    plan, log = store.load(), list(read_lines(folder.log))
    runs = _runs(folder)
    rows = {row.run_id: row for row in RunIndex(state_dir).runs()}
    events = [*_changes(store), *_events(log)]
    return PlanFacts(
        plan_id=slug(plan.goal) or "plan",
        goal=plan.goal,
        version=plan.version,
        branch=str(result.get("branch") or ""),
        rows=tuple(_rows(plan, store, runs, rows, log)),
        questions=tuple(
            PlanQuestion(q.id, q.text, q.task_id) for q in store.questions() if q.answer is None
        ),
        events=tuple(sorted(events, key=lambda event: event.at)),
        bills={
            "": list(_bill_of(folder.conversation / "log.jsonl")),
            **{task_id: _bill(state_dir, runs[task_id]) for task_id in sorted(runs)},
        },
        pull_request=str(result.get("request") or ""),
    )


def _runs(folder: PlanFolder) -> dict[str, list[str]]:
    """The runs of each task, in order."""
    found: dict[str, list[str]] = {}
    for turn in sorted(RoundBook(folder).all(), key=lambda turn: turn.number):
        if turn.run_id:
            found.setdefault(turn.task_id, []).append(turn.run_id)
    return found


def _rows(
    plan: Plan,
    store: PlanStore,
    runs: Mapping[str, list[str]],
    known: Mapping[str, RunRow],
    log: list[dict[str, Any]],
) -> Iterator[PlanRow]:
    standings = store.standings()
    landed = {e["task_id"]: str(e["commit"]) for e in log if e.get("event") == "plan_landed"}
    todo = [(child, 0) for child in reversed(plan.nodes[ROOT].children)]
    while todo:
        node_id, depth = todo.pop()
        node, design = plan.nodes[node_id], plan.designs[node_id]
        todo += [(child, depth + 1) for child in reversed(node.children)]
        if node.task_id is None:
            yield PlanRow(design.title, depth)
            continue
        standing = standings.get(node.task_id)
        mine = [known[name] for name in runs.get(node.task_id, ()) if name in known]
        yield PlanRow(
            design.title,
            depth,
            node.task_id,
            str(plan.shown_status(node.task_id)),
            detail=standing.detail if standing else "",
            depends_on=design.dependencies,
            run_id=standing.run_id if standing else "",
            started_at=mine[0].started_at if mine else "",
            ended_at=(mine[-1].finished_at or "") if mine else "",
            commit=landed.get(node.task_id, ""),
        )


def _changes(store: PlanStore) -> Iterator[PlanEvent]:
    for change in store.changes():
        yield PlanEvent(change.at, "changed", text=f"{change.author}: {change.message}")


def _events(log: list[dict[str, Any]]) -> Iterator[PlanEvent]:
    said: set[str] = set()
    for event in log:
        task_id, at = str(event.get("task_id") or ""), str(event.get("ts") or "")
        if kind := _KINDS.get(str(event.get("event"))):
            told = event.get("text") or event.get("evidence") or event.get("commit") or ""
            yield PlanEvent(at, kind, task_id, str(told).partition("\n")[0])
        elif event.get("event") == "plan_started":
            fresh = [str(text) for text in event["notices"] if text not in said]
            said.update(fresh)
            yield from (PlanEvent(at, "notice", text=text) for text in fresh)
        elif event.get("status") in _ENDS:
            yield PlanEvent(at, "ended", task_id, f"{event['status']}: {event.get('detail', '')}")


def _bill(state_dir: Path, names: list[str]) -> list[Mapping[str, Any]]:
    logs = [RunFolder(runs_root(state_dir) / name).log_file for name in names]
    return [row for log in logs for row in _bill_of(log)]


def _bill_of(log: Path) -> list[dict[str, Any]]:
    return bill_of(RunLog(log)) if log.exists() else []
