"""What a function is handed, and what it gives back. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from agentrunner.verification.syntax.ends import own_nodes
from agentrunner.verification.syntax.functions import NESTED, Function
from agentrunner.verification.syntax.languages import SCRIPTS, Parsed, field, statements, walk

CHOOSES = frozenset({"conditional_expression", "ternary_expression", "parenthesized_expression"})
RECEIVERS = frozenset({"self", "cls", "this"})


def parameters_of(function: Function) -> list[Node]:
    """Return the nodes of a function's parameters."""
    node = function.node
    if node.type in ("assignment", "var_spec"):
        node = next((one for one in walk(node) if field(one, "parameters") is not None), node)
    single = field(node, "parameter")
    given = field(node, "parameters")
    return [single] if single is not None else list(given.named_children) if given else []


_DEFAULTS = {
    "default_parameter": "value",
    "typed_default_parameter": "value",
    "required_parameter": "value",
    "optional_parameter": "value",
    "assignment_pattern": "right",
    "object_assignment_pattern": "right",
}
"""Where a default stands in a parameter, by its kind."""


def parameter_names(parsed: Parsed, function: Function) -> set[str]:
    """Return the names of what a function is handed, without those of types and defaults."""
    return {
        parsed.text(one)
        for parameter in parameters_of(function)
        for one in walk(parameter, _is_of_name)
        if one.type in ("identifier", "shorthand_property_identifier_pattern") and _is_of_name(one)
    }


def _is_of_name(node: Node) -> bool:
    """Whether a part of a parameter is neither its type nor what it is where nothing is given."""
    place = _DEFAULTS.get(node.parent.type) if node.parent is not None else None
    default = field(node.parent, place) if place and node.parent is not None else None
    return node.type not in ("type", "type_annotation") and (
        default is None or default.id != node.id
    )


def answers_of(parsed: Parsed, function: Function) -> Iterator[Node]:
    """Yield the expressions of which a function gives back one, each as it stands."""
    body = function.body
    if function.node.type == "assignment" or (
        parsed.language in SCRIPTS and body.type != "statement_block"
    ):
        given = [body]
    else:
        given = [
            value
            for one in own_nodes(body, NESTED)
            if one.type in ("return_statement", "return_expression")
            for value in statements(one)[:1]
        ]
        last = statements(body)[-1:] if parsed.language == "rust" else []
        given += [one for one in last if one.type not in ("return_expression", "let_declaration")]
    while given:
        node = given.pop(0)
        if node.type in CHOOSES:
            parts = list(node.named_children)
            if node.type != "parenthesized_expression":
                parts = [one for one in parts if one != _condition(node)]
            given = [*parts, *given]
        elif node.type == "expression_list" and node.named_child_count == 1:
            given.insert(0, node.named_children[0])
        elif node.type == "expression_statement":
            given = [*node.named_children[:1], *given]
        elif node.type == "if_expression":
            branches = (field(node, "consequence"), field(node, "alternative"))
            given = [*(one for one in branches if one is not None), *given]
        elif node.type in ("block", "else_clause"):
            given = [*statements(node)[-1:], *given]
        else:
            yield node


def _condition(node: Node) -> Node | None:
    """The part of a choice that decides: the middle of Python's `a if b else c`."""
    named = field(node, "condition")
    return named if named is not None else node.named_children[1] if node.named_children else None


def is_put_together(node: Node) -> bool:
    """Whether a string holds values that are worked out."""
    return any(one.type in ("interpolation", "template_substitution") for one in walk(node))
