"""YAML as people write it: scalars keep their text, and every key knows its line.

Built from parser events, so that anchors, tags and deep nesting are refused before anything is
constructed. Types are decided later, by the models: `id: 001` stays "001".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from agentrunner.errors import UsageError
from agentrunner.errors.task_files import DuplicateKey, ForbiddenYaml, YamlSyntax

MAX_DEPTH = 32
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times as fast
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})

Value = Any
"""None, str, list or dict with text keys."""
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """Where a value was written: "task.yaml:21" with that line's text, or an option."""

    where: str
    source_line: str = ""
    line: int | None = None


@dataclass
class Tree:
    """A document and where each of its values stands."""

    value: Value
    places: dict[Path, Place] = field(default_factory=dict)

    def place(self, path: Path) -> Place:
        """The place of this value, or of the nearest one around it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return Place("")


def read_yaml(text: str, name: str, *, first_line: int = 1) -> Tree:
    """One YAML document; raises UsageError with the line (`yaml-syntax`, `duplicate-key`, …)."""
    return _Reader(text, name, first_line).read()


class _Reader:
    def __init__(self, text: str, name: str, first_line: int) -> None:
        self._lines = text.split("\n")
        self._text = text
        self._name = name
        self._first = first_line
        self._events: Iterator[Any] = iter(())
        self._tree = Tree(None)

    def read(self) -> Tree:
        try:
            self._events = yaml.parse(self._text, Loader=_LOADER)
            self._document()
        except yaml.MarkedYAMLError as error:
            raise self._syntax(error) from error
        except (yaml.YAMLError, UnicodeError) as error:
            raise YamlSyntax(
                f"{self._name} holds a character that YAML does not allow.",
                path=self._name,
            ) from error
        return self._tree

    def _document(self) -> None:
        next(self._events)  # start of the stream
        event = next(self._events)
        self._tree.places[()] = Place(self._name)
        if isinstance(event, yaml.StreamEndEvent):
            return
        self._tree.value = self._value(next(self._events), (), 0)
        next(self._events)  # end of the document
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._error(ForbiddenYaml, "holds more than one document", event)

    def _value(self, event: Any, path: Path, depth: int) -> Value:
        self._refuse_magic(event)
        if depth > MAX_DEPTH:
            raise self._error(ForbiddenYaml, f"is nested deeper than {MAX_DEPTH} levels", event)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        return self._mapping(path, depth)

    def _scalar(self, event: yaml.ScalarEvent) -> str | None:
        text: str = event.value
        if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
            raise self._error(ForbiddenYaml, "holds NUL or half a character", event)
        plain = event.implicit[0]
        return None if plain and text in _NULLS else text

    def _sequence(self, path: Path, depth: int) -> list[Value]:
        items: list[Value] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            here = (*path, len(items))
            self._tree.places[here] = self._place(event)
            items.append(self._value(event, here, depth + 1))
        return items

    def _mapping(self, path: Path, depth: int) -> dict[str, Value]:
        mapping: dict[str, Value] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            self._refuse_magic(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise self._error(ForbiddenYaml, "has a key that is not a word", event)
            key: str = event.value
            here = (*path, key)
            if key in mapping:
                before = self._tree.places[here].line
                raise self._error(DuplicateKey, f'has "{key}" twice; also in line {before}', event)
            self._tree.places[here] = self._place(event)
            mapping[key] = None
            mapping[key] = self._value(next(self._events), here, depth + 1)
        return mapping

    def _refuse_magic(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise self._error(ForbiddenYaml, "uses an anchor or alias (& or *)", event)
        if getattr(event, "tag", None) is not None:
            raise self._error(ForbiddenYaml, "uses a tag (!)", event)

    def _place(self, event: Any) -> Place:
        index = event.start_mark.line
        line = self._first + index
        text = self._lines[index].strip() if index < len(self._lines) else ""
        return Place(f"{self._name}:{line}", text, line)

    def _error(self, error: type[UsageError], what: str, event: Any) -> UsageError:
        place = self._place(event)
        return error(f"{self._name} {what}.", path=place.where, source_line=place.source_line)

    def _syntax(self, error: yaml.MarkedYAMLError) -> UsageError:
        mark = error.problem_mark
        # The end of the document is reported as a line that is not there.
        index = min(mark.line if mark else 0, len(self._lines) - 1)
        problem = error.problem or "it cannot be read"
        source = self._lines[index]
        remedy = ""
        if "\t" in problem or "\t" in source:
            remedy = "indent with spaces, not with tabs"
        elif "mapping values are not allowed" in problem or "cannot start any token" in problem:
            remedy = "put the text in double quotes"
        return YamlSyntax(
            f"{self._name} is not valid YAML: {problem}.",
            path=f"{self._name}:{self._first + index}",
            source_line=source.strip(),
            remedy=remedy,
        )
