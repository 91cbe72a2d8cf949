"""Names that other code can reach, as they stand outside of functions, and names that it cannot."""

from __future__ import annotations

from tree_sitter import Node

from agentrunner.verification.syntax.languages import enclosing, field, is_comment, parse, walk

_INNER = ("parameters", "parameter", "body")
"""Fields of a function that are its own affair."""


def is_outer_name(source: bytes, language: str, name: str) -> bool | None:
    """Whether a name stands outside of all parameters and bodies of functions.

    It may be declared, imported or used there: what is used has to exist. A text is no name. None
    for a source that cannot be read.
    """
    parsed = parse(source, language)
    if parsed is None:
        return None
    return any(
        not node.children and parsed.text(node) == name
        for node in walk(parsed.root, _is_entered)
        if not _is_inner(node) and not is_comment(node) and "string" not in node.type
    )


def _is_entered(node: Node) -> bool:
    return not _is_inner(node)


def _is_inner(node: Node) -> bool:
    """Whether a node is the parameters or the body of a function."""
    parent = node.parent
    if parent is None or not any(field(parent, one) for one in _INNER[:2]):
        return False
    return any(field(parent, one) == node for one in _INNER)


def is_local_name(source: bytes, language: str, name: str) -> bool:
    """Whether a name stands in a source, and only as a variable within bodies of functions.

    A parameter is none, as callers may name it, nor is an attribute.
    """
    parsed = parse(source, language)
    if parsed is None:
        return False
    found = [
        node
        for node in walk(parsed.root)
        if not node.children
        and parsed.text(node) == name
        and not is_comment(node)
        and "string" not in node.type
    ]
    return bool(found) and all(_is_local(node) for node in found)


def _is_local(node: Node) -> bool:
    parent = node.parent
    named = (field(parent, "attribute"), field(parent, "name"))
    if node.type != "identifier" or (parent is not None and node in named[:1]):
        return False
    if parent is not None and parent.type == "keyword_argument" and named[1] == node:
        return False
    inner = next((one for one in (node, *enclosing(node)) if _is_inner(one)), None)
    return inner is not None and field(inner.parent, "body") == inner
