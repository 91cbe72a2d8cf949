"""YAML as people write it: scalars stay text, and the line of every key is recorded.

The models decide types later: `id: 001` stays "001".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from msgspec import Struct, field

from agentrunner.errors import UsageError
from agentrunner.errors.task_files import DuplicateKey, ForbiddenYaml, YamlSyntax
from agentrunner.text.yaml_events import Fault, Path, YamlReader

__all__ = ["Path", "Place", "Value", "YamlTree", "dotted", "read_yaml", "value_at"]

MAX_DEPTH = 32
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})

_FAULTS: Mapping[Fault, str] = {
    "documents": "holds more than one document",
    "deep": f"is nested deeper than {MAX_DEPTH} levels",
    "key": "has a key that is not a word",
    "anchor": "uses an anchor or alias (& or *)",
    "tag": "uses a tag (!)",
}

Value = Any
"""None, str, list or dict with text keys."""


@dataclass(frozen=True)
class Place:
    """Where a value was written: "task.yaml:21" with that line's text, or an option."""

    where: str
    source_line: str = ""
    line: int | None = None


class YamlTree(Struct):
    """A document, and where each of its values was written."""

    value: Value
    places: dict[Path, Place] = field(default_factory=dict)

    def place(self, path: Path) -> Place:
        """Return the place of this value, or of the nearest one around it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return Place("")

    def error(
        self, kind: type[UsageError], path: Path, message: str, remedy: str = ""
    ) -> UsageError:
        """Return the error of the value there, with its source line unless that may be secret."""
        place = self.place(path)
        secret = path[:2] in (("runner", "worker"), ("runner", "workers")) and "env" in path[2:4]
        return kind(
            message,
            path=place.where or dotted(path),
            source_line="" if secret else place.source_line[:200],
            remedy=remedy,
        )

    def at(self, *path: str | int) -> Value:
        """Return the value at this path; None where there is none."""
        return value_at(self.value, path)

    def move_places(self, path: Path, to: Path | None) -> None:
        """Record the places of a value, and of what is in it, for another path, or for none."""
        for old in [old for old in self.places if old[: len(path)] == path]:
            place = self.places.pop(old)
            if to is not None:
                self.places[*to, *old[len(path) :]] = place

    def take_places(self, other: YamlTree, path: Path) -> None:
        """Record those of a value that was taken from another document, and of what is in it."""
        places = other.places.items()
        self.places.update((one, place) for one, place in places if one[: len(path)] == path)


def dotted(path: Path) -> str:
    """Format a path as `task.acceptance_criteria[0].check`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def value_at(value: Value, path: Path) -> Value:
    """Return what nested mappings hold at this path; None where they hold nothing."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def read_yaml(text: str, name: str, *, first_line: int = 1) -> YamlTree:
    """Parse one YAML document; raises UsageError with line (`yaml-syntax`, `duplicate-key`, …)."""
    return _Reader(text, name, first_line).tree()


class _Reader(YamlReader):
    max_depth = MAX_DEPTH + 1

    def __init__(self, text: str, name: str, first_line: int) -> None:
        super().__init__()
        self._lines = text.split("\n")
        self._text = text
        self._name = name
        self._first = first_line
        self._places: dict[Path, Place] = {(): Place(name)}

    def tree(self) -> YamlTree:
        try:
            return YamlTree(self.read(self._text), self._places)
        except yaml.MarkedYAMLError as error:
            raise self._syntax(error) from error
        except (yaml.YAMLError, UnicodeError) as error:
            raise YamlSyntax(
                f"{self._name} holds a character that YAML does not allow.",
                path=self._name,
            ) from error

    def scalar(self, event: yaml.ScalarEvent) -> str | None:
        text: str = event.value
        if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
            raise self._error(ForbiddenYaml, "holds NUL or half a character", event)
        plain = event.implicit[0]
        return None if plain and text in _NULLS else text

    def placed(self, path: Path, event: Any) -> None:
        self._places[path] = self._place(event)

    def fault(self, fault: Fault, event: Any, key: str = "", path: Path = ()) -> UsageError:
        if fault == "duplicate":
            before = self._places[path].line
            return self._error(DuplicateKey, f'has "{key}" twice; also in line {before}', event)
        return self._error(ForbiddenYaml, _FAULTS[fault], event)

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
        # The end of the document is reported as a line that does not exist.
        index = min(mark.line if mark else 0, len(self._lines) - 1)
        problem = error.problem or "it cannot be read"
        source = self._lines[index]
        remedy = ""
        if "\t" in problem or "\t" in source:
            remedy = "indent with spaces, not with tabs (→)"
        elif remedy := self._misplaced(index, problem):
            pass
        elif "mapping values are not allowed" in problem or "cannot start any token" in problem:
            remedy = "put the text in double quotes"
        return YamlSyntax(
            f"{self._name} is not valid YAML: {problem}.",
            path=f"{self._name}:{self._first + index}",
            source_line=source.strip(" ").replace("\t", "→"),
            remedy=remedy,
        )

    def _misplaced(self, index: int, problem: str) -> str:
        """Return how to indent a line that begins in no column of the lines before; else ""."""
        above = next((at for at in range(index - 1, -1, -1) if self._lines[at].strip()), None)
        if (
            above is None
            or "',' or" in problem
            or not problem.startswith(("mapping values", "did not find", "expected <"))
        ):
            return ""
        here, there = map(_indent, (self._lines[index], self._lines[above]))
        if here < there and here in {_indent(one) for one in self._lines[:index] if one.strip()}:
            return ""  # it closes a level that is there
        ends = re.match(r"\s*(?:- )?[\w.-]+:\s+[^\s|>&{\[]", self._lines[above])
        if here == there or (here > there and not ends):
            return ""
        more = "more" if here > there else "fewer"
        by = "1 space" if here == 1 else f"{here} spaces"
        return (
            f"line {self._first + index} is indented by {by}, {more} than line"
            f" {self._first + above} with {there}: begin it below the keys beside it"
        )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
