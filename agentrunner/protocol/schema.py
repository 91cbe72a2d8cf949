"""JSON Schemas of the wrapped messages, as strict structured output takes them.

Every object is closed, every property required, what may be left out is nullable. They ask for
the common core only: what a planner seldom has a reason to set (a worker's flags) is
read where it comes, but not asked for. Lengths are bounded, since constrained decoding can
otherwise repeat itself until the token limit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentrunner.protocol.looks import AT_ONCE, FORMS
from agentrunner.protocol.message import VERSION, MessageType
from agentrunner.protocol.messages import CHECK_KINDS, MAX_CRITERIA, MAX_OPTIONS, MAX_TESTS
from agentrunner.protocol.planning import MAX_PHASES, MAX_QUESTIONS
from agentrunner.protocol.wire import MAX_ID, MAX_ITEMS, MAX_LINE, MAX_PROMPT, MAX_TEXT

Schema = dict[str, Any]


def _text(limit: int = MAX_TEXT) -> Schema:
    return {"type": "string", "maxLength": limit}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _list(items: Schema, limit: int = MAX_ITEMS, least: int = 0) -> Schema:
    schema: Schema = {"type": "array", "items": items, "maxItems": limit}
    return {**schema, "minItems": least} if least else schema


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_ID = _text(MAX_ID)
_LINE = _text(MAX_LINE)
_MAYBE_ID = _nullable(_ID)
_MAYBE_LINE = _nullable(_LINE)
_BOOL: Schema = {"type": "boolean"}
_LEVEL: Schema = {"type": "integer", "enum": [1, 2, 3]}
_EFFORT = _one_of("small", "medium", "large")

_WHOLE = _nullable({"type": "integer"})
_BY_KIND: dict[str, Schema] = {
    "command": _object(
        kind=_one_of("command"), run=_LINE, cwd=_MAYBE_LINE, timeout_sec=_WHOLE, expect_exit=_WHOLE
    ),
    "test": _object(kind=_one_of("test"), name=_MAYBE_LINE),
    "file": _object(
        kind=_one_of("file"), path=_LINE, exists=_nullable(_BOOL), contains=_MAYBE_LINE,
        matches=_MAYBE_LINE,
    ),
}  # fmt: skip
"""The keys that each kind of check has; the others have `file` and `test_name`."""


def _check_of(kind: str) -> Schema:
    return _BY_KIND.get(kind) or _object(kind=_one_of(kind), file=_LINE, test_name=_MAYBE_LINE)


_CHECK = _object(
    kind=_one_of(*(kind for kind in CHECK_KINDS if kind != "diff")),
    run=_MAYBE_LINE,
    cwd=_MAYBE_LINE,
    timeout_sec=_nullable({"type": "integer"}),
    expect_exit=_nullable({"type": "integer"}),
    path=_MAYBE_LINE,
    exists=_nullable(_BOOL),
    contains=_MAYBE_LINE,
    matches=_MAYBE_LINE,
    file=_MAYBE_LINE,
    test_name=_MAYBE_LINE,
    name=_MAYBE_LINE,
)

_CRITERION = _object(
    id=_ID,
    description=_text(),
    type=_ID,
    critical=_BOOL,
    check=_nullable(_CHECK),
    tests=_list(_LINE, MAX_TESTS),
    new_test=_nullable(_object(file=_LINE, name=_LINE)),
    rationale=_text(),
)

_SUGGESTED_IMPL = _object(language=_MAYBE_ID, file_paths=_list(_LINE), constraints=_list(_LINE))

_CONFLICT = _object(file=_LINE, tasks=_list(_ID), warning=_text())

_DECOMPOSED_TASK = _object(
    id=_ID,
    title=_LINE,
    description=_text(),
    acceptance_criteria=_list(_text()),
    dependencies=_list(_ID),
    wbs_level=_LEVEL,
    estimated_effort=_EFFORT,
    suggested_impl=_nullable(_SUGGESTED_IMPL),
)

_OPERATION = _object(
    op=_one_of("create", "update", "delete", "move"),
    temp_id=_MAYBE_ID,
    task_id=_MAYBE_ID,
    title=_MAYBE_LINE,
    description=_nullable(_text()),
    acceptance_criteria=_nullable(_list(_text())),
    dependencies=_nullable(_list(_ID)),
    phase_name=_MAYBE_LINE,
    milestone=_MAYBE_LINE,
    wbs_level=_nullable(_LEVEL),
    estimated_effort=_nullable(_EFFORT),
    suggested_impl=_nullable(_SUGGESTED_IMPL),
    parent_id=_MAYBE_ID,
    position=_nullable(
        _object(index=_nullable({"type": "integer"}), before=_MAYBE_ID, after=_MAYBE_ID)
    ),
    cascade=_nullable(_BOOL),
)

_PAYLOADS: dict[MessageType, Schema] = {
    "plan_task": _object(acceptance_criteria=_list(_CRITERION, MAX_CRITERIA, least=1)),
    "next_action": _object(
        decision=_object(
            action=_one_of("run_worker", "mark_complete", "ask_human", "abort"), reason=_text()
        ),
        worker_call=_nullable(
            _object(
                worker_type=_ID,
                mode=_one_of("exec", "resume"),
                model=_MAYBE_ID,
                prompt=_text(MAX_PROMPT),
            )
        ),
        used_patterns=_list(_ID),
        question=_nullable(_text()),
        options=_list(_LINE, MAX_OPTIONS),
    ),
    "completion_assessment": _object(
        summary=_text(),
        all_criteria_satisfied=_BOOL,
        by_criterion=_list(_object(id=_ID, status=_one_of("passed", "failed"), comment=_text())),
        details=_object(passed_criteria=_list(_ID), remaining_risks=_list(_text())),
    ),
    "decompose": _object(
        understanding=_text(),
        phases=_list(
            _object(name=_LINE, milestone=_LINE, tasks=_list(_DECOMPOSED_TASK)), limit=MAX_PHASES
        ),
        potential_conflicts=_list(_CONFLICT),
        questions=_list(_text(), MAX_QUESTIONS),
    ),
    "plan_patch": _object(
        understanding=_text(),
        operations=_list(_OPERATION),
        potential_conflicts=_list(_CONFLICT),
        questions=_list(_text(), MAX_QUESTIONS),
    ),
}


@dataclass(frozen=True)
class Choices:
    """What a task allows, so that a schema can name it. Empty means that it is not known."""

    workers: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    """That may be named for a worker; the key is left out where there are none."""
    patterns: tuple[str, ...] = ()
    """The key is left out where there are none."""
    criteria: tuple[str, ...] = ()
    """Ids."""
    kinds: tuple[str, ...] = ()
    """Of checks; of CHECK_KINDS all but `diff` where none are named."""
    tests: tuple[str, ...] = ()
    """Ids of tests that were there before the run; the key is left out where there are none."""
    own_checks: tuple[str, ...] = ()
    """Ids of criteria whose checks the planner wrote; only these can be withdrawn or replaced."""
    whole_run: bool = False
    """Whether it is for a schema that stays the same all the run: then checks can be changed
    although no such ids are known yet, and the keys of an action are in one object."""


MOST_WORDS = 200
"""Values of one enumeration; providers refuse longer ones."""
KINDS = tuple(kind for kind in CHECK_KINDS if kind != "diff")
_LOOK = _object(
    **dict.fromkeys((*FORMS, "in"), _LINE),
    **{name: {"type": "integer"} for name in ("from", "to")},
)
"""For servers that take no unions: an empty text and 0 mean that a key is not used."""
_LINE_NUMBER: Schema = {"type": "integer"}
_LOOKS_OF_PLANS = [
    _object(**{"read": _LINE, "from": _LINE_NUMBER, "to": _LINE_NUMBER}),
    _object(**{"search": _LINE, "in": _LINE}),
    _object(list=_LINE),
]
_LOOKS = [*_LOOKS_OF_PLANS, _object(diff=_LINE), _object(**{"output": _LINE, "from": _LINE_NUMBER})]
"""A look has the keys of its form: small models fill each key that there is."""


def message_schema(
    type: MessageType,  # noqa: A002 - the protocol's own word
    choices: Choices | None = None,
    *,
    looks: bool = False,
) -> Schema:
    """The JSON Schema of the wrapped message, for strict structured output; a fresh copy.

    With `choices` it names what the task allows and has no key that could not be used. With
    `looks` the message may look before it answers.
    """
    payload = copy.deepcopy(_PAYLOADS[type])
    if choices is not None and type in _NARROW:
        _NARROW[type](payload, choices)
    if looks:
        forms = _LOOKS if type in _NARROW else _LOOKS_OF_PLANS
        plain = choices is None or choices.whole_run
        look = _LOOK if plain else {"anyOf": forms}
        payload["properties"]["looks"] = copy.deepcopy(_list(look, AT_ONCE))
        payload["required"].append("looks")
    if type == "next_action" and choices is not None and not choices.whole_run:
        payload = _by_action(payload)
    return _object(
        type=_one_of(type), version={"type": "integer", "enum": [VERSION]}, payload=payload
    )


def _narrow_action(payload: Schema, choices: Choices) -> None:
    keys = payload["properties"]
    call = keys["worker_call"]["anyOf"][0]
    if words := _words(choices.workers):
        call["properties"]["worker_type"] = words
    if not choices.models:
        _drop(call, "model")
    elif words := _words(choices.models):
        call["properties"]["model"] = _nullable(words)
    if not choices.patterns:
        _drop(payload, "used_patterns")
    elif words := _words(choices.patterns):
        keys["used_patterns"] = _list(words)
    if choices.own_checks or choices.whole_run:
        id_ = _words(choices.own_checks) or _ID
        change = _object(id=id_, reason=_text(), check=_checks_of(choices))
        keys["changed_checks"] = _list(change, MAX_CRITERIA)
        payload["required"].append("changed_checks")


def _by_action(payload: Schema) -> Schema:
    """The payload with the keys of its action only, so that none contradicts it."""
    keys = payload["properties"]
    common = {name: keys[name] for name in ("changed_checks", "looks") if name in keys}
    patterns = {name: keys[name] for name in ("used_patterns",) if name in keys}

    def form(actions: Sequence[str], **own: Schema) -> Schema:
        decision = _object(action=_one_of(*actions), reason=_text())
        return copy.deepcopy(_object(decision=decision, **own, **common))

    call = keys["worker_call"]["anyOf"][0]
    return {
        "anyOf": [
            form(["run_worker"], worker_call=call, **patterns),
            form(["mark_complete", "abort"]),
            form(["ask_human"], question=_text(), options=keys["options"]),
        ]
    }


def _narrow_assessment(payload: Schema, choices: Choices) -> None:
    if words := _words(choices.criteria):
        verdicts, details = (payload["properties"][name] for name in ("by_criterion", "details"))
        verdicts["items"]["properties"]["id"] = words
        details["properties"]["passed_criteria"]["items"] = words


def _narrow_plan(payload: Schema, choices: Choices) -> None:
    criterion = payload["properties"]["acceptance_criteria"]["items"]
    criterion["properties"]["check"] = _checks_of(choices)
    if not choices.tests:
        _drop(criterion, "tests")
    elif words := _words(choices.tests):
        criterion["properties"]["tests"] = _list(words, MAX_TESTS)
    if choices.kinds and "test" not in choices.kinds:
        _drop(criterion, "new_test")


def _checks_of(choices: Choices) -> Schema:
    """A check of a kind that can be executed here, or none."""
    kinds: Sequence[str] = [kind for kind in choices.kinds if kind in KINDS] or KINDS
    checks = [copy.deepcopy(_check_of(kind)) for kind in kinds]
    for check in checks:
        if check["properties"]["kind"]["enum"] == ["test"]:
            _name_tests(check, choices)
    return {"anyOf": [*checks, {"type": "null"}]}


def _name_tests(check: Schema, choices: Choices) -> None:
    """One test of the suite, by its id; another is named by `new_test`."""
    if not choices.tests:
        _drop(check, "name")
    elif words := _words(choices.tests):
        check["properties"]["name"] = _nullable(words)


_NARROW: dict[MessageType, Callable[[Schema, Choices], None]] = {
    "next_action": _narrow_action,
    "completion_assessment": _narrow_assessment,
    "plan_task": _narrow_plan,
}


def _words(values: Iterable[str]) -> Schema | None:
    """An enumeration; None where there is nothing to name, or too much."""
    words = list(dict.fromkeys(values))
    return _one_of(*words) if 0 < len(words) <= MOST_WORDS else None


def _drop(schema: Schema, key: str) -> None:
    del schema["properties"][key]
    schema["required"].remove(key)
