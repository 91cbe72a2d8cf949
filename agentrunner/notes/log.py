"""The history part of the note: planner calls, worker runs, other decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentrunner.notes.note_model import (
    CommandRow,
    Line,
    Log,
    PlannerCallRow,
    WorkerRunRow,
    line,
)
from agentrunner.notes.sources import NoteSources, attachment, local_time

MAX_PLANNER_CALLS = 200
MAX_RUNS = 100
MAX_COMMANDS = 10
MAX_CHANGES = 10
MAX_DECISIONS = 20
FULL_ENTRIES = 10
"""How many of the newest calls and runs a full note shows with their text."""


def build_log(reading: NoteSources) -> Log:
    """Return the newest calls and runs in order, and how many older ones are left out."""
    calls = [record.data for record in reading.history.meta_calls]
    runs = reading.worker_runs
    old_calls, old_runs = len(calls) - FULL_ENTRIES, len(runs) - FULL_ENTRIES
    decisions = {
        record.data["worker_run_id"]: record.data
        for record in reading.history.decisions
        if record.data.get("worker_run_id")
    }
    return Log(
        meta_calls=tuple(
            _meta_call(data, reading, recent=index >= old_calls) for index, data in enumerate(calls)
        )[-MAX_PLANNER_CALLS:],
        meta_calls_omitted=max(0, len(calls) - MAX_PLANNER_CALLS),
        runs=tuple(
            _run(index + 1, data, decisions, reading, recent=index >= old_runs)
            for index, data in enumerate(runs)
        )[-MAX_RUNS:],
        runs_omitted=max(0, len(runs) - MAX_RUNS),
        decisions=_other_decisions(reading),
    )


def summary_of(reading: NoteSources) -> str:
    """Return the planner's latest text about the whole; what a worker says is told of its run."""
    assessment = reading.context.get("assessment")
    if assessment and assessment.summary:
        return assessment.summary
    return reading.context.get("completion_reason") or ""


def _meta_call(data: Mapping[str, Any], reading: NoteSources, *, recent: bool) -> PlannerCallRow:
    usage = data.get("usage") or {}
    return PlannerCallRow(
        type=str(data.get("type") or ""),
        at=local_time(str(data.get("at") or ""), reading.now),
        seconds=data.get("duration_sec") or 0,
        tokens=(usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0),
        model=str(data.get("model") or ""),
        error=_error(data.get("error")),
        request=attachment(data.get("request"), reading, recent=recent),
        response=attachment(data.get("response"), reading, recent=recent),
    )


def _error(error: object) -> str:
    if isinstance(error, Mapping):
        return ": ".join(str(error[key]) for key in ("code", "message") if error.get(key))
    return str(error or "")


def _run(
    number: int,
    data: Mapping[str, Any],
    decisions: Mapping[str, Mapping[str, Any]],
    reading: NoteSources,
    *,
    recent: bool,
) -> WorkerRunRow:
    commands, changes = data.get("commands") or (), data.get("changes") or ()
    decision = decisions.get(data["worker_run_id"], {})
    return WorkerRunRow(
        number=number,
        id=data["worker_run_id"],
        worker=str(data.get("worker") or ""),
        outcome=str(data.get("outcome") or ""),
        exit_code=data.get("exit_code"),
        started_at=local_time(str(data.get("started_at") or ""), reading.now),
        ended_at=local_time(str(data.get("ended_at") or ""), reading.now),
        seconds=data.get("duration_sec") or 0,
        decision=str(decision.get("reason") or ""),
        patterns=tuple(map(str, decision.get("used_patterns") or ())),
        summary=str(data.get("summary") or ""),
        error=str(data.get("error") or ""),
        commands=tuple(map(_command, commands[-MAX_COMMANDS:])),
        commands_omitted=max(0, len(commands) - MAX_COMMANDS),
        changes=tuple(str(change.get("path") or "") for change in changes[:MAX_CHANGES]),
        changes_omitted=max(0, len(changes) - MAX_CHANGES),
        output=attachment(data.get("output"), reading, recent=recent),
        errors=attachment(data.get("errors"), reading, recent=recent),
    )


def _command(data: Mapping[str, Any]) -> CommandRow:
    """Derive the status from the exit code if the worker gave no more than that."""
    status, exit_code = str(data.get("status") or ""), data.get("exit_code")
    if status in ("", "completed") and exit_code is not None:
        status = "passed" if exit_code == 0 else "failed"
    return CommandRow(str(data.get("command") or ""), status or "?")


def _other_decisions(reading: NoteSources) -> tuple[Line, ...]:
    return tuple(
        line("decision", action=record.data.get("action"), reason=record.data.get("reason") or "")
        for record in reading.history.decisions
        if not record.data.get("worker_run_id")
    )[-MAX_DECISIONS:]
