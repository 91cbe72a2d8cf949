"""JSON Schemas of the wrapped messages, as strict structured output takes them.

Every object is closed, every property required, and optional values are nullable. The schemas
request the common core only: fields that a planner seldom needs (a worker's flags) are accepted but
not requested. Lengths are limited, since constrained decoding can otherwise repeat itself until the
token limit.

A model writes the keys in this order. So what a decision rests on comes before the decision: a
reason before the action, a comment before the verdict. What code can conclude (whether all criteria
are met) is not requested: small models contradict themselves there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from agentrunner.protocol.looks import AT_ONCE, FORMS
from agentrunner.protocol.message import VERSION, MessageType
from agentrunner.protocol.messages import CHECK_KINDS, MAX_CRITERIA, MAX_OPTIONS, MAX_TESTS
from agentrunner.protocol.plan_schema import (
    DECOMPOSE,
    PLAN_PATCH,
    PlanIds,
    narrow_decompose,
    narrow_patch,
)
from agentrunner.protocol.schema_parts import (
    BOOL,
    ID,
    LINE,
    MAYBE_ID,
    MAYBE_LINE,
    WHOLE,
    Schema,
    closed,
    drop,
    list_of,
    nullable,
    one_of,
    text,
    words_of,
)
from agentrunner.protocol.wire import MAX_PROMPT

_BY_KIND: dict[str, Schema] = {
    "command": closed(kind=one_of("command"), run=LINE),
    "test": closed(kind=one_of("test"), name=MAYBE_LINE),
    "file": closed(
        kind=one_of("file"), path=LINE, exists=nullable(BOOL), contains=MAYBE_LINE,
        matches=MAYBE_LINE,
    ),
}  # fmt: skip
"""The keys of each kind of check; the other kinds have `file` and `test_name`.

A command's folder, time and exit code are read where they are given, and not asked for: the command
itself can say them, and small models fill in "." and 0, or the exit code that it has before the
work, with which it is red for good once the work is done.
"""


KINDS = tuple(kind for kind in CHECK_KINDS if kind != "diff")
_CHECK = closed(
    kind=one_of(*KINDS),
    run=MAYBE_LINE,
    path=MAYBE_LINE,
    exists=nullable(BOOL),
    contains=MAYBE_LINE,
    matches=MAYBE_LINE,
    file=MAYBE_LINE,
    test_name=MAYBE_LINE,
    name=MAYBE_LINE,
)

SAYING = text(1000)
"""A text that a few sentences fill. More is read, and not requested: small models repeat
themselves until a text is full.
"""
SHORT_CHARS = 500
SHORT = text(SHORT_CHARS)
"""A text of a sentence or two, which nothing is decided by."""
RISKS = 5
"""Risks that a judge is asked for at most."""

_CRITERION = closed(
    id=ID,
    rationale=SHORT,
    description=SAYING,
    type=ID,
    critical=BOOL,
    check=nullable(_CHECK),
    tests=list_of(LINE, MAX_TESTS),
    new_test=nullable(closed(file=LINE, name=LINE)),
)

MESSAGES: tuple[MessageType, ...] = ("plan_task", "next_action", "completion_assessment")
"""Messages of a run; those about plans are not part of one."""
QUOTE_CHARS = 300
"""Of a line that a judge quotes."""

_PAYLOADS: dict[MessageType, Schema] = {
    "plan_task": closed(acceptance_criteria=list_of(_CRITERION, MAX_CRITERIA, least=1)),
    "next_action": closed(
        decision=closed(
            reason=SAYING, action=one_of("run_worker", "mark_complete", "ask_human", "abort")
        ),
        worker_call=nullable(
            closed(
                worker_type=ID,
                mode=one_of("exec", "resume"),
                model=MAYBE_ID,
                prompt=text(MAX_PROMPT),
            )
        ),
        used_patterns=list_of(ID),
        question=nullable(SAYING),
        options=list_of(LINE, MAX_OPTIONS),
    ),
    "completion_assessment": closed(
        by_criterion=list_of(closed(id=ID, comment=SHORT, status=one_of("passed", "failed"))),
        details=closed(remaining_risks=list_of(SHORT, RISKS)),
        summary=SHORT,
    ),
    "decompose": DECOMPOSE,
    "plan_patch": PLAN_PATCH,
}


@dataclass(frozen=True)
class Choices:
    """What a task allows, so that a schema can enumerate it. Empty means unknown."""

    workers: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    """Models that may be named for a worker; the key is left out where there are none."""
    patterns: tuple[str, ...] = ()
    """The key is left out where there are none."""
    criteria: tuple[str, ...] = ()
    """Criterion ids."""
    kinds: tuple[str, ...] = ()
    """Kinds of checks; if empty, all of CHECK_KINDS but `diff`."""
    tests: tuple[str, ...] = ()
    """Ids of tests that were red before the run; the keys are left out where there are none."""
    new_tests: bool = True
    """Whether a test can be named that is still to be written."""
    quotes: bool = False
    """Whether a judge is asked for quotes only, of `criteria`."""
    own_checks: tuple[str, ...] = ()
    """Ids of criteria whose checks the planner wrote; only these can be withdrawn or replaced."""
    at_fault: tuple[str, ...] = ()
    """Ids of criteria that a plan is asked for once more; empty for a whole plan."""
    may_complete: bool = True
    """Whether completion can be asked for: nothing that was not changed is complete."""
    whole_run: bool = False
    """For a schema that stays the same all the run: then checks can be changed although no such ids
    are known yet, and one object has the keys of all actions.
    """
    plan: PlanIds = field(default_factory=PlanIds)
    """For a conversation: what the plan has."""


_LOOK = closed(
    **dict.fromkeys((*FORMS, "in"), LINE),
    **dict.fromkeys(("from", "to"), WHOLE),
)
"""For servers without unions: an empty text or 0 means that a key is not used."""
_LOOKS_OF_PLANS = [
    closed(**{"read": LINE, "from": WHOLE, "to": WHOLE}),
    closed(**{"search": LINE, "in": LINE}),
    closed(list=LINE),
]
_LOOKS = [*_LOOKS_OF_PLANS, closed(diff=LINE), closed(**{"output": LINE, "from": WHOLE})]
"""Each look has only the keys of its form, since small models fill every key that exists."""


@lru_cache(maxsize=32)
def message_schema(
    type: MessageType,  # noqa: A002 - the protocol's own word
    choices: Choices | None = None,
    *,
    looks: bool = False,
) -> Schema:
    """Return the JSON Schema of the wrapped message, for strict structured output.

    With `choices` it enumerates what the task allows and omits keys that could not be used. With
    `looks` the message may look before it answers. It is shared, and nobody changes it: one call
    needs five schemas, mostly those of the call before.
    """
    payload = copy.deepcopy(_PAYLOADS[type])
    if choices is not None:
        _NARROW[type](payload, choices)
    if looks:
        forms = _LOOKS_OF_PLANS if type in _ABOUT_PLANS else _LOOKS
        plain = choices is None or choices.whole_run
        look = _LOOK if plain else {"anyOf": forms}
        payload["properties"]["looks"] = copy.deepcopy(list_of(look, AT_ONCE))
        payload["required"].append("looks")
    if type == "next_action" and choices is not None and not choices.whole_run:
        payload = _split_by_action(payload, may_complete=choices.may_complete)
    return _wrapped([type], payload)


def _wrapped(types: Sequence[MessageType], payload: Schema) -> Schema:
    version = {"type": "integer", "enum": [VERSION]}
    return closed(type=one_of(*types), version=version, payload=payload)


def run_schema(choices: Choices | None, *, looks: bool = False) -> Schema:
    """Return one schema for all messages of a run, MESSAGES; shared, too.

    Providers cache the schema before the system message. With a different one for each type of
    message, they would read the whole prompt anew for the first decision and the first judgement.
    So this one stays the same, to the byte, from the plan to the last judgement: it uses only those
    `choices` that are known before the plan. It is looser than a message's own schema: it does not
    tie a payload to its type, and criterion ids are text, since the plan makes them.
    """
    if choices is not None:
        choices = replace(choices, criteria=(), own_checks=(), at_fault=(), whole_run=True)
    return _run_schema(choices, looks=looks)


@lru_cache(maxsize=32)
def _run_schema(choices: Choices | None, *, looks: bool) -> Schema:
    payloads = [
        message_schema(type_, choices, looks=looks)["properties"]["payload"] for type_ in MESSAGES
    ]
    return _wrapped(MESSAGES, {"anyOf": payloads})


def _narrow_action(payload: Schema, choices: Choices) -> None:
    keys = payload["properties"]
    call = keys["worker_call"]["anyOf"][0]
    if words := words_of(choices.workers):
        call["properties"]["worker_type"] = words
    if not choices.models:
        drop(call, "model")
    elif words := words_of(choices.models):
        call["properties"]["model"] = nullable(words)
    if not choices.patterns:
        drop(payload, "used_patterns")
    elif words := words_of(choices.patterns):
        keys["used_patterns"] = list_of(words)
    if choices.own_checks or choices.whole_run:
        id_ = words_of(choices.own_checks) or ID
        change = closed(id=id_, reason=SAYING, check=_checks_of(choices))
        keys["changed_checks"] = list_of(change, MAX_CRITERIA)
        payload["required"].append("changed_checks")


def _split_by_action(payload: Schema, *, may_complete: bool) -> Schema:
    """Return the payload with the keys of its action only, so that none contradicts it."""
    keys = payload["properties"]
    common = {name: keys[name] for name in ("changed_checks", "looks") if name in keys}
    patterns = {name: keys[name] for name in ("used_patterns",) if name in keys}

    def form(actions: Sequence[str], **own: Schema) -> Schema:
        decision = closed(reason=SAYING, action=one_of(*actions))
        return copy.deepcopy(closed(decision=decision, **own, **common))

    call = keys["worker_call"]["anyOf"][0]
    return {
        "anyOf": [
            form(["run_worker"], worker_call=call, **patterns),
            form(["mark_complete", "abort"] if may_complete else ["abort"]),
            form(["ask_human"], question=SAYING, options=keys["options"]),
        ]
    }


def _narrow_assessment(payload: Schema, choices: Choices) -> None:
    if choices.quotes:
        # No verdict beside it: small models that are asked for one say "passed" to any line.
        id_ = words_of(choices.criteria) or ID
        quote = closed(id=id_, quote=text(QUOTE_CHARS))
        payload.update(closed(quotes=list_of(quote, MAX_CRITERIA, least=1)))
        return
    if words := words_of(choices.criteria):
        payload["properties"]["by_criterion"]["items"]["properties"]["id"] = words


def _narrow_plan(payload: Schema, choices: Choices) -> None:
    criteria = payload["properties"]["acceptance_criteria"]
    criterion = criteria["items"]
    if choices.criteria and not choices.at_fault:  # those of people may lack nothing
        del criteria["minItems"]
    if words := words_of(choices.at_fault):
        criterion["properties"]["id"] = words
        criteria["maxItems"] = len(choices.at_fault)
    criterion["properties"]["check"] = _checks_of(choices)
    if not choices.tests:
        drop(criterion, "tests")
    elif words := words_of(choices.tests):
        criterion["properties"]["tests"] = list_of(words, MAX_TESTS)
    if not choices.new_tests:
        drop(criterion, "new_test")


def _checks_of(choices: Choices) -> Schema:
    """Return the schema of a check of a kind that can be executed here, or null."""
    kinds: Sequence[str] = [kind for kind in choices.kinds if kind in KINDS] or KINDS
    checks = [
        copy.deepcopy(
            _BY_KIND.get(kind) or closed(kind=one_of(kind), file=LINE, test_name=MAYBE_LINE)
        )
        for kind in kinds
    ]
    for check in checks:
        if check["properties"]["kind"]["enum"] == ["test"]:
            _name_tests(check, choices)
    return {"anyOf": [*checks, {"type": "null"}]}


def _name_tests(check: Schema, choices: Choices) -> None:
    """Let the check name one test of the suite by its id; `new_test` names any other."""
    if not choices.tests:
        drop(check, "name")
    elif words := words_of(choices.tests):
        check["properties"]["name"] = nullable(words)


_NARROW: dict[MessageType, Callable[[Schema, Choices], None]] = {
    "next_action": _narrow_action,
    "completion_assessment": _narrow_assessment,
    "plan_task": _narrow_plan,
    "decompose": lambda payload, _: narrow_decompose(payload),
    "plan_patch": lambda payload, choices: narrow_patch(payload, choices.plan),
}
_ABOUT_PLANS = ("decompose", "plan_patch")
