"""Types that functions of Python and TypeScript had and have no more. Pure.

A type checker does not look into a function without types, so taking them away silences it. So does
the type that takes anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.functions import RETURN_TYPE, Function, functions_of
from agentrunner.verification.syntax.languages import field, language_of, parse
from agentrunner.verification.syntax.silenced_warnings import SilencedWarning

ANYTHING = lazy_regex(r":?\s*(?:typing\.)?(?:Any|any)")
TYPED = ("python", "typescript", "tsx")
OPTIONAL = b"?"
"""Between a parameter of TypeScript and its type."""


def lost_types(path: str, before: bytes, after: bytes) -> list[SilencedWarning]:
    """Return the places where a function of a source had a type, and the edit that puts it back."""
    language = language_of(path)
    old, new = (parse(source, language or "") for source in (before, after))
    if language not in TYPED or old is None or new is None:
        return []
    known = {one.name: one for one in functions_of(old)}
    return [
        SilencedWarning(
            one.node.start_point.row + 1, f"{one.name} without {edit.text.strip()}", edit
        )
        for one in functions_of(new)
        if (was := known.get(one.name)) is not None
        for edit in _edits(was, one)
    ]


def _edits(was: Function, now: Function) -> Iterator[Edit]:
    types = _types(was)
    for name, (node, end) in _places(now).items():
        if name in types and (end is None or ANYTHING.fullmatch(now.parsed.text(end))):
            at = node.end_byte
            at += now.parsed.source.startswith(OPTIONAL, at)
            yield Edit(at, end.end_byte if end is not None else at, types[name])


def _types(function: Function) -> dict[str, str]:
    """The types of its parameters, by name, and of what it returns (""), with their signs."""
    source = function.parsed.source
    return {
        name: source[node.end_byte : end.end_byte].removeprefix(OPTIONAL).decode("utf-8", "replace")
        for name, (node, end) in _places(function).items()
        if end is not None
    }


def _places(function: Function) -> dict[str, tuple[Node, Node | None]]:
    """By parameter, and "" for what is returned: where its type stands, and the type, if any."""
    parameters = field(function.node, "parameters")
    if parameters is None:
        return {}
    language = function.parsed.language
    returned = field(function.node, RETURN_TYPE.get(language, "return_type"))
    found: dict[str, tuple[Node, Node | None]] = {"": (parameters, returned)}
    for one in parameters.named_children:
        name = field(one, "name") or field(one, "pattern") or one
        if name is one and one.type == "typed_parameter":
            name = one.named_children[0]
        if name.type == "identifier":
            found[function.parsed.text(name)] = (name, field(one, "type"))
    return found
