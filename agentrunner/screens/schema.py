"""JSON Schemas of what --json prints: the events, and the result that ends them."""

from __future__ import annotations

from typing import Any, get_args

from agentrunner.state.lifecycle import TaskState
from agentrunner.state.run_state import (
    Author,
    EvidenceKind,
    Grade,
    Origin,
    Outcome,
    QuestionKind,
    Status,
)

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_ANY_TEXT: Schema = {"type": ["string", "null"]}
_ANY_COUNT: Schema = {"type": ["integer", "null"]}
_STATE: Schema = {"enum": [state.value for state in TaskState]}


def _object(properties: Schema, *, closed: bool = True) -> Schema:
    """All properties are required: unknown is null, none is an empty list."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": not closed,
    }


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_TOKENS = _object({"input_tokens": _ANY_COUNT, "output_tokens": _ANY_COUNT})
_CRITERION = _object(
    {
        "id": _TEXT,
        "description": _TEXT,
        "critical": {"type": "boolean"},
        "status": {"enum": list(get_args(Status))},
        "evidence": {"enum": list(get_args(EvidenceKind))},
        "grade": {"enum": list(get_args(Grade))},
        "author": {"enum": list(get_args(Author))},
        "tests": _TEXTS,
        "mapped_by": {"enum": ["person", "planner", None]},
        "origin": {"enum": list(get_args(Origin))},
        "detail": _TEXT,
    }
)
_PROOF = _object(
    {
        "target": _TEXT,
        "author": {"enum": list(get_args(Author))},
        "grade": {"enum": list(get_args(Grade))},
        "text": _TEXT,
        "tests": _TEXTS,
        "notes": _TEXTS,
    }
)
_RED = _object({"name": _TEXT, "file": _TEXT, "line": _ANY_COUNT, "message": _TEXT}, closed=False)
_TEST = _object(
    {
        "command": _TEXT,
        "exit_code": _ANY_COUNT,
        "passed": _ANY_COUNT,
        "failed": _ANY_COUNT,
        "finding": _TEXT,
        "failing": _TEXTS,
        "reader": _ANY_TEXT,
        "red": {
            "type": "array",
            "items": _object({"name": _TEXT, "file": _TEXT, "line": _ANY_COUNT, "message": _TEXT}),
        },
        "known_red": _TEXTS,
        "turned": _TEXTS,
        "still_red": _TEXTS,
        "newly_red": _TEXTS,
        "gone": _TEXTS,
        "flaky": _TEXTS,
        "baseline_exit_code": _ANY_COUNT,
    },
    closed=False,
)
_QUESTION_KINDS: Schema = {"enum": list(get_args(QuestionKind))}
_BILL_ROW = _object(
    {
        "role": {"enum": ["planner", "assess", "worker"]},
        "candidate": _TEXT,
        "run": _TEXT,
        "model": _TEXT,
        "calls": _ANY_COUNT,
        "input_tokens": _COUNT,
        "cached_tokens": _COUNT,
        "output_tokens": _COUNT,
        "usd": {"type": ["number", "null"]},
        "unpriced_calls": _COUNT,
        "unknown_calls": _COUNT,
        "known": {"enum": ["counted", "reported", "unknown"]},
        "subscription": {"type": "boolean"},
    }
)
_ERROR = _object({"code": _TEXT, "path": _TEXT, "message": _TEXT, "remedy": _TEXT})
_RESULT: Schema = {
    "run_id": _ANY_TEXT,
    "task_id": _ANY_TEXT,
    "title": _ANY_TEXT,
    "state": _or_null(_STATE),
    "exit_code": _COUNT,
    "reason": _ANY_TEXT,
    "grade": {"enum": [*get_args(Grade), None]},
    "error": _or_null(_ERROR),
    "note": _ANY_TEXT,
    "repo": _ANY_TEXT,
    "loops": _ANY_COUNT,
    "worker_runs": _ANY_COUNT,
    "meta_calls": _ANY_COUNT,
    "acceptance_criteria": {"type": "array", "items": _CRITERION},
    "test": _or_null(_TEST),
    "proof": _TEXTS,
    "proofs": {"type": "array", "items": _PROOF},
    "changed_files": _TEXTS,
    "usage": _object({"meta": _TOKENS, "worker": _TOKENS, "usd": {"type": ["number", "null"]}}),
    "bill": {"type": "array", "items": _BILL_ROW},
    "duration_sec": {"type": ["number", "null"]},
    "commit": _or_null(_object({"id": _TEXT, "branch": _TEXT})),
    "worktree": _ANY_TEXT,
    "part_of": _or_null({"enum": ["plan"]}),
    "waiting": _or_null(
        _object(
            {"id": _TEXT, "kind": _QUESTION_KINDS, "text": _TEXT, "options": _TEXTS}, closed=False
        )
    ),
    "waiting_until": _ANY_TEXT,
}
RESULT_KEYS = tuple(_RESULT)
"""All of them are in every result, in this order; a run that came to be says more."""

RESULT: Schema = {
    "$schema": _DRAFT,
    "title": "AgentRunner result",
    **_object(_RESULT, closed=False),
}

_EVENTS: dict[str, Schema] = {
    "run_started": {},
    "run_resumed": {"attempt": _COUNT},
    "state_changed": {"from": _STATE, "to": _STATE},
    "baseline": {"target": _TEXT, "command": _TEXT, "exit_code": _ANY_COUNT, "outcome": _TEXT},
    "meta_call": {
        "type": _TEXT,
        "attempt": _COUNT,
        "duration_ms": {"type": "number"},
        "usage": {"type": ["object", "null"]},
        "error": {},
    },
    "plan": {"acceptance_criteria": {"type": "array"}},
    "decision": {"action": _TEXT, "reason": _TEXT},
    "worker_started": {
        "worker_run_id": _TEXT,
        "worker": _TEXT,
        "model": _ANY_TEXT,
        "loop": _COUNT,
    },
    "worker_event": {
        "kind": {
            "enum": [
                "text",
                "command_started",
                "command_finished",
                "file_changed",
                "usage",
                "error",
            ]
        }
    },
    "worker_finished": {
        "worker_run_id": _TEXT,
        "outcome": {"enum": list(get_args(Outcome))},
        "exit_code": _ANY_COUNT,
        "duration_sec": {"type": "number"},
        "changed_files": {},
        "hosts_refused": _TEXTS,
    },
    "check": {"target": _TEXT, "command": _TEXT, "exit_code": _ANY_COUNT, "outcome": _TEXT},
    "assessment": {"satisfied": {"type": "boolean"}, "summary": _TEXT, "by_criterion": {}},
    "waiting": {
        "until": _TEXT,
        "reason": _TEXT,
        "role": {"enum": ["worker", "meta"]},
        "candidate": _TEXT,
    },
    "question": {"id": _TEXT, "kind": _QUESTION_KINDS, "text": _TEXT, "options": _TEXTS},
    "answer": {"id": _TEXT},
    "image_progress": {"text": _TEXT},
    "committed": {"id": _TEXT, "branch": _TEXT, "files": _TEXTS},
    "note_written": {"path": _TEXT},
    "warning": {"code": _TEXT, "message": _TEXT},
    "result": {key: value for key, value in _RESULT.items() if key != "run_id"},
}


_PLAN_RESULT: Schema = {
    "exit_code": _COUNT,
    "tasks": {"type": "object", "additionalProperties": _TEXT},
    "blocked": _TEXTS,
    "questions": {
        "type": "array",
        "items": _object({"id": _COUNT, "task_id": _TEXT, "text": _TEXT}),
    },
    "branch": _ANY_TEXT,
    "commit": _ANY_TEXT,
    "onto": _ANY_TEXT,
    "request": _ANY_TEXT,
    "budget_spent": _ANY_TEXT,
    "usage": _or_null(_object({"tokens": _COUNT, "usd": {"type": "number"}})),
    "interrupted": {"type": "boolean"},
    "error": _or_null(_ERROR),
    "note": _ANY_TEXT,
}
PLAN_RESULT_KEYS = tuple(_PLAN_RESULT)

PLAN_EVENTS: dict[str, Schema] = {
    "plan_started": dict.fromkeys(("tasks", "done", "waiting", "behind", "notices"), _TEXTS),
    "plan_opened": {"task_id": _TEXT, "folder": _TEXT},
    "plan_task": {
        "task_id": _TEXT,
        "status": _TEXT,
        "run_id": _TEXT,
        "tries": _COUNT,
        "retry_at": _TEXT,
        "detail": _TEXT,
    },
    "plan_question": {"task_id": _TEXT, "question": _COUNT, "text": _TEXT, "status": _TEXT},
    "plan_fixing": {"task_id": _TEXT, "evidence": _TEXT},
    "plan_landed": {"task_id": _TEXT, "commit": _TEXT, "files": _TEXTS},
    "plan_published": {"branch": _TEXT, "commit": _TEXT},
    "plan_delivered": {
        "branch": _TEXT,
        "commit": _TEXT,
        "onto": _ANY_TEXT,
        "request": _ANY_TEXT,
    },
    "warning": {"code": _TEXT, "message": _TEXT},
    "plan_result": _PLAN_RESULT,
}
"""Of `plan run`: what is about the plan. Events of its tasks' runs have a `run_id` instead."""


def _plan_event(name: str, fields: Schema) -> Schema:
    head = {"ts": {"type": "string", "format": "date-time"}, "event": {"const": name}}
    event = _object({**head, **fields}, closed=False)
    if "run_id" not in fields:
        event["properties"]["run_id"] = False
    return event


def _event(name: str, fields: Schema) -> Schema:
    head = {
        "ts": {"type": "string", "format": "date-time"},
        "seq": {"type": "integer", "minimum": 1},
        "run_id": _ANY_TEXT if name == "result" else _TEXT,
        "event": {"const": name},
    }
    # Open: an event may say more than is promised here.
    return _object({**head, **fields}, closed=False)


EVENT: Schema = {
    "$schema": _DRAFT,
    "title": "AgentRunner event",
    "oneOf": [
        *(_event(name, fields) for name, fields in _EVENTS.items()),
        *(_plan_event(name, fields) for name, fields in PLAN_EVENTS.items()),
    ],
}
