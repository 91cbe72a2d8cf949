"""The subject of an approval, in reading order: a plan, a worker's order, a completion, a change.

Everything is read from the subject, the canonical JSON that is approved, and shown with control
characters visible. Fields that no function here knows are shown as `key: value` below the rest, so
that only empty ones are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentrunner.screens.criteria import criteria_rows
from agentrunner.screens.diff import with_short_ids
from agentrunner.screens.layout import clamped, count, labelled, wrap
from agentrunner.text.cut import some_of
from agentrunner.text.terminal import escape

if TYPE_CHECKING:  # looking at runs must not load the models
    from agentrunner.results import DecisionEntry, Result

Fields = Mapping[str, Any]

_LABEL = 9
_SOURCES = {"task": "your task", "human": "you", "model": "the planner"}
HASH_SHOWN = 7
"""Digits shown of a tree's hash, as in the note."""
_OF_A_CHANGE = ("tests_changed", "protected_path")
"""Questions about what was found in the work."""
_LEAST_OF_PROMPT = 3
"""Lines of a worker's prompt that are shown in the lowest terminal."""
_FILES = 12
"""Most changed files that are named."""


def subject_lines(
    kind: str,
    subject: str,
    prompt: str,
    width: int,
    result: Result | None = None,
    left_out: int = 0,
    *,
    folded: bool = False,
) -> list[str]:
    """Return the subject of an approval of this kind as lines.

    `prompt` is the text that a worker's order names, shown with so many lines `left_out` as are too
    many, and `folded` without what stands in every prompt; `result` is the present state of the
    run, if known.
    """
    if not subject:
        return []
    try:
        value = json.loads(subject)
    except ValueError:
        return verbatim(subject, width, "  ")
    if kind == "plan" and isinstance(value, dict) and isinstance(value.get("criteria"), list):
        rest = {key: item for key, item in value.items() if key != "criteria"}
        return [*_plan(value["criteria"], width), *value_lines(rest, width, "  ")]
    if kind in ("worker", "worker_failed") and isinstance(value, dict):
        return _worker_order(kind, value, prompt, width, left_out, folded=folded)
    if kind == "complete" and isinstance(value, dict):
        return _completion(value, result, width)
    if isinstance(value, dict) and (value.get("diff") or kind in _OF_A_CHANGE):
        return _change(value, width)
    return value_lines(value, width, "  ")


def _plan(criteria: Sequence[Any], width: int) -> list[str]:
    """Show each criterion for a person: what must be true, how it is decided, who wrote it."""
    lines: list[str] = []
    for number, item in enumerate(criteria):
        lines += ([""] if number else []) + _criterion(item, width)
    return lines


def _criterion(item: Any, width: int) -> list[str]:
    if not isinstance(item, dict):
        return value_lines(item, width, "  ")
    rest = dict(item)
    name, text = rest.pop("id", ""), rest.pop("description", "")
    optional = "(optional) " if rest.pop("critical", True) is False else ""
    lines = labelled(escape(str(name)), f"{optional}{escape(str(text))}", width, label_width=_LABEL)
    if detail := rest.pop("detail", ""):
        lines += labelled("", escape(str(detail)), width, label_width=_LABEL)
    check = rest.pop("check", None)
    origin, by = rest.pop("origin", "task"), rest.pop("check_origin", "task")
    shown, more = _check(check)
    whose = "" if by == origin or not check else f"   (from {_SOURCES.get(str(by), by)})"
    lines += labelled("", f"check: {shown}{whose}", width, label_width=_LABEL)
    tests, mapped = rest.pop("tests", None), rest.pop("tests_origin", "task")
    if isinstance(tests, list) and tests:
        by_whom = _SOURCES.get(str(mapped), str(mapped))
        names = escape(", ".join(map(str, tests)))
        lines += labelled("", f"tests: {names}   (from {by_whom})", width, label_width=_LABEL)
    line = rest.pop("line", None)
    place = f", line {line}" if line else ""
    source = escape(f"{_SOURCES.get(str(origin), origin)}{place}")
    lines += labelled("", f"from: {source}", width, label_width=_LABEL)
    return [*lines, *value_lines({**more, **rest}, width, " " * (_LABEL + 2))]


def _check(check: Any) -> tuple[str, Fields]:
    """Return a check in one line, and the fields that this line does not show."""
    from pydantic import ValidationError

    from agentrunner.config.prd import describe_check
    from agentrunner.config.spec import Check

    if not check:
        return "nothing to execute, so nothing can prove it", {}
    try:
        line = describe_check(Check.model_validate(check))
    except ValidationError:
        return "", {"check": check}
    usual = {name: field.default for name, field in Check.model_fields.items()}
    more = {
        key: item
        for key, item in check.items()
        if key != "kind" and item != usual.get(key) and not _is_shown(item, line)
    }
    return escape(line), more if line != "nothing to execute" else {**check, **more}


def _is_shown(item: Any, line: str) -> bool:
    parts = item if isinstance(item, list) else [item]
    if isinstance(item, bool):
        return False
    return all(str(part) in line for part in parts)


def _worker_order(
    kind: str, value: Fields, prompt: str, width: int, left_out: int, *, folded: bool
) -> list[str]:
    """Show a worker's order: what its prompt says of it, then who gets it, then what stands in
    every prompt.
    """
    order = dict(value.get("order") or {})
    rest = {key: item for key, item in value.items() if key not in ("order", "why", "code")}
    who = [escape(str(order.pop("worker", "")))]
    if member := order.pop("member", ""):
        who += [escape(str(member))] * (member != who[0])
    who.append(f"model {escape(str(order.pop('model', '') or 'its own'))}")
    mode = order.pop("mode", "exec")
    who.append("a new session" if mode == "exec" else f"the same session ({escape(str(mode))})")
    file = order.pop("prompt", None) or {}
    reason, loop = order.pop("reason", ""), order.pop("loop", 0)
    number = order.pop("round", 0) or int(loop) + 1
    run_id = order.pop("worker_run_id", "")
    own, standing = _parted(prompt, order.pop("own_begins", 0), order.pop("own_ends", 0))
    lines: list[str] = []
    if prompt and kind == "worker":
        own_lines = beginning(verbatim(own, width, "    "), left_out)
        if folded and standing and left_out <= 0:
            framing = count(len(verbatim(standing, width, "    ")), "line")
            own_lines += [f"    … and {framing} of every prompt: [p] shows it whole"]
        lines += ["  Its prompt:", *own_lines, ""]
    lines += labelled("worker", ", ".join(filter(None, who)), width)
    run = f", run {escape(str(run_id))}" if run_id else ""
    lines += labelled("round", f"{number}{run}", width)
    if reason:
        lines += labelled("why", escape(str(reason)), width)
    known = {"sha256", "size", "member", "path"}
    facts = f"{count(int(file.get('size') or 0), 'byte')}, sha256 {str(file.get('sha256'))[:12]}"
    lines += labelled("prompt", escape(facts), width) if file else []
    if tries := order.pop("tries", 0):
        lines += labelled("tried", f"{count(int(tries), 'time')} without a result", width)
    more = {key: item for key, item in file.items() if key not in known}
    order = {key: item for key, item in order.items() if item}
    lines += value_lines({**more, **order, **rest}, width, "  ")
    if standing and kind == "worker" and not folded:
        lines += ["", "  What every prompt says:", *verbatim(standing, width, "    ")]
    return lines


def _parted(prompt: str, begins: int, ends: int) -> tuple[str, str]:
    """Return what a prompt says of its order, and what stands around that in every prompt."""
    if not 0 <= begins < ends <= len(prompt):
        return prompt, ""
    around = (prompt[:begins].strip("\n"), prompt[ends:].strip("\n"))
    return prompt[begins:ends].strip("\n"), "\n…\n".join(filter(None, around))


def beginning(lines: list[str], left_out: int) -> list[str]:
    """Return the lines, or the first of them and how many follow, where any are to be left out."""
    kept = max(len(lines) - left_out - 1, _LEAST_OF_PROMPT)
    if left_out <= 0 or kept + 1 >= len(lines):
        return lines
    return [*lines[:kept], f"    … and {len(lines) - kept} more lines: [p] shows it whole"]


def _completion(value: Fields, result: Result | None, width: int) -> list[str]:
    """Show what a completion rests on: each criterion with its proof, the tests, the files.

    Where a person rejected an earlier one, why stands below it: whether that is done is the
    question.
    """
    rest = {key: item for key, item in value.items() if key not in ("verdict", "tree")}
    rows = result.acceptance_criteria if result else []
    lines = [*criteria_rows(rows, width, room=len(rows)), ""] if rows else []
    if result and (files := result.changed_files):
        counts = f"+{result.lines_added} -{result.lines_removed}"
        named = some_of([escape(path) for path in files], _FILES, between=" ")
        facts = f"{count(len(files), 'file')} changed, {counts}: {named}"
        lines += labelled("files", facts, width)
    lines += labelled("tree", escape(str(value.get("tree"))[:HASH_SHOWN]), width)
    lines += value_lines(rest, width, "  ")
    if no := _latest_no(result):
        why = f"{no.by or 'you'} rejected this in round {no.round}: {no.text}"
        lines += clamped("before", escape(why), width, most=6)
    return lines


def _latest_no(result: Result | None) -> DecisionEntry | None:
    """Return the latest decision about a completion where that was a no."""
    decisions = result.people.decisions if result else []
    latest = [one for one in decisions if one.kind == "complete"][-1:]
    return latest[0] if latest and latest[0].decision == "reject" else None


def _change(value: Fields, width: int) -> list[str]:
    """Show a doubtful change: its files and tests, and the whole diff.

    Its code and ids are for programs; the question says in words what they stand for.
    """
    rest = {key: item for key, item in value.items() if key not in ("code", "finding", "others")}
    diff, tree = with_short_ids(str(rest.pop("diff", ""))), rest.pop("tree", "")
    lines: list[str] = []
    for label, key in (("files", "paths"), ("tests", "tests")):
        found = rest.pop(key, None) or []
        if isinstance(found, list) and found:
            lines += labelled(label, escape(" ".join(map(str, found))), width)
    lines += value_lines(rest, width, "  ")
    if diff:
        lines += ["", *verbatim(diff.rstrip("\n"), width, "    "), ""]
    return [*lines, *(labelled("tree", escape(str(tree)[:HASH_SHOWN]), width) if tree else ())]


def value_lines(value: Any, width: int, indent: str) -> list[str]:
    """Format JSON as indented `key: value` lines; only empty values are left out."""
    if isinstance(value, Mapping):
        filled = [(key, item) for key, item in value.items() if item not in (None, "", [], {})]
        return [line for key, item in filled for line in _entry(key, item, width, indent)]
    if isinstance(value, list):
        lines = []
        for item in value:
            inner = value_lines(item, width, indent + "  ")
            lines += [f"{indent}- {inner[0].lstrip()}", *inner[1:]] if inner else [f"{indent}-"]
        return lines
    return verbatim(value if isinstance(value, str) else json.dumps(value), width, indent)


def _entry(key: str, item: Any, width: int, indent: str) -> list[str]:
    inner = value_lines(item, width, indent + "  ")
    label = f"{indent}{escape(key)}:"
    if len(inner) == 1 and not isinstance(item, Mapping | list):
        return [f"{label} {inner[0].strip()}"]
    return [label, *inner]


def verbatim(text: str, width: int, indent: str) -> list[str]:
    """Return every line of `text`, with control characters visible."""
    return [line for part in text.split("\n") for line in wrap(escape(part), width, indent)]
