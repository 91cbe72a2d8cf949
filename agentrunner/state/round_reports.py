"""The report of one round, and the present state, as prompts have them; made from the summary.
Pure.

The summary of a run is long, and most of it stays the same for many rounds. So each part of it is
reported in the round in which it changed, and only what is new goes to the end of a prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

View = dict[str, Any]

STATIC = ("id", "description", "detail", "critical", "origin", "check")
"""Fields of a criterion that work does not change."""
MOVING = ("id", "status", "evidence", "grade", "proof", "comment")
"""Fields of a criterion that work changes."""
NOW = (
    "state", "worker_runs_count", "loops", "max_loops", "loops_left", "budget_left", "completion",
    "refused", "notes",
)  # fmt: skip
ORDER_CHARS = 4_000
LINE_CHARS = 300


def sections(facts: Mapping[str, Any]) -> View:
    """Return the parts of a summary that are reported when they change."""
    return {
        "acceptance_criteria": [
            {key: criterion[key] for key in STATIC if key in criterion}
            for criterion in facts.get("acceptance_criteria", [])
        ],
        "test_before_the_task": facts.get("baseline_test"),
        "test_result": facts.get("test_result"),
        "evidence": facts.get("evidence"),
        "changed_files": facts.get("changed_files"),
        "last_assessment": facts.get("last_assessment"),
    }


def digests(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return a short digest of each part."""
    return {name: _digest(value) for name, value in parts.items()}


def report(
    facts: Mapping[str, Any],
    decision: Mapping[str, Any] | None,
    known: Mapping[str, str],
    known_runs: Collection[str],
) -> View:
    """Return what happened since the report before: the order, how it ended, and what is new with
    it.

    `known` holds the digests of what was shown last, `known_runs` the ids of the worker runs.
    """
    runs = [
        run for run in facts.get("recent_worker_runs", []) if run["worker_run_id"] not in known_runs
    ]
    last = facts.get("last_worker_result", {})
    parts = sections(facts)
    new = {
        name: parts[name] for name, digest in digests(parts).items() if known.get(name) != digest
    }
    view: View = {}
    if decision is not None:
        view["decided"] = _decided(decision)
    if runs:
        view["worker_runs"] = runs
        view["worker_output_tail"] = last.get("stdout_tail", "")
        if errors := last.get("stderr_tail"):
            view["worker_stderr_tail"] = errors
    if refused := (facts.get("refused") or {}).get("completion"):
        view["refused"] = refused
    return _filled({**view, **_without_empty(new)}) or {}


def state_of_now(
    facts: Mapping[str, Any], known: Mapping[str, str], *, described: bool = False
) -> View:
    """Return the present state, without what the reports have shown already.

    `described` includes each criterion's description, for a judge.
    """
    keys = (*MOVING[:1], "description", "detail", *MOVING[1:]) if described else MOVING
    view: View = {name: facts[name] for name in NOW if name in facts}
    view["acceptance_criteria"] = [
        {key: value for key in keys if (value := criterion.get(key)) not in (None, "", "none")}
        for criterion in facts.get("acceptance_criteria", [])
    ]
    view["workers"] = [
        {
            key: worker.get(key)
            for key in ("worker_type", "modes", "session_available", "left_alone_until")
        }
        for worker in facts.get("workers", [])
    ]
    parts = sections(facts)
    new = {
        name: parts[name] for name, digest in digests(parts).items() if known.get(name) != digest
    }
    return _filled({**view, **_without_empty(new)}) or {}


def _filled(value: Any) -> Any:
    """Return the value without empty parts, which cost tokens and say nothing; None where nothing
    is left. 0 and false are kept.
    """
    if isinstance(value, Mapping):
        parts = {name: _filled(part) for name, part in value.items()}
        value = {name: part for name, part in parts.items() if part is not None}
    elif isinstance(value, list):
        value = [part for one in value if (part := _filled(one)) is not None]
    return None if value in (None, "", [], {}) else value


def line_of(view: Mapping[str, Any], key: str) -> str:
    """Return a report in one line, for when it is long past."""
    decided = view.get("decided") or {}
    runs = view.get("worker_runs") or []
    test = view.get("test_result") or {}
    words = [
        f"report {key}",
        str(decided.get("action", "the plan")),
        " ".join(str(decided.get("reason", "")).split())[:120],
        *(f"{one.get('worker')} {one.get('outcome')}, {one.get('diff_stat')}" for one in runs),
    ]
    if test.get("executed"):
        words.append(f"tests {'green' if test.get('green') else 'red'}")
    if view.get("refused"):
        words.append("completion was refused")
    return "; ".join(word for word in words if word)[:LINE_CHARS]


def _decided(decision: Mapping[str, Any]) -> View:
    kept = ("number", "action", "reason", "worker_run_id", "used_patterns", "prompt")
    view = {key: decision[key] for key in kept if decision.get(key) not in (None, "", [])}
    if len(prompt := str(view.get("prompt", ""))) > ORDER_CHARS:
        view["prompt"] = prompt[: ORDER_CHARS - 1] + "…"
    return view


def _without_empty(parts: Mapping[str, Any]) -> View:
    """Return the parts without those that are empty."""
    empty: tuple[Any, ...] = (None, [], {}, {"executed": False}, {"exists": False})
    return {
        name: value
        for name, value in parts.items()
        if value not in empty and not _is_empty_change(name, value)
    }


def _is_empty_change(name: str, value: Any) -> bool:
    return name == "changed_files" and isinstance(value, dict) and not value.get("total")


def _digest(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
