"""Building blocks of the message schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentrunner.protocol.wire import MAX_ID, MAX_ITEMS, MAX_LINE, MAX_TEXT

Schema = dict[str, Any]
MOST_WORDS = 200
"""Limit of values of one enumeration; providers refuse longer ones."""


def text(limit: int = MAX_TEXT) -> Schema:
    """Schema of a text of at most `limit` characters."""
    return {"type": "string", "maxLength": limit}


def one_of(*values: str) -> Schema:
    """Schema of an enumeration."""
    return {"type": "string", "enum": list(values)}


def list_of(items: Schema, limit: int = MAX_ITEMS, least: int = 0) -> Schema:
    """Schema of a list of `least` to `limit` items."""
    schema: Schema = {"type": "array", "items": items, "maxItems": limit}
    return {**schema, "minItems": least} if least else schema


def closed(**properties: Schema) -> Schema:
    """Schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def nullable(schema: Schema) -> Schema:
    """Schema that also allows null."""
    return {"anyOf": [schema, {"type": "null"}]}


def words_of(values: Iterable[str]) -> Schema | None:
    """Return an enumeration; None for no values or too many."""
    words = list(dict.fromkeys(values))
    return one_of(*words) if 0 < len(words) <= MOST_WORDS else None


def drop(schema: Schema, key: str) -> None:
    """Remove a key from an object schema, in place."""
    del schema["properties"][key]
    schema["required"].remove(key)


ID = text(MAX_ID)
LINE = text(MAX_LINE)
MAYBE_ID = nullable(ID)
MAYBE_LINE = nullable(LINE)
BOOL: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
