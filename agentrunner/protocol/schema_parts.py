"""What the schemas of messages are put together from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentrunner.protocol.wire import MAX_ID, MAX_ITEMS, MAX_LINE, MAX_TEXT

Schema = dict[str, Any]
MOST_WORDS = 200
"""Values of one enumeration; providers refuse longer ones."""


def text(limit: int = MAX_TEXT) -> Schema:
    """A text of at most so many characters."""
    return {"type": "string", "maxLength": limit}


def one_of(*values: str) -> Schema:
    """An enumeration."""
    return {"type": "string", "enum": list(values)}


def list_of(items: Schema, limit: int = MAX_ITEMS, least: int = 0) -> Schema:
    """A list of at least and at most so many items."""
    schema: Schema = {"type": "array", "items": items, "maxItems": limit}
    return {**schema, "minItems": least} if least else schema


def closed(**properties: Schema) -> Schema:
    """An object with exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def words_of(values: Iterable[str]) -> Schema | None:
    """An enumeration; None where there is nothing to name, or too much."""
    words = list(dict.fromkeys(values))
    return one_of(*words) if 0 < len(words) <= MOST_WORDS else None


def drop(schema: Schema, key: str) -> None:
    """Take a key from an object, in place."""
    del schema["properties"][key]
    schema["required"].remove(key)


ID = text(MAX_ID)
LINE = text(MAX_LINE)
MAYBE_ID = nullable(ID)
MAYBE_LINE = nullable(LINE)
BOOL: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
