"""The heads of what a source defines: classes, functions and types, without their bodies."""

from __future__ import annotations

from tree_sitter import Node

from agentrunner.verification.syntax.languages import Parsed, field, parse

MOST_HEADS = 200
HEAD_CHARS = 160
LEVELS = 3
"""How many levels of nested classes are listed."""
_CONTAINERS = frozenset(
    "class_definition class_declaration abstract_class_declaration class interface_declaration "
    "enum_declaration record_declaration impl_item trait_item mod_item internal_module "
    "annotation_type_declaration".split()
)
"""Definitions that contain others."""
_WITHOUT_MEMBERS = frozenset(
    "function_definition function_declaration generator_function_declaration method_definition "
    "method_declaration constructor_declaration function_item function_signature_item "
    "function_signature method_signature abstract_method_signature type_alias_declaration "
    "type_spec type_alias struct_item enum_item union_item type_item macro_definition "
    "lexical_declaration".split()
)
_THROUGH = frozenset(
    "decorated_definition export_statement type_declaration ambient_declaration block class_body "
    "interface_body enum_body declaration_list enum_body_declarations object_type "
    "statement_block module expression_statement".split()
)
"""Nodes between a definition and what it contains."""
_BODIES = ("body", "value")


def heads_of(source: bytes, language: str) -> list[str]:
    """Return a line per definition, indented below its container; [] if it cannot be parsed."""
    parsed = parse(source, language)
    if parsed is None:
        return []
    lines: list[str] = []
    todo: list[tuple[Node, int]] = [(parsed.root, 0)]
    while todo and len(lines) < MOST_HEADS:
        node, level = todo.pop()
        inner = level
        if node.type in _CONTAINERS or node.type in _WITHOUT_MEMBERS:
            head = _head(parsed, node)
            if not head:
                continue
            lines.append("  " * level + head)
            if node.type in _WITHOUT_MEMBERS or level >= LEVELS:
                continue
            inner = level + 1
        elif node.id != parsed.root.id and node.type not in _THROUGH:
            continue
        todo.extend((child, inner) for child in reversed(node.named_children))
    return lines


def _head(parsed: Parsed, node: Node) -> str:
    """Return what precedes the body, on one line; for a constant only if it is a function."""
    if node.type == "lexical_declaration":
        return _arrow(parsed, node)
    if node.type == "type_spec" and (kind := field(node, "type")) is not None:
        opening = next(
            (c for c in kind.children if c.type.endswith("_list") or c.type == "{"), None
        )
        end = opening.start_byte if opening is not None else node.end_byte
        return _line(parsed, node.start_byte, end, "type ")
    body = next((found for name in _BODIES if (found := field(node, name)) is not None), None)
    if body is None or node.type == "type_alias_declaration":
        return _line(parsed, node.start_byte, node.end_byte)
    return _line(parsed, node.start_byte, body.start_byte)


def _arrow(parsed: Parsed, node: Node) -> str:
    """Return `const load = (path) =>` for a constant that is a function; "" for any other value."""
    for one in node.named_children:
        value = field(one, "value")
        if value is not None and value.type in ("arrow_function", "function_expression"):
            body = field(value, "body")
            return _line(parsed, node.start_byte, body.start_byte if body else value.end_byte)
    return ""


def _line(parsed: Parsed, start: int, end: int, before: str = "") -> str:
    text = parsed.source[start:end].decode("utf-8", "replace")
    head = before + " ".join(text.split()).rstrip("{ :;=").rstrip()
    return head if len(head) <= HEAD_CHARS else head[: HEAD_CHARS - 1] + "…"
