"""Literals: which one in an expression is the expected value, and another value of its type."""

from __future__ import annotations

import contextlib
import re

from tree_sitter import Node

from agentrunner.verification.syntax.edits import Edit, replaced
from agentrunner.verification.syntax.languages import Parsed, field, parts_of, walk

STRINGS = frozenset(
    "string template_string interpreted_string_literal raw_string_literal string_literal".split()
)
INTEGERS = frozenset(
    "integer int_literal integer_literal decimal_integer_literal hex_integer_literal "
    "octal_integer_literal binary_integer_literal".split()
)
FLOATS = frozenset("float float_literal decimal_floating_point_literal".split())
NUMBERS = INTEGERS | FLOATS | {"number"}
CHARACTERS = frozenset("char_literal rune_literal character_literal".split())
TRUTHS = {"true": "false", "false": "true", "True": "False", "False": "True"}
NOTHINGS = frozenset("none null nil undefined null_literal".split())
LITERALS = NUMBERS | STRINGS | CHARACTERS | NOTHINGS | {"true", "false", "boolean_literal", "regex"}
_COLLECTIONS = {
    "list": "[{}]", "tuple": "({},)", "array": "[{}]", "dictionary": "{{{0}: {0}}}",
    "object": "{{ changed: {} }}",
}  # fmt: skip
_HOLDERS = frozenset(
    "list tuple set array dictionary object array_expression tuple_expression literal_value "
    "array_initializer expression_list literal_element".split()
)
_WRAPPERS = frozenset(
    "parenthesized_expression unary_operator unary_expression reference_expression "
    "as_expression satisfies_expression concatenated_string literal_element".split()
)


def is_literal(node: Node) -> bool:
    """Whether a node is a number, a string, a boolean, a null value or a regular expression."""
    return node.type in LITERALS


def leaf(node: Node | None) -> Node | None:
    """Return the last literal of an expression. An empty collection counts as a literal."""
    while node is not None:
        parts = parts_of(node)
        if is_literal(node) or (node.type in _COLLECTIONS and not parts):
            return node
        if node.type in ("pair", "keyed_element"):
            node = field(node, "value") or parts[-1]
        elif node.type in ("composite_literal", "array_creation_expression"):
            node = field(node, "body") or field(node, "value")
        elif node.type in _WRAPPERS and parts:
            node = parts[-1] if node.type == "concatenated_string" else parts[0]
        elif node.type in _HOLDERS:
            found = [one for part in parts if (one := leaf(part)) is not None]
            return found[-1] if found else None
        else:
            return None
    return None


def another(parsed: Parsed, node: Node) -> Edit | None:
    """Return the edit that makes another value of the same type, None if that is not possible."""
    text = parsed.text(node)
    wide = parsed.language not in ("go", "rust", "java")
    if node.type in STRINGS:
        return _longer_string(node, text)
    if node.type in CHARACTERS:
        return replaced(node, "'q'" if text != "'q'" else "'z'")
    if node.type in NUMBERS:
        number = _number(text, wide)
        return replaced(node, number) if number is not None else None
    if text in TRUTHS:
        return replaced(node, TRUTHS[text])
    if node.type == "regex":
        pattern = field(node, "pattern")
        return replaced(pattern, f"(?!)(?:{parsed.text(pattern)})") if pattern is not None else None
    if node.type in NOTHINGS:
        value = {"python": "...", "go": "", "java": '"changed"'}.get(parsed.language, '"changed"')
        return replaced(node, value) if value else None
    if node.type in _COLLECTIONS:
        return replaced(node, _COLLECTIONS[node.type].format('"changed"'))
    return None


def _longer_string(node: Node, text: str) -> Edit | None:
    closing = re.search(r"(\"\"\"|'''|[\"'`])#*$", text)
    if closing is None:
        return None
    at = node.end_byte - len(closing.group(0))
    return Edit(at, at, "-changed")


def _number(text: str, wide: bool) -> str | None:
    """Return another number, a smaller one if its type may not hold a larger one."""
    match = re.fullmatch(
        r"(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[\d_]*\.?[\d_]*(?:[eE][+-]?\d+)?)"
        r"(_?[a-zA-Z]\w*)?",
        text,
    )
    if match is None or (match.group(2) or "") in ("j", "J", "i"):
        return None
    digits, suffix = match.group(1).replace("_", ""), match.group(2) or ""
    if len(digits) <= 1_000:
        with contextlib.suppress(ValueError):
            whole = int(digits, 0 if re.match("0[xXoObB]", digits) else 10)
            return f"{whole * 2 + 1 if wide else whole - 1 if whole > 0 else 1}{suffix}"
    try:
        value = float(digits) * 2 + 1
    except ValueError:
        return None
    return f"{value!r}{suffix}" if abs(value) < 1e15 else None


def assigned(parsed: Parsed, body: Node, name: str) -> Node | None:
    """Return the value that a body assigns to a name, None if it assigns none or several."""
    values: list[Node] = []
    for node in walk(body):
        pair = assignment(node)
        if pair is not None and parsed.text(pair[0]) == name:
            values.append(pair[1])
    return values[0] if len(values) == 1 else None


def assignment(node: Node) -> tuple[Node, Node] | None:
    """Return both sides of an assignment or declaration of a variable."""
    return binding(node) if node.type in _ASSIGNMENTS else None


def binding(node: Node) -> tuple[Node, Node] | None:
    """Return what gets a value at a node, also as a constant or in a loop, and that value."""
    for left, right in (("left", "right"), ("name", "value"), ("pattern", "value")):
        target, value = field(node, left), field(node, right)
        if node.type in _BINDINGS and target is not None and value is not None:
            return target, value
    return None


_ASSIGNMENTS = frozenset(
    "assignment variable_declarator short_var_declaration let_declaration var_spec "
    "assignment_expression assignment_statement".split()
)
_BINDINGS = _ASSIGNMENTS | frozenset(
    "augmented_assignment augmented_assignment_expression compound_assignment_expr const_spec "
    "const_item static_item named_expression let_condition resource receive_statement "
    "for_statement for_in_statement for_in_clause for_expression enhanced_for_statement "
    "range_clause".split()
)
