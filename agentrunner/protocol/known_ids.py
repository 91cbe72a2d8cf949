"""Correct ids that differ from the known ones only in case or hyphens. Pure.

`parse_reply` cannot do this: the known ids are those of the run or plan. An id that fits none of
them, or several, stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from agentrunner.protocol.message import Message
from agentrunner.protocol.messages import CompletionAssessment, NextAction, PlanTask
from agentrunner.protocol.planning import PlanOperation, PlanPatch
from agentrunner.protocol.wire import shown
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import escape, one_line

TEST_ID = lazy_regex(r"(?<![\w-])T[1-9]\d{0,3}(?![\w-])")
NAME_CELLS = 300
"""Width limit of a name within a text."""
_TEST_KEYS = ("name", "test_name")
"""Keys of a check that name the test it runs."""

Item = TypeVar("Item")


def with_known_ids(message: Message, known: Collection[str]) -> tuple[Message, list[str]]:
    """Return the message with known criterion ids, and a sentence for each id that was changed."""
    notices: list[str] = []
    taken = _replacer("criterion id", known, notices)
    payload = message.payload
    if isinstance(payload, PlanTask):
        used = {one.id for one in payload.acceptance_criteria}
        drafts = [
            # If the plan also uses that known id itself, this one is another criterion.
            one if taken_before(one.id, used, known) else _with_id(one, taken)
            for one in payload.acceptance_criteria
        ]
        payload = payload.model_copy(update={"acceptance_criteria": drafts})
    elif isinstance(payload, NextAction):
        updates = [_with_id(one, taken) for one in payload.updated_acceptance_criteria]
        changed = [_with_id(one, taken) for one in payload.changed_checks]
        payload = payload.model_copy(
            update={"updated_acceptance_criteria": updates, "changed_checks": changed}
        )
    elif isinstance(payload, CompletionAssessment):
        passed = [taken(one) for one in payload.details.passed_criteria]
        details = payload.details.model_copy(update={"passed_criteria": passed})
        verdicts = [_with_id(one, taken) for one in payload.by_criterion]
        quotes = [_with_id(one, taken) for one in payload.quotes]
        update = {"details": details, "by_criterion": verdicts, "quotes": quotes}
        payload = payload.model_copy(update=update)
    if not notices:
        return message, []
    return replace(message, payload=payload), notices


def with_plan_ids(message: Message, known: Collection[str]) -> tuple[Message, list[str]]:
    """Return a plan change with known task and node ids, and a sentence for each changed id.

    Temporary ids of the same message stay.
    """
    payload = message.payload
    if not isinstance(payload, PlanPatch):
        return message, []
    notices: list[str] = []
    made = {one.temp_id for one in payload.operations if one.temp_id}
    fit = _replacer("id of the plan", known, notices)

    def taken(given: str) -> str:
        return given if given in made else fit(given)

    conflicts = [
        one.model_copy(update={"tasks": [taken(name) for name in one.tasks]})
        for one in payload.potential_conflicts
    ]
    operations = [_operation(one, taken) for one in payload.operations]
    payload = payload.model_copy(
        update={"operations": operations, "potential_conflicts": conflicts}
    )
    return (replace(message, payload=payload), notices) if notices else (message, [])


def _operation(one: PlanOperation, taken: Callable[[str], str]) -> PlanOperation:
    """Return the operation with known ids; omitted fields stay omitted, which means no change."""
    update: dict[str, object] = {
        name: taken(given) for name in ("task_id", "parent_id") if (given := getattr(one, name))
    }
    if one.dependencies:
        update["dependencies"] = [taken(name) for name in one.dependencies]
    if one.position is not None:
        beside = {
            name: taken(given)
            for name in ("before", "after")
            if (given := getattr(one.position, name))
        }
        update["position"] = one.position.model_copy(update=beside)
    return one.model_copy(update=update)


def _replacer(what: str, known: Collection[str], notices: list[str]) -> Callable[[str], str]:
    def taken(given: str) -> str:
        found = known_id(given, known)
        if found is None or found == given:
            return given
        sentence = f"{what}: {shown(given)} is taken as {shown(found)}"
        if sentence not in notices:
            notices.append(sentence)
        return found

    return taken


def known_id(given: str, known: Collection[str]) -> str | None:
    """Return the one known id that is meant; None if there is none or it is ambiguous."""
    if given in known:
        return given
    found = (
        [one for one in known if _normalized(one) == _normalized(given)]
        if _normalized(given)
        else []
    )
    return found[0] if len(found) == 1 else None


def taken_before(given: str, used: Collection[str], known: Collection[str]) -> bool:
    """Whether the known id that would replace `given` is itself in the same list."""
    found = known_id(given, known)
    return found is not None and found != given and found in used


def _with_id(item: Item, taken: Callable[[str], str]) -> Item:
    copied: Item = item.model_copy(update={"id": taken(item.id)})  # type: ignore[attr-defined]
    return copied


def _normalized(text: str) -> str:
    return re.sub(r"[-_\s\u2010-\u2015\u2212]", "", text).casefold()


def with_names(message: Message, names: Mapping[str, str]) -> Message:
    """The message with names for ids; `names` is by id. Commands stay as they are written.

    Prompts call tests with long names by ids, which workers and people do not know.
    """
    payload = message.payload
    if not names:
        return message
    if isinstance(payload, PlanTask):
        drafts = [
            one.model_copy(
                update={
                    "description": spelled_out(one.description, names),
                    "rationale": spelled_out(one.rationale, names),
                    "tests": [names.get(test, test) for test in one.tests],
                    "check": _check(one.check, names),
                }
            )
            for one in payload.acceptance_criteria
        ]
        payload = payload.model_copy(update={"acceptance_criteria": drafts})
    elif isinstance(payload, NextAction):
        payload = _action(payload, names)
    elif isinstance(payload, CompletionAssessment):
        risks = [spelled_out(one, names) for one in payload.details.remaining_risks]
        update = {
            "summary": spelled_out(payload.summary, names),
            "details": payload.details.model_copy(update={"remaining_risks": risks}),
            "by_criterion": [
                one.model_copy(update={"comment": spelled_out(one.comment, names)})
                for one in payload.by_criterion
            ],
        }
        payload = payload.model_copy(update=update)
    return replace(message, payload=payload)


def spelled_out(text: str, names: Mapping[str, str]) -> str:
    """Return the text with the name added after the first occurrence of each id."""
    named_once: set[str] = set()

    def named(hit: re.Match[str]) -> str:
        name = names.get(hit[0])
        if name is None or hit[0] in named_once or name in text:
            return hit[0]
        named_once.add(hit[0])
        return f"{hit[0]} ({one_line(escape(name), NAME_CELLS)})"  # a name is untrusted text

    return TEST_ID.sub(named, text)


def _action(payload: NextAction, names: Mapping[str, str]) -> NextAction:
    decision = payload.decision
    update: dict[str, Any] = {
        "decision": decision.model_copy(update={"reason": spelled_out(decision.reason, names)}),
        "options": [spelled_out(one, names) for one in payload.options],
        "changed_checks": [
            one.model_copy(
                update={
                    "reason": spelled_out(one.reason, names),
                    "check": _check(one.check, names),
                }
            )
            for one in payload.changed_checks
        ],
    }
    if payload.question:
        update["question"] = spelled_out(payload.question, names)
    if (call := payload.worker_call) is not None:
        prompt = spelled_out(call.prompt, names)
        update["worker_call"] = call.model_copy(update={"prompt": prompt})
    return payload.model_copy(update=update)


def _check(check: dict[str, Any] | None, names: Mapping[str, str]) -> dict[str, Any] | None:
    if check is None:
        return None
    called = {key: names.get(check[key], check[key]) for key in _TEST_KEYS if check.get(key)}
    return {**check, **called}
