"""One JSON Schema for all messages of a run.

Providers cache the schema before the system message. With a different schema for each type of
message, they would read the whole prompt anew for the first decision and the first judgement. This
schema stays the same from the plan to the last judgement. It is looser than a message's own schema:
it does not tie a payload to its type, and criterion ids are text, since the plan makes them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

from agentrunner.protocol.message import MessageType
from agentrunner.protocol.schema import Choices, message_schema, wrapped
from agentrunner.protocol.schema_parts import Schema

MESSAGES: tuple[MessageType, ...] = ("plan_task", "next_action", "completion_assessment")
"""Messages of a run; those about plans are not part of one."""


def run_schema(choices: Choices | None, *, looks: bool = False) -> Schema:
    """Return the schema of a reply that is one of MESSAGES; a fresh copy, byte-identical all the
    run.

    It uses only those `choices` that are known before the plan and do not change.
    """
    if choices is not None:
        choices = replace(choices, criteria=(), own_checks=(), at_fault=(), whole_run=True)
    schema: Schema = json.loads(_run_schema(choices, looks=looks))
    return schema


@lru_cache(maxsize=32)
def _run_schema(choices: Choices | None, *, looks: bool) -> str:
    """The schema as JSON, which is the same for all calls of a run."""
    payloads = [
        message_schema(type_, choices, looks=looks)["properties"]["payload"] for type_ in MESSAGES
    ]
    return json.dumps(wrapped(MESSAGES, {"anyOf": payloads}))
