"""What a server's error says, without the JSON around it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping


def in_words(message: str) -> str:
    """Return a message with the words inside its JSON in that one's place; others unchanged."""
    lead, brace, body = message.partition("{")
    try:
        value = json.loads(brace + body)
    except (ValueError, RecursionError):
        return message
    error = value.get("error", value)
    words = error.get("message") or error.get("detail") if isinstance(error, Mapping) else error
    return f"{lead.strip()} {words if isinstance(words, str) else ''}".strip()
