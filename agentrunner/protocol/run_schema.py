"""One JSON Schema for all messages of a run.

Providers put the schema before the system message in what they cache: with another schema for each
type of message, the first decision and the first judgement would be read anew, whole. This one
stays the same from the plan to the last judgement. It says less than a message's own schema: it
does not tie a payload to its type, and ids of criteria are text, since the plan makes them.
"""

from __future__ import annotations

from dataclasses import replace

from agentrunner.protocol.message import VERSION, MessageType
from agentrunner.protocol.schema import Choices, message_schema
from agentrunner.protocol.schema_parts import Schema

MESSAGES: tuple[MessageType, ...] = ("plan_task", "next_action", "completion_assessment")
"""Of a run; those about plans are no part of one."""


def run_schema(choices: Choices | None, *, looks: bool = False) -> Schema:
    """The schema of a reply that is one of MESSAGES; a fresh copy, of the same bytes all the run.

    Of `choices` it has what is known before the plan and does not change.
    """
    if choices is not None:
        choices = replace(choices, criteria=(), own_checks=(), whole_run=True)
    payloads = [
        message_schema(type_, choices, looks=looks)["properties"]["payload"] for type_ in MESSAGES
    ]
    properties: Schema = {
        "type": {"type": "string", "enum": list(MESSAGES)},
        "version": {"type": "integer", "enum": [VERSION]},
        "payload": {"anyOf": payloads},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
