"""The report of one round, and the present state, as prompts have them; made from the summary.
Pure.

The summary of a run is long, and most of it stays the same for many rounds. So each part of it is
reported in the round in which it changed, and only what is new goes to the end of a prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agentrunner.text.lazy_regex import lazy_regex

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
_COUNTS = lazy_regex(r" [+]\d+ -\d+$")


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
    """Return a short digest of each part, and of why each test of the suite is red."""
    found = {name: _digest(value) for name, value in parts.items()}
    return found | {f"red {_digest(one.get('name'))}": _digest(one) for one in _reds(parts)}


def _reds(parts: Mapping[str, Any]) -> list[Any]:
    return list((parts.get("test_result") or {}).get("red", []))


def _new_parts(facts: Mapping[str, Any], known: Mapping[str, str]) -> View:
    """Return what `known` does not show as it is now.

    A test that is red for the reason that was told before is named only, and whose reason is told
    now, is named with it only.
    """
    parts = sections(facts)
    new = {
        name: parts[name]
        for name, digest in digests(parts).items()
        if name in parts and known.get(name) != digest
    }
    reds = [
        one for one in _reds(parts) if known.get(f"red {_digest(one.get('name'))}") != _digest(one)
    ]
    if test := new.get("test_result"):
        new["test_result"] = _brief(test, reds)
    elif reds:  # the report that told them is folded
        new["test_result"] = {"red": reds}
    if before := new.get("test_before_the_task"):
        new["test_before_the_task"] = _brief(before, before.get("red", []))
    return new


def _brief(test: Mapping[str, Any], reds: Sequence[Any]) -> View:
    """Return a test result with the messages of these tests, without what it says twice.

    The output of a run that is green, or of which each red test has its message, says no more: it
    is had by a look.
    """
    if not test.get("executed"):
        return dict(test)
    named = {one.get("name") for one in reds}
    failing = test.get("failing", [])
    brief = {**test, "failing": [name for name in failing if name not in named]}
    if "red" in test:
        brief["red"] = list(reds)
    explained = {one.get("name") for one in test.get("red", []) if one.get("message")}
    if test.get("green") or (failing and explained.issuperset(failing)):
        brief.pop("tail", None)
    return brief


def _brief_run(run: Mapping[str, Any]) -> View:
    """Return a worker run without what its other fields say, or the rules."""
    twice = {"meaning"} if run.get("outcome") == "completed" else set()
    twice |= {"changed_files"} if run.get("diff_stat") else set()
    return {name: value for name, value in run.items() if name not in twice}


def in_lines(view: Mapping[str, Any]) -> View:
    """Return a report with each red test in one text: its name, its place, its message."""
    return {name: _red_lines(name, part) for name, part in view.items()}


def _red_lines(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _red_lines(key, part) for key, part in value.items()}
    if isinstance(value, list):
        return [_red_line(one) if name == "red" else _red_lines("", one) for one in value]
    return value


def _red_line(test: Any) -> Any:
    if not isinstance(test, Mapping) or "name" not in test:
        return test
    place = ":".join(str(one) for key in ("file", "line") if (one := test.get(key)))
    head = f"{test['name']} ({place})" if place else str(test["name"])
    return f"{head}: {test['message']}" if test.get("message") else head


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
    new = _new_parts(facts, known)
    view: View = {}
    if decision is not None:
        view["decided"] = _decided(decision)
    if runs:
        view["worker_runs"] = [_brief_run(one) for one in runs]
        # A summary is the end of the output, or what the worker made of it.
        if not (runs[-1].get("outcome") == "completed" and runs[-1].get("summary")):
            view["worker_output_tail"] = str(last.get("stdout_tail") or "")
        if errors := last.get("stderr_tail"):
            view["worker_stderr_tail"] = errors
    if refused := (facts.get("refused") or {}).get("completion"):
        view["refused"] = refused
    return _filled({**view, **_without_empty(new)}) or {}


def without_diffed(view: Mapping[str, Any], change: str, earlier: Sequence[str]) -> View:
    """Return a report without the names of files that a diff shows: its own, or an earlier one."""
    found = dict(view)
    if runs := found.get("worker_runs"):
        found["worker_runs"] = [_without_names(one, "changes", [change]) for one in runs]
    if changed := found.get("changed_files"):
        found["changed_files"] = _without_names(changed, "paths", [change, *earlier])
    return found


def _without_names(view: Mapping[str, Any], key: str, diffs: Sequence[str]) -> View:
    heads = {line for diff in diffs for line in diff.split("\n") if line.startswith("=== ")}
    shown = {line.removeprefix("=== ").rpartition(" (")[0] for line in heads}
    # A name in the list of a run has its counts of lines behind it.
    rest = [one for one in view.get(key, ()) if {one, _COUNTS.sub("", one)}.isdisjoint(shown)]
    return {name: rest if name == key else part for name, part in view.items()
            if name != key or rest}  # fmt: skip


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
    return _filled({**view, **_without_empty(_new_parts(facts, known))}) or {}


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
        " ".join(str(decided.get("reason") or decided.get("prompt") or "").split())[:120],
        *(f"{one.get('worker')} {one.get('outcome')}, {one.get('diff_stat')}" for one in runs),
    ]
    if test:
        words.append(f"tests {'green' if test.get('green') else 'red'}")
    if view.get("refused"):
        words.append("completion was refused")
    return "; ".join(word for word in words if word)[:LINE_CHARS]


def _decided(decision: Mapping[str, Any]) -> View:
    # An order says by itself why it was made. Small models write the reason of the last decision
    # again, word for word, after what it names has turned green, and order once more.
    kept = ("number", "action", "reason", "worker_run_id", "used_patterns", "prompt")
    left_out = {"reason"} if decision.get("prompt") else set()
    view = {
        key: decision[key]
        for key in kept
        if key not in left_out and decision.get(key) not in (None, "", [])
    }
    if len(prompt := str(view.get("prompt", ""))) > ORDER_CHARS:
        view["prompt"] = prompt[: ORDER_CHARS - 1] + "…"
    return view


def _without_empty(parts: Mapping[str, Any]) -> View:
    empty: tuple[Any, ...] = (None, [], {}, {"executed": False}, {"exists": False})
    return {
        name: _without_marks(value)
        for name, value in parts.items()
        if value not in empty and not _is_empty_change(name, value)
    }


def _without_marks(value: Any) -> Any:
    """Return a part without the mark that it is there, which it shows by being reported."""
    if not isinstance(value, Mapping):
        return value
    return {key: one for key, one in value.items() if key not in ("executed", "exists")}


def _is_empty_change(name: str, value: Any) -> bool:
    return name == "changed_files" and isinstance(value, dict) and not value.get("total")


def _digest(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
