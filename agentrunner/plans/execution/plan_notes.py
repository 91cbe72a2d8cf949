"""The notes of a plan: its own, from its store, its log and its runs, and those of its tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentrunner.config.naming import slug
from agentrunner.errors import AgentRunnerError
from agentrunner.money.bill import bill_of
from agentrunner.notes.plan_note import EventKind, NotedEvent, PlanFacts, PlanQuestion, PlanRow
from agentrunner.notes.writer import note_name, write_note
from agentrunner.plans.execution.answers import BY_ITSELF
from agentrunner.plans.execution.task_runs import TaskRunStore
from agentrunner.plans.execution.waiting_questions import waiting_questions
from agentrunner.plans.plan import FELL_SHORT, Plan
from agentrunner.plans.store import OpenQuestion, PlanStore
from agentrunner.results import BillEntry, PlanResult
from agentrunner.storage.events import Event
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.storage.run_folder import RunFolder, runs_root
from agentrunner.storage.run_log import RunLog, read_lines

_KINDS: Mapping[str, EventKind] = {
    "plan_opened": "started",
    "plan_landed": "merged",
    "plan_fixing": "conflict",
    "plan_question": "asked",
}


def leave_notes(
    state_dir: Path,
    folder: PlanFolder,
    repo: Path,
    note_dir: str,
    redact: Callable[[str], str],
) -> dict[str, tuple[str, ...]]:
    """Write the notes of all runs of the plan into the user's repository, like those of any other
    run.

    Returns, by task, the names of the files in `note_dir`, in the order of the runs. The note of a
    run that is gone by now stays as it is; a note that cannot be written there stays in its run's
    folder. Blocks.
    """
    task_runs = TaskRunStore(folder)
    for task_run in task_runs.all():
        run = RunFolder(runs_root(state_dir) / task_run.run_id)
        with contextlib.suppress(AgentRunnerError, OSError):
            text = redact(run.note_file.read_text("utf-8"))
            work = str(task_runs.workspace(task_run).resolve())  # this folder no longer exists
            text = text.replace(f"{work}/", "").replace(work, ".")
            note = write_note(
                repo, note_dir, task_run.task_id, task_run.run_id, text, fallback=run.note_file
            )
            run.write("note-path", str(note.path))
    found = {
        task_id: tuple(note_name(repo, note_dir, task_id, name) for name in names)
        for task_id, names in task_runs.begun().items()
    }
    return {task_id: tuple(filter(None, names)) for task_id, names in found.items()}


def facts_of(
    state_dir: Path,
    folder: PlanFolder,
    result: PlanResult,
    notes: Mapping[str, tuple[str, ...]],
    *,
    squashed: bool = False,
) -> PlanFacts:
    """Return all facts for the note of a plan: `result` is how it ended, `notes` comes from
    `leave_notes`.

    Commits of tasks are not in the user's repository where the plan is `squashed`. Blocks.
    """
    store = PlanStore(folder.plan)
    plan, log = store.load(), list(read_lines(folder.log))
    asked = store.questions()
    runs = TaskRunStore(folder).begun()
    rows = {row.run_id: row for row in RunIndex(state_dir).runs()}
    squashed_commit = (result.commit or "") if squashed else None
    merged = {event["task_id"]: event for event in log if event.get("event") == "plan_landed"}
    if squashed_commit is not None:
        merged = {
            task_id: {**event, "commit": squashed_commit} for task_id, event in merged.items()
        }
    events = [*_changes(store), *_events(log), *_answers(asked)]
    return PlanFacts(
        plan_id=slug(plan.goal) or "plan",
        goal=plan.goal,
        version=plan.version,
        branch=result.branch or "",
        rows=tuple(_rows(plan, store, runs, rows, merged, notes)),
        questions=tuple(PlanQuestion(q.id, q.text, q.task_id) for q in waiting_questions(store)),
        events=tuple(sorted(events, key=lambda event: event.at)),
        bills={
            "": _bill_of(folder.conversation / "log.jsonl"),
            **{task_id: _bill(state_dir, runs[task_id]) for task_id in sorted(runs)},
        },
        pull_request=result.request or "",
    )


def _rows(
    plan: Plan,
    store: PlanStore,
    runs: Mapping[str, list[str]],
    known: Mapping[str, RunRow],
    landed: Mapping[str, Mapping[str, Any]],
    notes: Mapping[str, tuple[str, ...]],
) -> Iterator[PlanRow]:
    standings = store.standings()
    for node_id, depth in plan.outline():
        node, design = plan.nodes[node_id], plan.designs[node_id]
        if node.task_id is None:
            yield PlanRow(design.title, depth)
            continue
        standing = standings.get(node.task_id)
        merged = landed.get(node.task_id, {})
        own_runs = [known[name] for name in runs.get(node.task_id, ()) if name in known]
        yield PlanRow(
            design.title,
            depth,
            node.task_id,
            str(plan.shown_status(node.task_id)),
            detail=standing.detail if standing else "",
            depends_on=design.dependencies,
            run_id=standing.run_id if standing else "",
            started_at=own_runs[0].started_at if own_runs else "",
            ended_at=(own_runs[-1].finished_at or "") if own_runs else "",
            commit=str(merged.get("commit") or ""),
            files=tuple(merged.get("files") or ()),
            notes=notes.get(node.task_id, ()),
        )


def _changes(store: PlanStore) -> Iterator[NotedEvent]:
    for change in store.changes():
        kind: EventKind = "undone" if change.kind == "undo" else "changed"
        yield NotedEvent(change.at, kind, text=f"{change.author}: {change.message}")


def _events(log: list[Event]) -> Iterator[NotedEvent]:
    known: set[str] = set()
    for event in log:
        task_id, at = str(event.get("task_id") or ""), str(event.get("ts") or "")
        name, status = event.get("event"), event.get("status")
        if name == "plan_question" and status in FELL_SHORT:
            continue  # about how it ended, which is a later event
        if kind := _KINDS.get(str(name)):
            if kind == "merged" and not event["commit"]:
                kind = "done"
            detail = event.get("text") or event.get("evidence") or event.get("commit", "")[:10]
            yield NotedEvent(at, kind, task_id, str(detail).partition("\n")[0])
        elif name == "plan_started":
            fresh = [str(text) for text in event["notices"] if text not in known]
            known.update(fresh)
            yield from (NotedEvent(at, "notice", text=text) for text in fresh)
        elif name == "plan_task" and status in FELL_SHORT:
            yield NotedEvent(at, "ended", task_id, f"{status}: {event['detail']}")


def _answers(asked: list[OpenQuestion]) -> Iterator[NotedEvent]:
    """Yield people's answers and the planner's questions; the questions of tasks are in the log."""
    for question in asked:
        if not question.task_id:
            yield NotedEvent(question.at, "asked", text=question.text.partition("\n")[0])
        if question.answer is not None and question.answer not in BY_ITSELF:
            yield NotedEvent(question.answered_at, "answered", question.task_id, question.answer)


def _bill(state_dir: Path, names: list[str]) -> list[BillEntry]:
    logs = [RunFolder(runs_root(state_dir) / name).log_file for name in names]
    return [row for log in logs for row in _bill_of(log)]


def _bill_of(log: Path) -> list[BillEntry]:
    return bill_of(RunLog(log)) if log.exists() else []
