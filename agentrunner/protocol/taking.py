"""Correct obvious slips in a reply; TAKEN lists all of them.

Small models write `cwd: "."`, a time of 0, `RUN-WORKER` or a list of one. `parse_reply` refuses
these; `take_reply` then reads the reply once more with the rules of this table. Each use of a rule
is a warning `taken`. No rule touches what a person approves, what decides (commands, verdicts,
expected exits), or anything whose loss would give more rights, more time or less proof.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from msgspec import Struct

from agentrunner.protocol.looks import FORMS, has_form
from agentrunner.protocol.message import ReplyType
from agentrunner.protocol.wire import Warnings, shown

How = Literal["empty", "blank", "zero", "word", "single", "apart"]
NOTHING = frozenset({"", ".", "./", "null", "none", "nil", "n/a", "default"})
"""Texts that small models write for "not set", in any case."""


class Leniency(Struct, frozen=True):
    """One field of one message, and a deviation that is corrected there."""

    type: ReplyType
    path: str
    """`*` stands for every item of a list."""
    how: How
    words: tuple[str, ...] = ()
    """For `word`: the allowed values."""


MEANINGS: dict[How, str] = {
    "empty": 'not set, where it is "", ".", "null", "none" or the like',
    "blank": 'not set, where it is "" or "null"',
    "zero": "not set, where it is 0",
    "word": "the word that it is but for case, hyphens and spaces",
    "single": "its only element, where it is a list of one",
    "apart": "a look for each form, where one has several",
}
"""The meaning of each correction, for people."""

ACTIONS = ("run_worker", "mark_complete", "ask_human", "abort")
OPERATIONS = ("create", "update", "delete", "move")
EFFORTS = ("small", "medium", "large")
OPERATION, TASK = "operations.*", "phases.*.tasks.*"


def _of_check(type_: ReplyType, path: str) -> tuple[Leniency, ...]:
    """Return the corrections for a check at `path`."""
    return (
        Leniency(type_, path, "single"),
        Leniency(type_, f"{path}.cwd", "empty"),
        Leniency(type_, f"{path}.timeout_sec", "zero"),
        *(
            Leniency(type_, f"{path}.{key}", "blank")
            for key in ("path", "file", "test_name", "name")
        ),
    )


TAKEN: tuple[Leniency, ...] = (
    *_of_check("plan_task", "acceptance_criteria.*.check"),
    Leniency("next_action", "decision", "single"),
    Leniency("next_action", "decision.action", "single"),
    Leniency("next_action", "decision.action", "word", ACTIONS),
    Leniency("next_action", "worker_call", "single"),
    Leniency("next_action", "worker_call.worker_type", "single"),
    Leniency("next_action", "worker_call.mode", "word", ("exec", "resume")),
    Leniency("next_action", "worker_call.model", "empty"),
    *_of_check("next_action", "changed_checks.*.check"),
    Leniency("look", "looks", "apart"),
    Leniency("decompose", f"{TASK}.estimated_effort", "word", EFFORTS),
    Leniency("decompose", f"{TASK}.suggested_impl", "empty"),
    Leniency("plan_patch", f"{OPERATION}.op", "word", OPERATIONS),
    *(
        Leniency("plan_patch", f"{OPERATION}.{key}", "blank")
        for key in ("title", "description", "phase_name", "milestone", "parent_id")
    ),
    Leniency("plan_patch", f"{OPERATION}.estimated_effort", "word", EFFORTS),
    Leniency("plan_patch", f"{OPERATION}.suggested_impl", "empty"),
    Leniency("plan_patch", f"{OPERATION}.position", "empty"),
    Leniency("plan_patch", f"{OPERATION}.position.before", "blank"),
    Leniency("plan_patch", f"{OPERATION}.position.after", "blank"),
)


def taken(fields: dict[str, Any], type_: ReplyType, prefix: str, warnings: Warnings) -> None:
    """Correct the payload of a message in place, according to TAKEN."""
    for row in TAKEN:
        if row.type != type_:
            continue
        for parent, key, path in _find_places(fields, row.path.split("."), prefix):
            given = parent[key]
            value, changed = _RULES[row.how](given, row)
            if not changed:
                continue
            if value is None:
                del parent[key]
                warnings.add("taken", path, f"{shown(given)} is taken as not set")
            else:
                parent[key] = value
                warnings.add("taken", path, f"{shown(given)} is taken as {shown(value)}")


def _find_places(
    value: Any, path: list[str], prefix: str
) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield every mapping that has the last key of the path, with that key and its full path."""
    key, *below = path
    if key == "*":
        for number, item in enumerate(value if isinstance(value, list) else ()):
            yield from _find_places(item, below, f"{prefix}{number}.")
    elif isinstance(value, dict) and key in value:
        if below:
            yield from _find_places(value[key], below, f"{prefix}{key}.")
        else:
            yield value, key, f"{prefix}{key}"


_Correction = tuple[Any, bool]
"""The corrected value (None: not set), and whether it differs from the given one."""


def _empty(given: Any, row: Leniency) -> _Correction:
    return None, isinstance(given, str) and given.strip().lower() in NOTHING


def _blank(given: Any, row: Leniency) -> _Correction:
    return None, isinstance(given, str) and given.strip().lower() in ("", "null")


def _zero(given: Any, row: Leniency) -> _Correction:
    zero = not isinstance(given, bool) and str(given).strip() in ("0", "0.0", "null", "")
    return None, zero


def _word(given: Any, row: Leniency) -> _Correction:
    if not isinstance(given, str) or given in row.words:
        return given, False
    found = [word for word in row.words if _normalized(word) == _normalized(given)]
    return (found[0], True) if len(found) == 1 else (given, False)


def _single(given: Any, row: Leniency) -> _Correction:
    return (given[0], True) if isinstance(given, list) and len(given) == 1 else (given, False)


def _apart(given: Any, row: Leniency) -> _Correction:
    """Split a look with several forms: small models fill every key, and looks only read."""
    if not isinstance(given, list):
        return given, False
    looks: list[Any] = []
    for look in given:
        forms = [form for form in FORMS if has_form(look, form)]
        others = {k: v for k, v in look.items() if k not in FORMS} if len(forms) > 1 else {}
        looks += [{form: look[form], **others} for form in forms] if len(forms) > 1 else [look]
    return looks, len(looks) > len(given)


def _normalized(word: str) -> str:
    return re.sub(r"[-\s]", "_", word.strip()).lower()


_RULES: dict[How, Callable[[Any, Leniency], _Correction]] = {
    "empty": _empty,
    "blank": _blank,
    "zero": _zero,
    "word": _word,
    "single": _single,
    "apart": _apart,
}
