"""Narrow what a test accepts to the values that people name: `code in (0, 1)`, `x == 0 or x == 1`.

Such a test passes with either value, and so it does not say which of them is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from agentrunner.verification.syntax.edits import Edit, applied, replaced
from agentrunner.verification.syntax.languages import Parsed, field, inside, parse, walk
from agentrunner.verification.syntax.values import is_literal

_COLLECTIONS = frozenset(("tuple", "list", "set", "array"))
_EITHER = {"or": ("==", "is"), "||": ("==", "===")}
"""Operators between alternatives, and those that compare with each of them."""
_NEITHER = {"and": ("!=", "is not"), "&&": ("!=", "!==")}
"""The same for what has to be red: `if got != 0 && got != 1 { t.Fatal() }`."""
_JOINED = ("boolean_operator", "binary_expression")
_COMPARED = ("comparison_operator", "binary_expression")
Named = Callable[[str], bool]


def narrowed(source: bytes, language: str, asked: str) -> bytes:
    """Return a test file that accepts only those of several values that `asked` names.

    Where it names none of them, or all, they stay. The source itself if there is nothing to narrow
    or no syntax tree.
    """
    parsed = parse(source, language)
    if parsed is None:
        return source

    def is_named(text: str) -> bool:
        bare = text.strip("\"'`")
        return bool(bare) and re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", asked) is not None

    edits: list[Edit] = []
    done: list[Node] = []
    for node in walk(parsed.root):
        if any(inside(outer, node) for outer in done):
            continue
        edit = next(_edits(parsed, node, is_named), None)
        if edit is not None:
            edits.append(edit)
            done.append(node)
    return applied(source, edits)


def _edits(parsed: Parsed, node: Node, is_named: Named) -> Iterator[Edit]:
    if node.type in _COLLECTIONS and _is_looked_into(parsed, node):
        items = [one for one in node.named_children if is_literal(one)]
        if len(items) == len(node.named_children):
            kept = _some([parsed.text(one) for one in items], is_named)
            if kept:
                text = parsed.text(node)
                comma = "," * (node.type == "tuple")
                yield replaced(node, f"{text[0]}{', '.join(kept)}{comma}{text[-1]}")
    elif node.type in _JOINED:
        operator = parsed.text(node, "operator")
        compares = _EITHER.get(operator) or _NEITHER.get(operator)
        parts = _flat(parsed, node, operator) if compares else []
        values = [_compared_with(parsed, one, compares or ()) for one in parts]
        if parts and all(values) and _some(values, is_named):
            kept = [
                parsed.text(one)
                for one, value in zip(parts, values, strict=True)
                if is_named(value)
            ]
            yield replaced(node, f"({f' {operator} '.join(kept)})")


def _some(values: list[str], is_named: Named) -> list[str]:
    """Those of several values that are named; none if all are."""
    kept = [one for one in values if is_named(one)]
    return kept if len(kept) < len(values) else []


def _is_looked_into(parsed: Parsed, node: Node) -> bool:
    """Whether a collection is what a value has to be in."""
    parent = node.parent
    if parent is None:
        return False
    if parent.type == "comparison_operator":
        return parsed.text(node.prev_sibling) == "in"
    if parent.type == "member_expression":
        return parsed.text(parent, "property") == "includes"
    if parent.type in ("argument_list", "arguments") and parent.parent is not None:
        call, after = parsed.text(parent.parent), parsed.text(parent.parent.parent)
        is_in = re.match(r"[\w.]*assertIn\b", call) is not None and node != parent.named_children[0]
        return is_in or re.match(r"expect\b.*\)\s*\.toContain\b", after, re.DOTALL) is not None
    return False


def _flat(parsed: Parsed, node: Node, operator: str) -> list[Node]:
    """The operands of a chain of one operator."""
    found: list[Node] = []
    todo = [field(node, "right"), field(node, "left")]
    while todo:
        one = todo.pop()
        if one is None:
            continue
        if one.type == node.type and parsed.text(one, "operator") == operator:
            todo += [field(one, "right"), field(one, "left")]
        else:
            found.append(one)
    return found


def _compared_with(parsed: Parsed, node: Node, operators: tuple[str, ...]) -> str:
    """The literal that an operand compares with by one of these operators; "" for none."""
    if node.type not in _COMPARED or len(node.children) != 3:
        return ""
    left, operator, right = node.children
    if parsed.text(operator) not in operators:
        return ""
    literals = [one for one in (left, right) if is_literal(one)]
    return parsed.text(literals[0]) if len(literals) == 1 else ""
