"""A model server for CLIs that plan: each call is a new session, and gets the next item.

    with PlannerServer([PLAN, "I would rather not.", PLAN]) as server:
        … a CLI whose model is at server.base_url (Codex) or server.address (Claude Code) …

A mapping is given in whichever way the CLI asks for structured answers; a text is prose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.kit.model_server import ModelServer
from tests.kit.scenario import Turn, Use
from tests.kit.wire import Ask, Usage

STRUCTURED = "StructuredOutput"
"""The tool by which Claude Code takes a value of a schema."""

Item = Mapping[str, Any] | str | Turn


def filled(value: Any, schema: Mapping[str, Any]) -> Any:
    """`value` with what the schema requires beside it: strict models leave nothing out."""
    if isinstance(value, list):
        return [filled(item, schema.get("items", {})) for item in value]
    choices = [one for one in schema.get("anyOf", ()) if _takes(one, value)]
    if choices:
        given = value if isinstance(value, Mapping) else {}
        said = {name for name, one in given.items() if one is not None}
        whole = [one for one in choices if said <= set(one.get("properties", said))]
        return filled(value, (whole or choices)[0])
    if not isinstance(value, Mapping):
        return value
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    lacking = {
        name: one["enum"][0] if one.get("enum") else _EMPTY.get(one.get("type"), None)
        for name, one in properties.items()
    }
    given = {
        name: filled(one, properties.get(name, {}))
        for name, one in value.items()
        if name in properties or one is not None
    }
    return {**lacking, **given}


def _takes(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether the schema is of the value's kind; an object is known by what it names itself."""
    if not isinstance(value, Mapping):
        kind = schema.get("type")
        return value is None if kind == "null" else kind != "object"
    properties = schema.get("properties", {})
    named = {name: one["enum"] for name, one in properties.items() if one.get("enum")}
    return (
        schema.get("type") == "object"
        and all(value.get(name, values[0]) in values for name, values in named.items())
        and all(
            _takes(one, value[name])
            for name, one in properties.items()
            if isinstance(value.get(name), Mapping) and one.get("type") == "object"
        )
    )


_EMPTY: Mapping[Any, Any] = {"string": "", "array": [], "boolean": True, "integer": 0}


class PlannerServer(ModelServer):
    """Answers new sessions from `items`, in order; the last one repeats."""

    def __init__(self, items: Sequence[Item]) -> None:
        super().__init__()
        self._items = tuple(items)
        self.sessions = 0
        """How many have begun."""
        self.after: Item | None = None
        """What a session gets in its later turns; None: the same again."""

    def serve(self, items: Sequence[Item]) -> None:
        """From the next session on, answer with these."""
        self._items, self.sessions = tuple(items), 0

    def next_turn(self, path: str, ask: Ask) -> tuple[Turn, Usage]:
        """The item of the session."""
        self.sessions += not ask.turns
        item = self._items[min(max(self.sessions, 1), len(self._items)) - 1]
        if ask.turns and self.after is not None:
            item = self.after
        if isinstance(item, Turn):
            return item, Usage()
        if isinstance(item, str):
            return Turn(item), Usage()
        if STRUCTURED in ask.tools:
            value = filled(item, ask.tools[STRUCTURED].schema)
            return Turn("", [Use(STRUCTURED, value)]), Usage()
        return Turn(json.dumps(item)), Usage()
