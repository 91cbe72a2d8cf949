"""Parses XML of hostile origin as a stream: no entities, no DTD, bounded depth and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.parsers import expat

from msgspec import Struct, field

MOST_DEPTH = 50
MOST_TEXT = 8_000
"""Characters of one element's text; what is longer is cut."""
STEP = 1 << 20


class _RefusedError(Exception):
    """The document is not one that a test tool writes."""


class Element(Struct):
    """One open or closed element, without the elements inside it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def get(self, name: str) -> str:
        """An attribute; "" where there is none."""
        return self.attributes.get(name, "")


def parse(
    content: bytes,
    opened: Callable[[list[Element]], None],
    closed: Callable[[list[Element]], None],
) -> bool:
    """Go through a document; return whether it was complete, well-formed and harmless.

    `opened` and `closed` get the path of elements from the root to the one that begins or ends; its
    text is there when it ends. Namespaces are cut off tags.
    """
    path: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(path) >= MOST_DEPTH:
            raise _RefusedError
        path.append(Element(tag.rpartition("}")[2], attributes))
        opened(path)

    def text(piece: str) -> None:
        if path and path[-1].size < MOST_TEXT:
            path[-1].parts.append(piece)
            path[-1].size += len(piece)

    def end(_tag: str) -> None:
        path[-1].text = "".join(path[-1].parts)[:MOST_TEXT]
        closed(path)
        path.pop()

    def refuse(*_: object) -> Any:
        raise _RefusedError

    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.UnparsedEntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        for position in range(0, len(content), STEP):
            parser.Parse(content[position : position + STEP], False)
        parser.Parse(b"", True)
    except (expat.ExpatError, _RefusedError, ValueError, LookupError, RecursionError):
        return False
    return True
