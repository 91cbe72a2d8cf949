"""Replace or explain test ids in a planner's message by the tests' names. Pure.

Prompts call tests with long names by ids, which workers and people do not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentrunner.protocol.message import Message
from agentrunner.protocol.messages import CompletionAssessment, NextAction, PlanTask
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import escape, one_line

TEST_ID = lazy_regex(r"(?<![\w-])T[1-9]\d{0,3}(?![\w-])")
NAME_CELLS = 300
"""Width limit of a name within a text."""
_TEST_KEYS = ("name", "test_name")
"""Keys of a check that name the test it runs."""


def with_names(message: Message, names: Mapping[str, str]) -> Message:
    """The message with names for ids; `names` is by id. Commands stay as they are written."""
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
