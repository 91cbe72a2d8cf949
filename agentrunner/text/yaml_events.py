"""Read YAML event by event, so that anchors, tags or nesting cannot make anything large.

Subclasses define what a scalar means, whether positions are recorded, and the error for each fault.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

import yaml
from msgspec import Struct, field

LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C loader is ten times as fast."""

Path = tuple[str | int, ...]
Fault = Literal["documents", "anchor", "tag", "deep", "many", "key", "duplicate"]
"""Forbidden features of a document. An alias counts as `anchor`; `key` is a key that is no text."""


class _Open(Struct):
    """A container that is being filled."""

    value: Any
    path: Path
    key: list[str] = field(default_factory=list)
    """For a mapping, the key that waits for its value."""


class YamlReader(ABC):
    """Builds one value of texts, lists and mappings; every key is text and unique."""

    max_depth: int
    """Most nested containers."""
    max_values: float = float("inf")

    def __init__(self) -> None:
        self.value: Any = None
        self._open: list[_Open] = []
        self._documents = 0
        self._values = 0

    @abstractmethod
    def fault(self, fault: Fault, event: Any, key: str = "", path: Path = ()) -> Exception:
        """Return the error for this fault; for a duplicate with its key and place."""

    @abstractmethod
    def scalar(self, event: yaml.ScalarEvent) -> Any:
        """Return the value of a scalar; raises if it is not allowed."""

    def key(self, event: yaml.ScalarEvent) -> str:
        """Return a key of a mapping; raises if it is not allowed."""
        text: str = event.value
        return text

    def document(self, event: yaml.DocumentStartEvent) -> None:  # noqa: B027 - most allow any
        """Handle the start of a document; raises if it is refused."""

    def placed(self, path: Path, event: Any) -> None:  # noqa: B027 - only who tells places
        """Record the position of a key or item."""

    def read(self, text: str, loader: type[Any] = LOADER) -> Any:
        """Return the value of the text; raises what `fault` returns and what PyYAML raises."""
        try:
            for event in yaml.parse(text, Loader=loader):
                self._take(event)
        except yaml.MarkedYAMLError as error:
            # PyYAML's C loader has a limit of its own, and reads ahead: it may complain before us.
            if "nesting depth" not in (error.problem or ""):
                raise
            mark = error.problem_mark or error.context_mark
            event = yaml.SequenceStartEvent(None, None, True, start_mark=mark, end_mark=mark)
            raise self.fault("deep", event) from error
        return self.value

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self.fault("documents", event)
            self.document(event)
        elif isinstance(event, yaml.NodeEvent):
            self._node(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()

    def _node(self, event: Any) -> None:
        self._values += 1
        if self._values > self.max_values:
            raise self.fault("many", event)
        if event.anchor is not None:  # an alias has the name of its anchor
            raise self.fault("anchor", event)
        if getattr(event, "tag", None) is not None:
            raise self.fault("tag", event)
        around = self._open[-1] if self._open else None
        if around and isinstance(around.value, dict) and not around.key:
            self._key(event, around)
        elif isinstance(event, yaml.ScalarEvent):
            self._path(event, around)
            self._put(self.scalar(event), around)
        else:
            self._container(event, around)

    def _container(self, event: Any, around: _Open | None) -> None:
        path = self._path(event, around)
        if len(self._open) >= self.max_depth:
            raise self.fault("deep", event)
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._put(value, around)
        self._open.append(_Open(value, path))

    def _key(self, event: Any, around: _Open) -> None:
        if not isinstance(event, yaml.ScalarEvent):
            raise self.fault("key", event)
        name = self.key(event)
        path = (*around.path, name)
        if name in around.value:
            raise self.fault("duplicate", event, name, path)
        around.key.append(name)
        self.placed(path, event)

    def _path(self, event: Any, around: _Open | None) -> Path:
        if around is None:
            return ()
        if isinstance(around.value, dict):
            return (*around.path, around.key[-1])
        path = (*around.path, len(around.value))
        self.placed(path, event)
        return path

    def _put(self, value: Any, around: _Open | None) -> None:
        if around is None:
            self.value = value
        elif isinstance(around.value, list):
            around.value.append(value)
        else:
            around.value[around.key.pop()] = value
