"""Names that code itself calls deprecated, where it defines them. Pure."""

from __future__ import annotations

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import has_word
from agentrunner.verification.syntax.context import definitions_in
from agentrunner.verification.syntax.languages import Parsed, parse, walk

DEPRECATED = lazy_regex(r"(?i)deprecat|非推奨")
NESTED = ("function_", "method_", "class_", "decorated_")
COMMENTS = ("comment", "line_comment", "block_comment", "attribute_item")
AROUND = ("export_statement", "lexical_declaration", "variable_declaration")
OPENS = lazy_regex(r"[rubf]*(?:\"\"\"|'''|\"|')\s*[^\n]*")
"""The first line of a text."""


def deprecated_names(source: bytes, language: str) -> set[str]:
    """Return names whose definition says that they are deprecated.

    It does in a comment or attribute before it, a decorator or annotation, the first line of a text
    in it, as documentation is, or in a text that has its name, as a warning does.
    """
    parsed = parse(source, language)
    if parsed is None:
        return set()
    return {name for name, node in definitions_in(parsed) if _says_so(parsed, name, node)}


def _says_so(parsed: Parsed, name: str, node: Node) -> bool:
    outer = node
    while outer.parent is not None and outer.parent.type in AROUND:
        outer = outer.parent
    beside = outer.prev_named_sibling
    while beside is not None and beside.type in COMMENTS:
        if DEPRECATED.search(parsed.text(beside)):
            return True
        beside = beside.prev_named_sibling
    body = node.child_by_field_name("definition") or node
    inner = body.child_by_field_name("body")
    head = parsed.source[node.start_byte : inner.start_byte if inner else node.end_byte]
    if DEPRECATED.search(head.decode("utf-8", "replace")):
        return True
    of_own = walk(inner, lambda one: not one.type.startswith(NESTED)) if inner else ()
    texts = [parsed.text(one) for one in of_own if "string" in one.type]
    first = OPENS.match(texts[0]) if texts and parsed.language == "python" else None
    return bool(first and DEPRECATED.search(first[0])) or any(
        has_word(name, text) and DEPRECATED.search(text) for text in texts
    )
