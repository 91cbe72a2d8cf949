"""One assertion, in any of the languages."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from tree_sitter import Node

from agentrunner.verification.syntax.edits import Edit, replaced
from agentrunner.verification.syntax.languages import Parsed, field, walk, without_brackets


class Stated(Struct, frozen=True):
    """An assertion of a test."""

    node: Node
    expected: tuple[Node, ...]
    """The expressions it expects, most likely one first; with another value it fails."""
    turned: tuple[Edit, ...]
    """The edits that make it assert the opposite; empty if they are not known."""
    operands: tuple[Node, ...]
    """The expressions that decide it."""


def failing_guard(parsed: Parsed, node: Node, fails: Callable[[Node], bool]) -> Stated | None:
    """Return what `if (got != want) { … }` asserts where a node that it leads to fails."""
    condition, then = field(node, "condition"), field(node, "consequence")
    if condition is None or then is None or not any(map(fails, walk(then))):
        return None
    wanted = compared(condition, ("!=", "!=="), "||")
    return Stated(node, tuple(wanted), (negated(parsed, condition),), (condition,))


def negated(parsed: Parsed, condition: Node) -> Edit:
    """Return the edit that negates a condition in a language that uses `!`."""
    bare = without_brackets(condition)
    return replaced(bare, f"!({parsed.text(bare)})")


def compared(condition: Node, same: tuple[str, ...], joint: str) -> list[Node]:
    """Return what the parts of a condition are compared with, using the operators in `same`.

    The parts are joined by the operator `joint`, in languages with `binary_expression`.
    """
    found: list[Node] = []
    todo = [condition]
    while todo:
        node = todo.pop()
        if node.type == "parenthesized_expression":
            todo.extend(node.named_children)
        elif node.type == "binary_expression":
            operator, left, right = (field(node, one) for one in ("operator", "left", "right"))
            if operator is None or left is None or right is None:
                continue
            if operator.type == joint:
                todo.extend((left, right))
            elif operator.type in same:
                found.extend((right, left))
    return found
